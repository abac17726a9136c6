// What there is to test of layer_norm and add_layer_norm.
#include <xgrad/ops/norm/layer_norm.hpp>

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/expect_near.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::layer_norm_rows {

using naive::at, naive::generated, naive::Numbers, naive::Arguments;

Reference naive_layer_norm(std::size_t axes, bool weight, bool bias, double eps) {
  return [=](const Arguments& x) {
    const Shape& shape = x[0].shape();
    const Shape inner(shape.end() - static_cast<std::ptrdiff_t>(axes), shape.end());
    const double count = static_cast<double>(xgrad::element_count(inner));
    Shape kept = shape;
    std::fill(kept.end() - static_cast<std::ptrdiff_t>(axes), kept.end(), 1);
    const Numbers mean = naive::sum_over(x[0], kept);
    const Numbers squares = generated(
        shape, [&](const Shape& index) { return std::pow(at(x[0], index) - at(mean, index) / count, 2); });
    const Numbers variance = naive::sum_over(squares, kept);
    return generated(shape, [&](const Shape& index) {
      double y = (at(x[0], index) - at(mean, index) / count) / std::sqrt(at(variance, index) / count + eps);
      if (weight) y *= at(x[1], index);
      if (bias) y += at(x.back(), index);
      return y;
    });
  };
}

struct LayerNormSample {
  Shape shape;
  std::size_t axes;
  bool weight, bias;
  double eps;
};

std::vector<LayerNormSample> samples() {
  return {{{2, 3}, 1, true, true, 1e-5}, {{2, 3}, 1, false, false, 1e-5},  {{2, 3}, 1, true, false, 0.1},
          {{2, 3}, 1, false, true, 0.1}, {{2, 3, 4}, 2, true, true, 1e-5}, {{2, 2, 3}, 1, true, true, 1e-5},
          {{4}, 1, true, true, 1e-5},    {{3, 1}, 1, true, true, 1e-5},    {{0, 3}, 1, true, true, 1e-5},
          {{5, 33}, 1, true, true, 1e-5}};
}

/// Many rows, long ones and short ones.
std::vector<LayerNormSample> large_samples() {
  return {{{517, 203}, 1, true, true, 1e-5},
          {{3, 50001}, 1, true, false, 1e-5},
          {{30001, 5}, 1, false, true, 0.1},
          {{301, 103}, 1, false, false, 1e-5}};
}

/// f is given the inputs (x, and a residual if there is one, weight and bias where they are there), which of
/// weight and bias are there, normalized_shape and eps.
template <class F>
std::vector<Case> layer_norm_cases(const std::vector<LayerNormSample>& samples, bool residual, const F& f) {
  std::vector<Case> cases;
  for (const auto& [shape, axes, weight, bias, eps] : samples) {
    const Shape inner(shape.end() - static_cast<std::ptrdiff_t>(axes), shape.end());
    std::vector<Input> inputs(residual ? 2 : 1, shape);
    if (weight) inputs.push_back(inner);
    if (bias) inputs.push_back(inner);
    const auto call = [f, inner, weight = weight, bias = bias, eps = eps](const auto& x) {
      const typename std::decay_t<decltype(x)>::value_type none;
      return f(x, weight ? x[x.size() - (bias ? 2 : 1)] : none, bias ? x.back() : none, inner, eps);
    };
    const Reference normalized = naive_layer_norm(axes, weight, bias, eps);
    const Reference of_sum = [normalized](const auto& x) {
      auto inputs = x;
      inputs.erase(inputs.begin());
      inputs[0] += x[0];
      return normalized(inputs);
    };
    cases.push_back(make_case(inputs, call, residual ? of_sum : normalized));
  }
  return cases;
}

Op layer_norm_op() {
  const auto f = [](const auto& x, const auto& weight, const auto& bias, const Shape& inner, double eps) {
    return xgrad::layer_norm(x[0], inner, weight, bias, eps);
  };
  return {"layer_norm",
          layer_norm_cases(samples(), false, f),
          {error<ShapeError>("layer_norm: the last axes of x must be normalized_shape (4), got x (2, 3)",
                             [] { xgrad::layer_norm(x(2, 3), 4); }),
           error<ShapeError>("layer_norm: the last axes of x must be normalized_shape (2, 3), got x (3)",
                             [] {
                               xgrad::layer_norm(x(3), {2, 3});
                             }),
           error<ValueError>("layer_norm: eps must be at least 0, got -1",
                             [] { xgrad::layer_norm(x(2, 3), 3, {}, {}, -1); }),
           error<ShapeError>("layer_norm: weight must have normalized_shape (3), got (2)",
                             [] { xgrad::layer_norm(x(2, 3), 3, x(2)); }),
           error<ShapeError>("layer_norm: bias must have normalized_shape (3), got (1, 3)",
                             [] { xgrad::layer_norm(x(2, 3), 3, {}, x(1, 3)); })},
          layer_norm_cases(large_samples(), false, f)};
}

Op add_layer_norm_op() {
  const auto f = [](const auto& x, const auto& weight, const auto& bias, const Shape& inner, double eps) {
    return xgrad::add_layer_norm(x[0], x[1], inner, weight, bias, eps);
  };
  return {"layer_norm.add_layer_norm",
          layer_norm_cases(samples(), true, f),
          {error<ShapeError>("add_layer_norm: x and residual must have the same shape, got (2, 3) and (1, 3)",
                             [] { xgrad::add_layer_norm(x(2, 3), x(1, 3), 3); }),
           error<ShapeError>("add_layer_norm: the last axes of x must be normalized_shape (4), got x (2, 3)",
                             [] { xgrad::add_layer_norm(x(2, 3), x(2, 3), 4); }),
           error<ShapeError>("add_layer_norm: weight must have normalized_shape (3), got (2)",
                             [] { xgrad::add_layer_norm(x(2, 3), x(2, 3), 3, x(2)); })},
          layer_norm_cases(large_samples(), true, f)};
}

const Rows rows([] { return std::vector<Op>{layer_norm_op(), add_layer_norm_op()}; });

const Conformance conformance{{"layer_norm",
                               [](const auto& c) {
                                 return layer_norm(c.x(), c.dims("normalized_shape"), c.optional(1),
                                                   c.optional(2), c.number("eps"));
                               }},
                              {"add_layer_norm", [](const auto& c) {
                                 return add_layer_norm(c.x(), c.x(1), c.dims("normalized_shape"),
                                                       c.optional(2), c.optional(3), c.number("eps"));
                               }}};

TEST(LayerNormTest, EpsIsAHundredThousandthUnlessGiven) {
  const Variable<double> x(Array<double>{-0.001, 0.001}), zero(Array<double>{0, 0});
  const double expected = 0.001 / std::sqrt(1e-6 + 1e-5);
  EXPECT_NEAR(layer_norm(x, 2).value()(1), expected, 1e-14);
  EXPECT_NEAR(add_layer_norm(x, zero, 2).value()(1), expected, 1e-14);
}

TEST(LayerNormTest, TheBiasMayChangeBeforeBackwardAndNothingElse) {
  const Variable<double> x(Array<double>{{1, 2, 4}}, true), weight(Array<double>{1, 2, 3}, true),
      bias(Array<double>{0, 1, 2}, true);
  const Array<double> seed{{1, 10, 100}};
  for (const bool residual : {false, true}) {
    const auto normalize = [&] {
      return residual ? add_layer_norm(x, x, 3, weight, bias) : layer_norm(x, 3, weight, bias);
    };
    const auto expected = grad(normalize(), {x, weight, bias}, {.seed = Variable<double>(seed)});
    const Variable<double> y = normalize();
    bias.assign(Array<double>{7, 8, 9});
    const auto found = grad(y, {x, weight, bias}, {.seed = Variable<double>(seed), .retain_graph = true});
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(found[i].value(), expected[i].value());
    weight.assign(Array<double>(weight.value()));
    EXPECT_NE(message_of<xgrad::GraphError>([&] {
                grad(y, {x}, {.seed = Variable<double>(seed)});
              }).find("was changed in place"),
              std::string::npos);
  }
}

/// normalized_shape and eps for x, and the weight and bias that there may be.
void draw_norm(Drawing& d, const char* op, std::vector<Name> inputs) {
  const Shape& shape = d.shape(inputs.front());
  const Shape inner(shape.end() - static_cast<std::ptrdiff_t>(1 + d.below(shape.size())), shape.end());
  for (std::size_t parameter = 0; parameter < 2; ++parameter)
    inputs.push_back(d.chance(0.6) ? d.numbers(inner) : Name());
  d.call(op, inputs, {{"normalized_shape", listed(inner)}, {"eps", d.one_of({1e-5, 1e-2, 0.3})}});
}

void draw_layer_norm(Drawing& d) { draw_norm(d, "layer_norm", {d.numbers(1)}); }

void draw_add_layer_norm(Drawing& d) {
  const Name x = d.numbers(1);
  draw_norm(d, "add_layer_norm", {x, d.numbers(d.shape(x))});
}

const Draws draws{{"layer_norm", draw_layer_norm}, {"add_layer_norm", draw_add_layer_norm}};

TEST(LayerNormTest, ConstantRowsAndLargeMeansAreExact) {
  const Variable<float> flat(Array<float>{{3, 3, 3, 3}}, true);
  const Variable<float> y = layer_norm(flat, 4);
  EXPECT_EQ(y.value(), (Array<float>{{0, 0, 0, 0}}));
  y.backward(Variable<float>(Array<float>{{1, 2, 3, 4}}));
  for (const float element : flat.grad().value()) EXPECT_TRUE(std::isfinite(element));

  const Array<float> shifted{{10000, 10001, 10002, 10003}}, centred{{-1.5, -0.5, 0.5, 1.5}};
  expect_near(layer_norm(Variable<float>(shifted), 4).value(),
              layer_norm(Variable<float>(centred), 4).value(), 1e-6, "layer_norm");
}

/// Numbers whose mean, 1e7 + 3/2, is no float and whose sum has lost the digits of their differences.
TEST(LayerNormTest, RowsWithALargeOffsetHaveTheGradientsOfTheirDeviations) {
  const Variable<float> far(Array<float>{{1e7F, 1e7F + 1, 1e7F + 2, 1e7F + 3}}, true);
  const Variable<float> near(Array<float>{{-1.5F, -0.5F, 0.5F, 1.5F}}, true);
  const Variable<float> weight(Array<float>{1, 2, 3, 4}, true), bias(Array<float>{0, 1, 0, 1});
  const Variable<float> zeros(Array<float>({1, 4}, 0.0F));
  const Variable<float> seed(Array<float>{{1, -2, 3, 5}});
  const Variable<float> expected = layer_norm(near, 4, weight, bias);
  const auto grads = grad(expected, {near, weight}, {.seed = seed});
  for (const bool added : {false, true}) {
    const Variable<float> y =
        added ? xgrad::add_layer_norm(far, zeros, 4, weight, bias) : layer_norm(far, 4, weight, bias);
    expect_near(y.value(), expected.value(), 1e-6, "y");
    const auto of_far = grad(y, {far, weight}, {.seed = seed});
    expect_near(of_far[0].value(), grads[0].value(), 1e-5, "dx");
    expect_near(of_far[1].value(), grads[1].value(), 1e-5, "dweight");
  }
}

}  // namespace xgrad_tests::layer_norm_rows
