// What there is to test of linear_cross_entropy.
#include <xgrad/ops/loss/linear_cross_entropy.hpp>

#include <cmath>
#include <optional>
#include <random>

#include <gtest/gtest.h>

#include <xgrad/ops/loss/cross_entropy.hpp>
#include <xgrad/ops/product/linear.hpp>
#include <xgrad/ops/reduce/reductions.hpp>

#include "../common/expect_near.hpp"
#include "../common/losses.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::linear_cross_entropy_rows {

using naive::at, naive::filled, naive::generated, naive::Arguments, naive::Numbers;
using xgrad::LinearCrossEntropyOptions, xgrad::linear_cross_entropy, xgrad::Reduction;

/// How x, weight and perhaps a bias are compared with the target; class c has the weight c + 1, if any.
struct Comparison {
  Ids target;
  Reduction reduction = Reduction::mean;
  std::int64_t ignore_index = -100;
  double smoothing = 0;
  bool weighted = false;

  double class_weight(std::size_t c) const { return weighted ? static_cast<double>(c + 1) : 1; }
};

Reference naive_linear_cross_entropy(Comparison how) {
  return [how](const Arguments& x) {
    const std::size_t classes = x[1].shape()[0], in = x[1].shape()[1];
    long double total = 0, count = 0;
    const Numbers losses = generated(how.target.shape(), [&](const Shape& place) {
      const std::int64_t id = at(how.target, place);
      if (id == how.ignore_index) return 0.0;
      std::vector<long double> logits(classes, 0);
      long double sum = 0;
      for (std::size_t c = 0; c < classes; ++c) {
        for (std::size_t i = 0; i < in; ++i) {
          Shape index = place;
          index.push_back(i);
          logits[c] += static_cast<long double>(at(x[0], index)) * x[1](c, i);
        }
        if (x.size() > 2) logits[c] += x[2](c);
        sum += std::exp(logits[c]);
      }
      long double loss = 0;
      for (std::size_t c = 0; c < classes; ++c) {
        const double own = static_cast<std::size_t>(id) == c ? 1 - how.smoothing : 0;
        loss += (own + how.smoothing / static_cast<double>(classes)) * how.class_weight(c) *
                (std::log(sum) - logits[c]);
      }
      total += loss;
      count += how.class_weight(static_cast<std::size_t>(id));
      return static_cast<double>(loss);
    });
    if (how.reduction == Reduction::none) return losses;
    return filled({}, static_cast<double>(how.reduction == Reduction::sum ? total : total / count));
  };
}

Case case_of(std::vector<Input> inputs, Comparison how) {
  const auto call = [how](const auto& x) {
    using V = typename std::decay_t<decltype(x)>::value_type;
    using T = typename V::value_type;
    LinearCrossEntropyOptions<T> options{
        .ignore_index = how.ignore_index, .reduction = how.reduction, .label_smoothing = how.smoothing};
    if (x.size() > 2) options.linear_bias = x[2];
    if (how.weighted) {
      auto weights = xgrad::Array<T>::from_shape({x[1].shape(0)});
      for (std::size_t c = 0; c < weights.size(); ++c) weights(c) = static_cast<T>(how.class_weight(c));
      options.weight = V(weights);
    }
    return linear_cross_entropy(x[0], x[1], how.target, options);
  };
  return make_case(std::move(inputs), call, naive_linear_cross_entropy(how));
}

Op linear_cross_entropy_op() {
  Op op{"linear_cross_entropy"};
  const Ids some = ids_of({4}, {2, -1, 1, -1});
  for (const Reduction reduction : {Reduction::none, Reduction::sum, Reduction::mean}) {
    op.cases.push_back(case_of({{2, 3}, {4, 3}}, {ids_of({2}, {3, 0}), reduction}));
    op.cases.push_back(case_of({{3}, {2, 3}, {2}}, {ids_of({}, {1}), reduction}));
    op.cases.push_back(case_of({{2, 2, 3}, {3, 3}, {3}}, {ids_of({2, 2}, {2, 0, 1, 1}), reduction}));
    op.cases.push_back(case_of({{4, 2}, {3, 2}, {3}}, {some, reduction, -1, 0.2, true}));
    op.cases.push_back(case_of({{4, 2}, {3, 2}}, {some, reduction, -1, 0.3}));
    op.cases.push_back(case_of({{3, 5}, {17, 5}}, {ids_of({3}, {16, 0, 5}), reduction}));
  }
  op.cases.push_back(case_of({{2, 3}, {2, 3}, {2}}, {ids_of({2}, {-100, -100}), Reduction::sum}));
  op.cases.push_back(case_of({{0, 3}, {2, 3}, {2}}, {ids_of({0}, {}), Reduction::sum}));
  op.cases.push_back(case_of({{2, 0}, {2, 0}}, {ids_of({2}, {0, 1})}));
  // more rows than are worked on at once
  for (const Reduction reduction : {Reduction::none, Reduction::mean})
    op.large.push_back(case_of({{2051, 3}, {41, 3}, {41}}, {scattered_ids({2051}, 41), reduction, 1, 0.1}));
  const auto refused = [](const char* text, Shape of_x, Shape weight, Ids target,
                          LinearCrossEntropyOptions<float> options = {}) {
    return error<ShapeError>(text, [=] { linear_cross_entropy(x(of_x), x(weight), target, options); });
  };
  const Ids two = ids_of({2}, {0, 1});
  op.errors = {
      refused("linear_cross_entropy: weight must have the axes (classes, in), got (3)", {2, 3}, {3}, two),
      refused(
          "linear_cross_entropy: the last axis of x must be weight's last, got x (2, 3) and weight (4, 2)",
          {2, 3}, {4, 2}, two),
      refused("linear_cross_entropy: linear_bias must have shape (4) to fit weight (4, 3), got (3)", {2, 3},
              {4, 3}, two, {.linear_bias = x(3)}),
      refused("linear_cross_entropy: weight must be (4), got (3)", {2, 3}, {4, 3}, two, {.weight = x(3)}),
      refused("linear_cross_entropy: target must have the shape of x without the last axis, got x (3, 3) and "
              "target (2)",
              {3, 3}, {4, 3}, two),
      error<ValueError>("linear_cross_entropy: label_smoothing must be in [0, 1], got -1",
                        [two] { linear_cross_entropy(x(2, 3), x(4, 3), two, {.label_smoothing = -1}); }),
      error<IndexError>("linear_cross_entropy: target must be in [0, 4), got 4 (4 classes)", [] {
        linear_cross_entropy(x(2, 3), x(4, 3), ids_of({2}, {0, 4}));
      })};
  return op;
}

const Rows rows([] { return std::vector<Op>{linear_cross_entropy_op()}; });

const Conformance conformance{
    {"linear_cross_entropy", []<class T>(const Call<T>& c) {
       return linear_cross_entropy(
           c.x(), c.x(1), c.ids(2),
           LinearCrossEntropyOptions<T>{.linear_bias = c.optional(3),
                                        .weight = c.optional(4),
                                        .ignore_index = c.integer("ignore_index"),
                                        .reduction = reduction(c),
                                        .label_smoothing = c.number("label_smoothing")});
     }}};

void draw_linear_cross_entropy(Drawing& d) {
  const Name x = d.numbers(1);
  const Shape& shape = d.shape(x);
  const std::size_t classes = 1 + d.below(4);
  const Name weight = d.numbers(Shape{classes, shape.back()});
  const Name target = d.ids(Shape(shape.begin(), shape.end() - 1), classes);
  const Name bias = d.chance(0.5) ? d.numbers(Shape{classes}) : Name();
  const Name class_weight = d.constant(Shape{classes}, {0.5, 2});
  const Ids& ids = *d.values().at(target).ids;
  const bool ignored = ids.size() > 0 && d.chance(0.3);
  d.call("linear_cross_entropy", {x, weight, target, bias, d.chance(0.4) ? class_weight : Name()},
         {{"reduction", draw_reduction(d)},
          {"ignore_index", ignored ? static_cast<std::ptrdiff_t>(ids.data()[0]) : -100},
          {"label_smoothing", d.one_of({0.0, 0.0, 0.1, 1.0})}});
}

const Draws draws{{"linear_cross_entropy", draw_linear_cross_entropy}};

/// Where all logits are held at once, too.
template <class T>
Variable<T> two_ops(const Variable<T>& x, const Variable<T>& weight, const Ids& target,
                    const LinearCrossEntropyOptions<T>& options) {
  return cross_entropy(linear(x, weight, options.linear_bias), target,
                       {.weight = options.weight,
                        .ignore_index = options.ignore_index,
                        .reduction = options.reduction,
                        .label_smoothing = options.label_smoothing});
}

/// Rows in blocks: the number of logits that are held at once ends one, or the number of rows.
TEST(LinearCrossEntropyTest, BlocksOfRowsAgreeWithTheTwoOps) {
  std::mt19937_64 random(0);
  const auto leaf = [&](const Shape& shape) {
    return Variable<float>(Array<float>(draw(Input{shape}, random)), true);
  };
  for (const auto& [count, classes, in] :
       {std::array<std::size_t, 3>{2500, 30, 16}, std::array<std::size_t, 3>{7, 4000001, 2}}) {
    const Variable<float> x = leaf({count, in}), weight = leaf({classes, in}), bias = leaf({classes});
    const Ids target = scattered_ids({count}, classes);
    const LinearCrossEntropyOptions<float> options{.linear_bias = bias, .ignore_index = target(1)};
    const Variable<float> loss = linear_cross_entropy(x, weight, target, options);
    const Variable<float> expected = two_ops(x, weight, target, options);
    EXPECT_NEAR(loss.item(), expected.item(), 2e-6 * expected.item());
    const auto found = grad(loss, {x, weight, bias}), exact = grad(expected, {x, weight, bias});
    for (std::size_t i = 0; i < 3; ++i) expect_near(found[i].value(), exact[i].value(), 2e-5, "gradient");
  }
}

/// Gradients are computed before it is known what they are multiplied by, and may be asked for again.
TEST(LinearCrossEntropyTest, GradientsAreMultipliedByThatOfTheLoss) {
  const Variable<double> x(Array<double>{{1, 2}, {0, -1}}, true),
      weight(Array<double>{{1, 0}, {0.5, 1}, {-1, 2}}, true);
  const Variable<double> loss = linear_cross_entropy(x, weight, Ids{2, 0});
  const auto once = grad(loss, {x, weight}, {.retain_graph = true});
  const auto thrice = grad(loss, {x, weight}, {.seed = Variable<double>(3.0), .retain_graph = true});
  loss.backward();
  for (std::size_t i = 0; i < 2; ++i)
    expect_near(thrice[i].value(), Array<double>(3 * once[i].value()), 1e-15, "3 d");
  EXPECT_EQ(weight.grad().value(), once[1].value());
}

/// As it holds no logits for the backward, what it was computed from may change where it has its gradients.
TEST(LinearCrossEntropyTest, OperandsOfAMeanMayChangeBeforeBackward) {
  const Variable<double> x(Array<double>{{1, 2}, {0, -1}}, true),
      weight(Array<double>{{1, 0}, {0.5, 1}, {-1, 2}}, true);
  const auto expected = grad(linear_cross_entropy(x, weight, Ids{2, 0}), {x});
  const Variable<double> loss = linear_cross_entropy(x, weight, Ids{2, 0});
  weight.assign(Array<double>(Shape{3, 2}, 7.0));
  EXPECT_EQ(grad(loss, {x}, {.retain_graph = true})[0].value(), expected[0].value());
  EXPECT_NE(message_of<xgrad::GraphError>([&] {
              grad(loss, {x}, {.create_graph = true});
            }).find("was changed in place"),
            std::string::npos);
}

TEST(LinearCrossEntropyTest, LargeLogitsDoNotOverflowAndTheMeanOverNoTargetIsNan) {
  const Variable<float> x(Array<float>{{1000, 0}, {0, 1000}}, true),
      weight(Array<float>{{1, 0}, {0, 1}}, true);
  const Variable<float> loss = linear_cross_entropy(x, weight, Ids{1, 1});
  EXPECT_EQ(loss.item(), 500);
  loss.backward();
  EXPECT_EQ(x.grad().value(), (Array<float>{{0.5, -0.5}, {0, 0}}));
  const Variable<float> none = linear_cross_entropy(x, weight, Ids{-100, -100});
  EXPECT_TRUE(std::isnan(none.item()));
  EXPECT_EQ(grad(none, {weight})[0].value(), (Array<float>{{0, 0}, {0, 0}}));
}

}  // namespace xgrad_tests::linear_cross_entropy_rows
