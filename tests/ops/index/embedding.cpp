// What there is to test of embedding.
#include <xgrad/ops/index/embedding.hpp>

#include <algorithm>

#include <gtest/gtest.h>

#include <xgrad/base/random.hpp>
#include <xgrad/graph/watch.hpp>
#include <xgrad/ops/index/masked_fill.hpp>
#include <xgrad/ops/loss/linear_cross_entropy.hpp>
#include <xgrad/ops/reduce/reductions.hpp>
#include <xgrad/ops/shape/shapes.hpp>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::embedding_rows {

using naive::at, naive::generated, naive::joined, naive::Arguments;

Reference naive_embedding(Ids ids) {
  return [ids](const Arguments& x) {
    return generated(joined(ids.shape(), {x[0].shape()[1]}), [&](const Shape& index) {
      const Shape place(index.begin(), index.end() - 1);
      return at(x[0], {static_cast<std::size_t>(at(ids, place)), index.back()});
    });
  };
}

Op embedding_op() {
  Op op{"embedding"};
  for (const Ids& ids :
       {ids_of({2, 3}, {1, 5, 1, 0, 1, 5}), ids_of({4}, {0, 0, 0, 0}), ids_of({}, {2}), ids_of({0}, {}),
        ids_of({17}, {0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 5, 5, 5, 5, 5})}) {
    for (const std::size_t dim : {4, 1, 17})
      op.cases.push_back(make_case(
          {{6, dim}}, [ids](const auto& x) { return xgrad::embedding(ids, x[0]); }, naive_embedding(ids)));
  }
  const Ids tied = ids_of({3}, {4, 0, 4});
  op.cases.push_back(make_case(
      {{6, 3}},
      [tied](const auto& x) {
        const auto squares = x[0] * x[0];
        return xgrad::embedding(tied, squares) * xgrad::sum(squares);
      },
      [tied](const std::vector<Array<double>>& x) {
        const Array<double> squares = x[0] * x[0];
        return Array<double>(naive_embedding(tied)({squares}) * xt::sum(squares)());
      }));
  // the padding row's gradient is dropped, so the outputs that depend on it must count for nothing
  const Ids padded = ids_of({4}, {5, 1, 5, 2});
  const Mask padding = mask_of({4, 1}, {1, 0, 1, 0});
  op.cases.push_back(make_case(
      {{6, 3}},
      [=](const auto& x) {
        return xgrad::masked_fill(xgrad::embedding(padded, x[0], {.padding_idx = -1}), padding, 0);
      },
      [=](const std::vector<Array<double>>& x) {
        return naive::masked_fill(padding, 0)({naive_embedding(padded)(x)});
      }));
  for (const std::size_t dim : {1, 203}) {
    op.large.push_back(late_case({{517, dim}}, [dim] {
      const Ids ids = scattered_ids({11, dim == 1 ? std::size_t{12001} : 191}, 517);
      return make_case(
          {}, [ids](const auto& x) { return xgrad::embedding(ids, x[0]); }, naive_embedding(ids));
    }));
  }
  op.errors = {error<IndexError>("embedding: ids must be in [0, 6), got 7 (vocabulary size 6)",
                                 [] {
                                   xgrad::embedding(ids_of({2}, {0, 7}), x(6, 4));
                                 }),
               error<IndexError>("embedding: ids must be in [0, 6), got -1 (vocabulary size 6)",
                                 [] { xgrad::embedding(ids_of({}, {-1}), x(6, 4)); }),
               error<IndexError>("embedding: ids must be in [0, 0), got 0 (vocabulary size 0)",
                                 [] { xgrad::embedding(ids_of({1}, {0}), x(0, 4)); }),
               error<IndexError>("embedding: padding_idx must be in [-6, 6), got 6",
                                 [] { xgrad::embedding(ids_of({1}, {0}), x(6, 4), {.padding_idx = 6}); }),
               error<ShapeError>("embedding: weight must have the axes (vocabulary, dim), got (6)",
                                 [] { xgrad::embedding(ids_of({1}, {0}), x(6)); })};
  return op;
}

const Rows rows([] { return std::vector<Op>{embedding_op()}; });

const Conformance conformance{{"embedding", [](const auto& c) {
                                 xgrad::EmbeddingOptions options;
                                 if (c.has_attr("padding_idx"))
                                   options.padding_idx = c.integer("padding_idx");
                                 return embedding(c.ids(1), c.x(), options);
                               }}};

void draw_embedding(Drawing& d) {
  const Name weight = d.numbers(d.shape(2, 2));
  const auto rows = static_cast<std::ptrdiff_t>(d.shape(weight)[0]);
  if (rows == 0) return;
  const Shape shape = d.shape(0, 3);
  const Name ids = d.ids(shape, d.shape(weight)[0]);
  if (d.chance(0.7)) {
    d.call("embedding", {weight, ids}, {{"padding_idx", nullptr}});
    return;
  }
  // the padding row's gradient is dropped, so the outputs that depend on it must count for nothing
  const auto padding = static_cast<std::ptrdiff_t>(d.below(d.shape(weight)[0]));
  Mask is_padding = xt::equal(*d.values().at(ids).ids, padding);
  is_padding.reshape(naive::joined(shape, {1}));
  const Name rows_of_ids =
      drawn(d, "embedding", {weight, ids}, {{"padding_idx", d.chance(0.5) ? padding : padding - rows}});
  d.hide(rows_of_ids);
  d.call("masked_fill", {rows_of_ids, d.leaf({{{}, {}, is_padding}})}, {{"value", 0.0}});
}

const Draws draws{{"embedding", draw_embedding}};

TEST(EmbeddingTest, ThePaddingRowGetsNoGradientAndRepeatedIdsAddUp) {
  const Variable<float> weight(Array<float>(Shape{4, 2}, 1.0f), true);
  const Ids ids{{1, 3, 1}, {0, 1, 3}};
  embedding(ids, weight, {.padding_idx = -1}).backward(Variable<float>(Array<float>(Shape{2, 3, 2}, 1.0f)));
  EXPECT_EQ(weight.grad().value(), (Array<float>{{1, 1}, {3, 3}, {0, 0}, {0, 0}}));
}

/// What a recorded gradient is made of leaves the padding row out, too, in each direction.
TEST(EmbeddingTest, GradientsOfThePaddingRowsGradientAreZero) {
  const Variable<double> weight(Array<double>(Shape{4, 2}, 1.0), true);
  const Variable<double> seed(Array<double>{{1, 2}, {3, 4}, {5, 6}}, true);
  const Ids ids{1, 3, 1};
  for (const std::int64_t padding : {3, -1}) {
    const Variable<double> dweight = grad(embedding(ids, weight, {.padding_idx = padding}), {weight},
                                          {.seed = seed, .create_graph = true})[0];
    EXPECT_EQ(dweight.value(), (Array<double>{{0, 0}, {6, 8}, {0, 0}, {0, 0}}));
    const Variable<double> factors(Array<double>{{1, 1}, {2, 3}, {1, 1}, {7, 9}}, true);
    const Variable<double> dseed = grad(dweight, {seed}, {.seed = factors, .create_graph = true})[0];
    EXPECT_EQ(dseed.value(), (Array<double>{{2, 3}, {0, 0}, {2, 3}}));
    const Variable<double> third(Array<double>{{1, 10}, {100, 1000}, {2, 20}});
    EXPECT_EQ(grad(dseed, {factors}, {.seed = third})[0].value(),
              (Array<double>{{0, 0}, {3, 30}, {0, 0}, {0, 0}}));
  }
}

TEST(EmbeddingTest, APaddingIndexMayCountFromTheEnd) {
  const Variable<float> weight(Array<float>(Shape{3, 2}, 2.0f), true);
  for (const std::int64_t padding : {-3, -2, -1, 0, 1, 2}) {
    const Variable<float> y = embedding(Ids{0, 1, 2}, weight, {.padding_idx = padding});
    EXPECT_EQ(y.value(), weight.value()) << "the padding row is looked up as any other";
    Array<float> expected(Shape{3, 2}, 1.0f);
    std::fill_n(expected.data() + 2 * (padding < 0 ? padding + 3 : padding), 2, 0.0f);
    EXPECT_EQ(grad(sum(y), {weight})[0].value(), expected) << padding;
  }
  for (const std::int64_t padding : {-4, 3}) {
    EXPECT_EQ(message_of<IndexError>([&] { embedding(Ids{0}, weight, {.padding_idx = padding}); }),
              "embedding: padding_idx must be in [-3, 3), got " + std::to_string(padding));
  }
}

TEST(EmbeddingTest, ManyIdsOfTheSameRowAddUp) {
  const Variable<float> weight(Array<float>(Shape{3, 1}, 0.0f), true);
  embedding(Ids(Shape{5000}, 2), weight, {.padding_idx = 0})
      .backward(Variable<float>(Array<float>(Shape{5000, 1}, 1.0f)));
  EXPECT_EQ(reshape(weight.grad(), -1).value(), (Array<float>{0, 0, 5000}));
}

/// Where the table's gradient has a part already, that of the lookup is added to it in place, unless somebody
/// else holds that part or it is recorded.
TEST(EmbeddingTest, AddsToTheGradientOfOtherUses) {
  const Variable<float> weight(Array<float>{{1, 2}, {3, 4}, {5, 6}}, true);
  const Variable<float> ones(Array<float>(Shape{3, 2}, 1.0f));
  const auto uses = [&] {
    const Variable<float> rows = sum(embedding(Ids{2, 0, 2}, weight));
    return rows + sum(weight * weight);
  };
  const Array<float> expected{{3, 5}, {6, 8}, {12, 14}};
  EXPECT_EQ(grad(uses(), {weight})[0].value(), expected);
  EXPECT_EQ(grad(uses(), {weight}, {.create_graph = true})[0].value(), expected);
  uses().backward();
  EXPECT_EQ(weight.grad().value(), expected);
  (sum(embedding(Ids{2, 0, 2}, weight)) + sum(weight * ones)).backward();
  EXPECT_EQ(weight.grad().value(), (Array<float>{{5, 7}, {7, 9}, {15, 17}})) << "backward adds up, too";
  EXPECT_EQ(ones.value(), (Array<float>(Shape{3, 2}, 1.0f))) << "a gradient that an operand shares";
  const auto padded = embedding(Ids{2, 0, 2}, weight, {.padding_idx = 0});
  EXPECT_EQ(grad(sum(padded) + sum(weight * weight), {weight})[0].value(),
            (Array<float>{{2, 4}, {6, 8}, {12, 14}}));
}

/// Neither a watcher nor a graph that is kept, where the part is held elsewhere, changes a bit.
TEST(EmbeddingTest, GradientsOfATiedTableHaveTheSameBitsHoweverTheyAreAdded) {
  struct Nothing : xgrad::Watcher {};
  xgrad::manual_seed(1);
  const Variable<float> table(xgrad::normal<float>({50, 7}), true);
  const Ids ids = xgrad::randint(0, 50, {400}), targets = xgrad::randint(0, 50, {400});
  const auto gradient = [&](bool retain_graph) {
    const Variable<float> hidden = embedding(ids, table);
    return grad(linear_cross_entropy(hidden, table, targets), {table}, {.retain_graph = retain_graph})[0]
        .value();
  };
  const Array<float> expected = gradient(false);
  EXPECT_EQ(gradient(true), expected);
  const Nothing watcher;
  EXPECT_EQ(gradient(false), expected);
}

}  // namespace xgrad_tests::embedding_rows
