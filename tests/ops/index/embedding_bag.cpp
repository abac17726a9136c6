// What there is to test of embedding_bag.
#include <xgrad/ops/index/embedding_bag.hpp>

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::embedding_bag_rows {

using naive::Arguments, naive::Numbers;
using xgrad::BagMode;

struct Sample {
  Ids ids;
  std::optional<Ids> offsets = {};
  BagMode mode = BagMode::mean;
  bool weighted = false, include_last_offset = false;
  std::optional<std::int64_t> padding_idx = {};
  std::size_t vocabulary = 6, dim = 3;
};

/// weight and perhaps a factor for each id.
Reference naive_bags(const Sample& s) {
  return [=](const Arguments& x) {
    const std::size_t length = s.offsets ? 0 : s.ids.shape(1), dim = x[0].shape()[1];
    std::size_t bags = s.offsets ? s.offsets->size() : s.ids.shape(0);
    if (s.include_last_offset) --bags;
    Numbers y = naive::filled({bags, dim}, 0);
    for (std::size_t bag = 0; bag < bags; ++bag) {
      std::size_t begin = bag * length, end = begin + length;
      if (s.offsets) {
        begin = static_cast<std::size_t>(s.offsets->data()[bag]);
        end =
            bag + 1 < s.offsets->size() ? static_cast<std::size_t>(s.offsets->data()[bag + 1]) : s.ids.size();
      }
      for (std::size_t d = 0; d < dim; ++d) {
        double sum = 0, count = 0, largest = -inf;
        for (std::size_t i = begin; i < end; ++i) {
          const std::int64_t id = s.ids.data()[i];
          if (s.padding_idx && (id - *s.padding_idx) % static_cast<std::int64_t>(s.vocabulary) == 0) continue;
          const double element = x[0].data()[static_cast<std::size_t>(id) * dim + d];
          sum += element * (s.weighted ? x[1].data()[i] : 1);
          largest = std::max(largest, element);
          count += 1;
        }
        if (count > 0)
          y.data()[bag * dim + d] = s.mode == BagMode::max   ? largest
                                    : s.mode == BagMode::sum ? sum
                                                             : sum / count;
      }
    }
    return y;
  };
}

Case bag_case(const Sample& s) {
  std::vector<Input> inputs{Shape{s.vocabulary, s.dim}};
  if (s.weighted) inputs.push_back(s.ids.shape());
  return make_case(
      inputs,
      [s](const auto& x) {
        xgrad::EmbeddingBagOptions<typename std::decay_t<decltype(x[0])>::value_type> options{
            .offsets = s.offsets,
            .mode = s.mode,
            .include_last_offset = s.include_last_offset,
            .padding_idx = s.padding_idx};
        if (s.weighted) options.per_sample_weights = x[1];
        return xgrad::embedding_bag(s.ids, x[0], options);
      },
      naive_bags(s));
}

const Rows rows([] {
  const Ids table = ids_of({3, 2}, {1, 5, 0, 0, 2, 4}), line = ids_of({5}, {3, 1, 4, 1, 5});
  Op op{"embedding_bag"};
  for (const BagMode mode : {BagMode::sum, BagMode::mean, BagMode::max}) {
    op.cases.push_back(bag_case({.ids = table, .mode = mode}));
    op.cases.push_back(
        bag_case({.ids = line, .offsets = ids_of({3}, {0, 2, 2}), .mode = mode, .padding_idx = 1}));
    op.cases.push_back(bag_case({.ids = line,
                                 .offsets = ids_of({3}, {0, 2, 4}),
                                 .mode = mode,
                                 .include_last_offset = true,
                                 .padding_idx = -5}));
    op.cases.push_back(bag_case({.ids = ids_of({2, 0}, {}), .mode = mode}));
    op.large.push_back(bag_case(
        {.ids = scattered_ids({701, 5}, 517), .mode = mode, .padding_idx = 3, .vocabulary = 517, .dim = 61}));
  }
  op.cases.push_back(bag_case({.ids = table, .mode = BagMode::sum, .weighted = true, .padding_idx = 5}));
  op.cases.push_back(
      bag_case({.ids = line, .offsets = ids_of({2}, {0, 3}), .mode = BagMode::sum, .weighted = true}));
  op.errors = {
      error<IndexError>("embedding_bag: ids must be in [0, 6), got 7",
                        [] {
                          xgrad::embedding_bag(ids_of({1, 1}, {7}), x(6, 4));
                        }),
      error<IndexError>("embedding_bag: padding_idx must be in [-6, 6), got 6",
                        [] {
                          xgrad::embedding_bag(ids_of({1, 1}, {0}), x(6, 4), {.padding_idx = 6});
                        }),
      error<IndexError>("embedding_bag: offsets must begin with 0 and ascend to at most the 2 ids, got 1",
                        [] {
                          xgrad::embedding_bag(ids_of({2}, {0, 1}), x(6, 4), {.offsets = ids_of({1}, {1})});
                        }),
      error<IndexError>(
          "embedding_bag: offsets must begin with 0 and ascend to at most the 2 ids, got 3",
          [] {
            xgrad::embedding_bag(ids_of({2}, {0, 1}), x(6, 4), {.offsets = ids_of({2}, {0, 3})});
          }),
      error<ShapeError>("embedding_bag: ids without offsets must be (bags, length), got (2)",
                        [] {
                          xgrad::embedding_bag(ids_of({2}, {0, 1}), x(6, 4));
                        }),
      error<ShapeError>("embedding_bag: ids and offsets must be (n) and (bags), got (1, 1) and (1)",
                        [] {
                          xgrad::embedding_bag(ids_of({1, 1}, {0}), x(6, 4), {.offsets = ids_of({1}, {0})});
                        }),
      error<ShapeError>("embedding_bag: weight must have the axes (vocabulary, dim), got (6)",
                        [] {
                          xgrad::embedding_bag(ids_of({1, 1}, {0}), x(6));
                        }),
      error<ShapeError>("embedding_bag: per_sample_weights must have the shape of ids (1, 1), got (1)",
                        [] {
                          xgrad::embedding_bag(ids_of({1, 1}, {0}), x(6, 4),
                                               {.mode = BagMode::sum, .per_sample_weights = x(1)});
                        }),
      error<ValueError>("embedding_bag: per_sample_weights are for sums", [] {
        xgrad::embedding_bag(ids_of({1, 1}, {0}), x(6, 4), {.per_sample_weights = x(1, 1)});
      })};
  return std::vector<Op>{op};
});

BagMode mode_of(const std::string& name) {
  if (name == "sum") return BagMode::sum;
  if (name == "mean") return BagMode::mean;
  if (name == "max") return BagMode::max;
  throw ValueError("there is no mode '" + name + "'");
}

const Conformance conformance{{"embedding_bag", []<class T>(const Call<T>& c) {
                                 xgrad::EmbeddingBagOptions<T> options{
                                     .mode = mode_of(c.text("mode")),
                                     .per_sample_weights = c.optional(3),
                                     .include_last_offset = c.flag("include_last_offset")};
                                 if (c.has(2)) options.offsets = c.ids(2);
                                 if (c.has_attr("padding_idx"))
                                   options.padding_idx = c.integer("padding_idx");
                                 return embedding_bag(c.ids(1), c.x(), options);
                               }}};

/// Without equal rows, whose maxima have several gradients.
bool has_no_equal_elements(const Array<double>& x) {
  for (std::size_t column = 0; column < x.shape()[1]; ++column) {
    for (std::size_t i = 0; i < x.shape()[0]; ++i)
      for (std::size_t k = 0; k < i; ++k)
        if (std::abs(x(i, column) - x(k, column)) < 1e-4) return false;
  }
  return true;
}

void draw_embedding_bag(Drawing& d) {
  const Name weight = d.numbers(d.shape(2, 2));
  if (d.value(weight).size() == 0) return;
  const std::string mode = d.one_of<std::string>({"sum", "mean", "max"});
  if (mode == "max" && !has_no_equal_elements(d.value(weight))) return;
  const Shape shape{1 + d.below(3), 1 + d.below(3)};
  const Name ids = d.ids(shape, d.shape(weight)[0]);
  const Name factors = mode == "sum" && d.chance(0.5) ? d.numbers(shape) : Name();
  d.call("embedding_bag", {weight, ids, "", factors},
         {{"mode", mode}, {"include_last_offset", false}, {"padding_idx", nullptr}});
}

const Draws draws{{"embedding_bag", draw_embedding_bag}};

TEST(EmbeddingBagTest, TheFirstOfEqualRowsHasTheGradientOfAMaximum) {
  const Variable<float> weight(Array<float>{{2, 0}, {2, 1}, {1, 1}}, true);
  embedding_bag(Ids{{2, 1, 0}}, weight, {.mode = BagMode::max})
      .backward(Variable<float>(Array<float>{{3, 4}}));
  EXPECT_EQ(weight.grad().value(), (Array<float>{{0, 0}, {3, 0}, {0, 4}}));
}

}  // namespace xgrad_tests::embedding_bag_rows
