// A check is worth what it refuses: functions whose backward is wrong in the ways that backwards go wrong.

#include <xgrad/autograd/gradcheck.hpp>

#include <cmath>
#include <limits>
#include <ostream>
#include <random>

#include <gtest/gtest.h>

#include <xgrad/graph/record.hpp>
#include <xgrad/ops/index/indexing.hpp>
#include <xgrad/ops/index/masked_fill.hpp>
#include <xgrad/ops/norm/layer_norm.hpp>
#include <xgrad/ops/norm/softmax.hpp>
#include <xgrad/ops/pointwise/broadcast.hpp>
#include <xgrad/ops/pointwise/elementwise.hpp>
#include <xgrad/ops/product/matmul.hpp>
#include <xgrad/ops/reduce/reductions.hpp>
#include <xgrad/ops/shape/shapes.hpp>

#include "expect_error.hpp"

namespace gradcheck_test {

constexpr xgrad::Op unary_op("unary", {"x"}), permute_op("permute", {"x"}), mask_op("mask", {"x"}),
    slice_op("slice", {"x"}), gather_op("gather", {"x"}), softmax_op("softmax", {"x"}),
    norm_op("norm", {"x"}), mean_op("mean", {"x"}), rounded_op("rounded", {"x"}),
    unsteady_op("unsteady", {"x"}), exp_op("exp", {"x"}), square_op("square", {"x"});
constexpr xgrad::Op binary_op("binary", {"a", "b"}), square_grad_op("square_grad", {"a", "b"});

using xgrad::Array, xgrad::CheckedFunction, xgrad::GradcheckOptions, xgrad::GradcheckReport, xgrad::Grads;
using xgrad::gradcheck, xgrad::gradgradcheck, xgrad::Needs, xgrad::Inputs, xgrad::Output, xgrad::record,
    xgrad::Saved, xgrad::Shape;
using xgrad_tests::message_of;
using V = xgrad::Variable<double>;

V leaf(const Shape& shape, std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(0.5, 2);
  Array<double> x = Array<double>::from_shape(shape);
  for (double& element : x.storage()) element = uniform(random);
  return V(x, true);
}

std::vector<V> leaves(const std::vector<Shape>& shapes) {
  std::vector<V> result;
  for (const Shape& shape : shapes) result.push_back(leaf(shape, result.size() + 1));
  return result;
}

/// A function and the shapes of its inputs.
struct Example {
  const char* name;
  std::vector<Shape> shapes;
  CheckedFunction f;

  friend std::ostream& operator<<(std::ostream& out, const Example& example) { return out << example.name; }
};

std::string name_of(const testing::TestParamInfo<Example>& info) { return info.param.name; }

/// y = f(x) with this backward of dy and x.
template <class Backward>
CheckedFunction unary(double (*f)(double), Backward backward) {
  return [f, backward](const std::vector<V>& x) {
    Array<double> y = x[0].value();
    for (double& element : y.storage()) element = f(element);
    return record<double>(unary_op, V(y), Inputs(x[0]), Saved(x[0]),
                          [backward](V dy, Needs, V x) -> Grads<double, 1> { return {backward(dy, x)}; });
  };
}

/// y = f(a, b), of any shapes, with this backward of dy, a and b.
template <class Forward, class Backward>
CheckedFunction binary(Forward f, Backward backward) {
  return [f, backward](const std::vector<V>& x) {
    V y;
    {
      const xgrad::NoGrad guard;
      y = f(x[0], x[1]);
    }
    return record<double>(
        binary_op, std::move(y), Inputs(x[0], x[1]), Saved(x[0], x[1]),
        [backward](V dy, Needs, V a, V b) -> Grads<double, 2> { return backward(dy, a, b); });
  };
}

double square(double x) { return x * x; }
double cube(double x) { return x * x * x; }
double identity(double x) { return x; }
double tanh_of(double x) { return std::tanh(x); }
double exp_of(double x) { return std::exp(x); }

/// dy with one of its elements replaced.
V with_element(const V& dy, std::size_t element, double value) {
  Array<double> changed = dy.value();
  changed.data()[element] = value;
  return V(changed);
}

// Wrong gradients

std::vector<Example> wrong_gradients() {
  return {
      {"missing_factor", {{3}}, unary(cube, [](V dy, V x) { return dy * x * x; })},
      {"one_percent_off", {{3}}, unary(square, [](V dy, V x) { return dy * x * 2.02; })},
      {"wrong_sign",
       {{3}, {3}},
       binary([](V a, V b) { return a - b; },
              [](V dy, V, V) {
                return Grads<double, 2>{dy, dy};
              })},
      {"gradient_of_the_output_ignored", {{3}}, unary(square, [](V, V x) { return x * 2.0; })},
      {"gradient_of_the_output_squared", {{3}}, unary(identity, [](V dy, V) { return dy * dy; })},
      {"input_instead_of_output", {{3}}, unary(exp_of, [](V dy, V x) { return dy * x; })},
      {"derivative_of_another_function", {{3}}, unary(tanh_of, [](V dy, V x) { return dy * (1.0 - x * x); })},
      {"operands_swapped",
       {{3}, {3}},
       binary([](V a, V b) { return a * b; },
              [](V dy, V a, V b) {
                return Grads<double, 2>{dy * a, dy * b};
              })},
      {"one_gradient_missing",
       {{3}, {3}},
       binary([](V a, V b) { return a * b; },
              [](V dy, V, V b) {
                return Grads<double, 2>{dy * b, V()};
              })},
      {"first_row_instead_of_the_sum",
       {{2, 3}, {3}},
       binary([](V a, V b) { return a + b; },
              [](V dy, V, V) {
                return Grads<double, 2>{dy, select(dy, 0, 0)};
              })},
      {"mean_instead_of_the_sum",
       {{2, 3}, {3}},
       binary([](V a, V b) { return a + b; },
              [](V dy, V, V) {
                return Grads<double, 2>{dy, mean(dy, 0)};
              })},
      {"transposed",
       {{3, 3}, {3, 3}},
       binary([](V a, V b) { return matmul(a, b); },
              [](V dy, V a, V b) {
                return Grads<double, 2>{transpose(matmul(dy, transpose(b, 0, 1)), 0, 1),
                                        matmul(transpose(a, 0, 1), dy)};
              })},
      {"factor_not_transposed",
       {{3, 3}, {3, 3}},
       binary([](V a, V b) { return matmul(a, b); },
              [](V dy, V a, V b) {
                return Grads<double, 2>{matmul(dy, b), matmul(transpose(a, 0, 1), dy)};
              })},
      {"permuted_forward_instead_of_back",
       {{2, 2, 2}},
       [](const std::vector<V>& x) {
         return record<double>(permute_op, permute(x[0].detach(), {1, 2, 0}), Inputs(x[0]), Saved(),
                               [](V dy, Needs) -> Grads<double, 1> {
                                 return {permute(dy, {1, 2, 0})};
                               });
       }},
      {"not_masked",
       {{4}},
       [](const std::vector<V>& x) {
         return record<double>(mask_op, masked_fill(x[0].detach(), {false, true, false, true}, 0),
                               Inputs(x[0]), Saved(), [](V dy, Needs) -> Grads<double, 1> { return {dy}; });
       }},
      {"slice_off_by_one",
       {{5}},
       [](const std::vector<V>& x) {
         return record<double>(slice_op, slice(x[0].detach(), 0, 1, 4), Inputs(x[0]), Saved(),
                               [](V dy, Needs) -> Grads<double, 1> {
                                 return {xgrad::cat({dy, V(Array<double>{0, 0})})};
                               });
       }},
      {"repeated_ids_overwrite",
       {{3}},
       [](const std::vector<V>& x) {
         const Array<double>& from = x[0].value();
         return record<double>(gather_op, V(Array<double>{from(1), from(0), from(1)}), Inputs(x[0]), Saved(),
                               [](V dy, Needs) -> Grads<double, 1> {
                                 return {V(Array<double>{dy.value()(1), dy.value()(2), 0})};
                               });
       }},
      {"accumulation_dropped", {{3}}, [](const std::vector<V>& x) { return x[0] * x[0].detach(); }},
      {"detached_branch", {{3}}, [](const std::vector<V>& x) { return exp(x[0]) + exp(x[0].detach()); }},
      {"no_graph_at_all", {{3}}, [](const std::vector<V>& x) { return V(x[0].value() * 2); }},
      {"softmax_without_the_sum",
       {{2, 3}},
       [](const std::vector<V>& x) {
         return record<double>(softmax_op, softmax(x[0].detach()), Inputs(x[0]), Saved(Output()),
                               [](V dy, Needs, V y) -> Grads<double, 1> { return {y * dy}; });
       }},
      {"layer_norm_without_the_mean_of_the_gradient",
       {{2, 4}},
       [](const std::vector<V>& x) {
         return record<double>(norm_op, layer_norm(x[0].detach(), 4, {}, {}, 0), Inputs(x[0]),
                               Saved(x[0], Output()), [](V dy, Needs, V x, V y) -> Grads<double, 1> {
                                 const V centred = x - mean(x, 1, {.keepdim = true});
                                 const V rstd = 1.0 / sqrt(mean(centred * centred, 1, {.keepdim = true}));
                                 return {rstd * (dy - y * mean(dy * y, 1, {.keepdim = true}))};
                               });
       }},
      {"mean_not_divided",
       {{4}},
       [](const std::vector<V>& x) {
         return record<double>(
             mean_op, mean(x[0].detach()), Inputs(x[0]), Saved(),
             [](V dy, Needs needs) -> Grads<double, 1> { return {broadcast_to(dy, needs.shape(0))}; });
       }},
      {"last_element_wrong", {{2, 3}}, unary(identity, [](V dy, V) { return with_element(dy, 5, 0); })},
      {"nan_in_the_gradient",
       {{2, 3}},
       unary(identity, [](V dy, V) { return with_element(dy, 1, std::nan("")); })},
      {"infinite_gradient",
       {{3}},
       unary(identity, [](V dy, V) { return with_element(dy, 0, std::numeric_limits<double>::infinity()); })},
      {"nan_in_the_value", {{3}}, [](const std::vector<V>& x) { return log(x[0] - 1.2); }},
      {"rounded_to_float",
       {{3}},
       [](const std::vector<V>& x) {
         const V y = exp(x[0]);
         return record<double>(rounded_op, V(xt::cast<double>(xt::cast<float>(y.value()))), Inputs(y),
                               Saved(), [](V dy, Needs) -> Grads<double, 1> { return {dy}; });
       }},
      {"another_value_each_time",
       {{3}},
       [calls = std::make_shared<int>(0)](const std::vector<V>& x) {
         return x[0] * (1.0 + 1e-3 * ++*calls);
       }},
      {"another_gradient_each_time",
       {{3}},
       [calls = std::make_shared<int>(0)](const std::vector<V>& x) {
         const double factor = 1 + 1e-9 * ++*calls;
         return record<double>(unsteady_op, V(x[0].value()), Inputs(x[0]), Saved(),
                               [factor](V dy, Needs) -> Grads<double, 1> { return {dy * factor}; });
       }},
  };
}

class WrongGradientTest : public testing::TestWithParam<Example> {};

TEST_P(WrongGradientTest, IsRefused) {
  const GradcheckReport report = gradcheck(GetParam().f, leaves(GetParam().shapes));
  EXPECT_FALSE(report);
  EXPECT_FALSE(report.worst.empty());
}

TEST_P(WrongGradientTest, IsRefusedAlongRandomDirections) {
  for (const std::uint64_t seed : {0, 1, 2}) {
    EXPECT_FALSE(gradcheck(GetParam().f, leaves(GetParam().shapes), {.projections = 3, .seed = seed}));
  }
}

INSTANTIATE_TEST_SUITE_P(, WrongGradientTest, testing::ValuesIn(wrong_gradients()), name_of);

// Right gradients with wrong gradients of their own

std::vector<Example> wrong_second_gradients() {
  return {
      {"another_formula_when_recorded",
       {{3}},
       unary(square, [](V dy, V x) { return xgrad::grad_enabled() ? dy * x * 3.0 : dy * x * 2.0; })},
      {"a_little_off_when_recorded",
       {{3}},
       unary(square, [](V dy, V x) { return dy * x * (xgrad::grad_enabled() ? 2 + 1e-7 : 2.0); })},
      {"wrong_gradient_of_the_gradient",
       {{3}},
       unary(square,
             [](V dy, V x) {
               return record<double>(square_grad_op, V(dy.value() * 2 * x.value()), Inputs(dy, x),
                                     Saved(dy, x), [](V d, Needs, V dy, V x) -> Grads<double, 2> {
                                       return {d * x * 2.0, d * dy};
                                     });
             })},
      {"right_in_the_sum_of_the_gradient_alone",
       {{3}},
       unary(square,
             [](V dy, V x) {
               return record<double>(square_grad_op, V(dy.value() * 2 * x.value()), Inputs(dy, x),
                                     Saved(dy, x), [](V d, Needs, V dy, V x) -> Grads<double, 2> {
                                       return {mean(d) * x * 2.0, mean(d) * dy * 2.0};
                                     });
             })},
      {"saved_without_history",
       {{3}},
       [](const std::vector<V>& x) {
         return record<double>(exp_op, V(xt::exp(x[0].value())), Inputs(x[0]), Saved(exp(x[0]).detach()),
                               [](V dy, Needs, V y) -> Grads<double, 1> { return {dy * y}; });
       }},
  };
}

/// Gradients whose graphs lack what they depend on: the pass that records them throws.
std::vector<Example> gradients_of_numbers() {
  return {
      {"input_used_as_a_number", {{3}}, unary(square, [](V dy, V x) { return dy * x.detach() * 2.0; })},
      {"gradient_used_as_a_number", {{3}}, unary(square, [](V dy, V x) { return dy.detach() * x * 2.0; })},
      {"computed_by_hand",
       {{3}},
       unary(cube, [](V dy, V x) { return V(dy.value() * 3 * x.value() * x.value()); })},
  };
}

class GradientOfNumbersTest : public testing::TestWithParam<Example> {};

TEST_P(GradientOfNumbersTest, IsAnError) {
  EXPECT_TRUE(gradcheck(GetParam().f, leaves(GetParam().shapes)));
  EXPECT_THROW(gradgradcheck(GetParam().f, leaves(GetParam().shapes)), xgrad::GraphError);
}

INSTANTIATE_TEST_SUITE_P(, GradientOfNumbersTest, testing::ValuesIn(gradients_of_numbers()), name_of);

class WrongSecondGradientTest : public testing::TestWithParam<Example> {};

TEST_P(WrongSecondGradientTest, IsRefused) {
  EXPECT_TRUE(gradcheck(GetParam().f, leaves(GetParam().shapes)));
  const GradcheckReport report = gradgradcheck(GetParam().f, leaves(GetParam().shapes));
  EXPECT_FALSE(report);
  EXPECT_FALSE(report.worst.empty());
}

TEST_P(WrongSecondGradientTest, IsRefusedAlongRandomDirections) {
  EXPECT_FALSE(gradgradcheck(GetParam().f, leaves(GetParam().shapes), {.projections = 3}));
}

INSTANTIATE_TEST_SUITE_P(, WrongSecondGradientTest, testing::ValuesIn(wrong_second_gradients()), name_of);

// Right gradients

std::vector<Example> right_gradients() {
  return {
      {"cube", {{3}}, unary(cube, [](V dy, V x) { return dy * x * x * 3.0; })},
      {"scalar", {{}}, [](const std::vector<V>& x) { return x[0] * x[0]; }},
      {"nothing", {{0, 3}}, [](const std::vector<V>& x) { return exp(x[0]); }},
      {"matrix_product", {{2, 3}, {3, 4}}, [](const std::vector<V>& x) { return matmul(x[0], x[1]); }},
      {"broadcasting", {{2, 1, 3}, {4, 1}, {}}, [](const std::vector<V>& x) { return x[0] * x[1] + x[2]; }},
      {"unused_input", {{2}, {3}}, [](const std::vector<V>& x) { return exp(x[0]); }},
      {"constant",
       {{2}},
       [](const std::vector<V>&) {
         return V(Array<double>{1, 2});
       }},
      {"input_itself", {{2}}, [](const std::vector<V>& x) { return x[0]; }},
      {"input_twice", {{2}}, [](const std::vector<V>& x) { return x[0] * x[0] + x[0]; }},
      {"constant_gradient", {{2}}, [](const std::vector<V>& x) { return x[0] + 1.0; }},
      {"network",
       {{5, 3}, {3, 4}, {4}},
       [](const std::vector<V>& x) { return softmax(tanh(matmul(x[0], x[1]) + x[2])); }},
  };
}

class RightGradientTest : public testing::TestWithParam<Example> {};

TEST_P(RightGradientTest, IsAccepted) {
  for (const std::size_t projections : {0, 4}) {
    const GradcheckOptions options{.projections = projections, .seed = 5};
    const GradcheckReport first = gradcheck(GetParam().f, leaves(GetParam().shapes), options);
    EXPECT_TRUE(first) << first.worst;
    const GradcheckReport second = gradgradcheck(GetParam().f, leaves(GetParam().shapes), options);
    EXPECT_TRUE(second) << second.worst;
  }
}

INSTANTIATE_TEST_SUITE_P(, RightGradientTest, testing::ValuesIn(right_gradients()), name_of);

// What a check says and leaves behind

TEST(GradcheckTest, ReportNamesTheWorstElement) {
  const auto f = binary([](V a, V b) { return a + b; },
                        [](V dy, V, V) {
                          return Grads<double, 2>{dy, with_element(dy, 5, 3)};
                        });
  const GradcheckReport report = gradcheck(f, leaves({{2, 3}, {2, 3}}));
  EXPECT_FALSE(report.ok);
  EXPECT_EQ(report.worst.find("input 1, element (1, 2): analytic 3, numeric "), 0u) << report.worst;
  EXPECT_NE(report.worst.find(", difference "), std::string::npos) << report.worst;
  EXPECT_GT(report.difference, 1.4);
}

TEST(GradcheckTest, ReportKeepsTheWorstWhenSmallerOnesFollow) {
  const auto f = unary(square, [](V dy, V x) { return with_element(dy * x * 2.0, 1, 30); });
  const GradcheckReport report = gradcheck(f, leaves({{4}}));
  EXPECT_FALSE(report.ok);
  EXPECT_EQ(report.worst.find("input 0, element (1): analytic 30, numeric "), 0u) << report.worst;
}

/// Differences of a product of two elements are exact, unless the other one was moved, too.
TEST(GradcheckTest, MovesOneElementAtATime) {
  const auto product = [](const std::vector<V>& x) { return select(x[0], 0, 0) * select(x[0], 0, 1); };
  const GradcheckReport report = gradcheck(product, leaves({{2}}), {.eps = 0.25, .atol = 1e-9, .rtol = 0});
  EXPECT_TRUE(report) << report.worst;
}

TEST(GradcheckTest, ReportNamesTheDirection) {
  const auto f = unary(square, [](V dy, V x) { return dy * x; });
  const GradcheckReport report = gradcheck(f, leaves({{3}}), {.projections = 1});
  EXPECT_EQ(report.worst.find("direction 0: analytic "), 0u) << report.worst;
}

TEST(GradcheckTest, ReportOfARightGradientHoldsTheLargestDifference) {
  const GradcheckReport report = gradcheck([](const std::vector<V>& x) { return exp(x[0]); }, leaves({{3}}));
  EXPECT_TRUE(report.ok);
  EXPECT_LT(report.difference, 1e-6);
  EXPECT_EQ(report.worst.find("input 0, element ("), 0u) << report.worst;
}

TEST(GradcheckTest, ReportSaysWhyAFunctionIsNone) {
  const auto forward = [calls = std::make_shared<int>(0)](const std::vector<V>& x) {
    return x[0] * (1.0 + ++*calls);
  };
  EXPECT_EQ(gradcheck(forward, leaves({{3}})).worst.find("two evaluations differ: "), 0u);
  const auto backward = [calls = std::make_shared<int>(0)](const std::vector<V>& x) {
    const double factor = ++*calls;
    return record<double>(unsteady_op, V(x[0].value()), Inputs(x[0]), Saved(),
                          [factor](V dy, Needs) -> Grads<double, 1> { return {dy * factor}; });
  };
  EXPECT_EQ(
      gradcheck(backward, leaves({{3}})).worst.find("input 0, element (0): two backward passes differ: "),
      0u);
  const auto paths = unary(square, [](V dy, V x) { return dy * x * (xgrad::grad_enabled() ? 3.0 : 2.0); });
  EXPECT_EQ(gradgradcheck(paths, leaves({{3}})).worst.find("input 0, element (0): without create_graph "),
            0u);
}

TEST(GradcheckTest, ToleranceAndStepAreOptions) {
  const auto f = unary(square, [](V dy, V x) { return dy * x * 2.02; });
  EXPECT_FALSE(gradcheck(f, leaves({{3}})));
  EXPECT_TRUE(gradcheck(f, leaves({{3}}), {.rtol = 0.05}));
  EXPECT_TRUE(gradcheck(f, leaves({{3}}), {.atol = 1}));
  EXPECT_TRUE(gradcheck([](const std::vector<V>& x) { return x[0] * x[0]; }, leaves({{3}}), {.eps = 1e-3}));
}

TEST(GradcheckTest, InputsKeepTheirBitsAndTheirGradients) {
  const std::vector<V> inputs = leaves({{2, 3}, {3}});
  sum(inputs[0] * inputs[1]).backward();
  const Array<double> a = inputs[0].value(), b = inputs[1].value(), grad = inputs[0].grad().value();
  const auto f = [](const std::vector<V>& x) { return x[0] * x[1]; };
  for (const std::size_t projections : {0, 3}) {
    EXPECT_TRUE(gradcheck(f, inputs, {.projections = projections}));
    EXPECT_TRUE(gradgradcheck(f, inputs, {.projections = projections}));
  }
  EXPECT_EQ(inputs[0].value(), a);
  EXPECT_EQ(inputs[1].value(), b);
  EXPECT_EQ(inputs[0].grad().value(), grad);
}

TEST(GradcheckTest, InputsAreRestoredAfterAnException) {
  for (const std::size_t projections : {0, 2}) {
    const std::vector<V> inputs = leaves({{3}});
    const Array<double> before = inputs[0].value();
    const auto f = [&before](const std::vector<V>& x) {
      if (x[0].value() != before) throw std::runtime_error("cannot move");
      return exp(x[0]);
    };
    EXPECT_EQ(message_of<std::runtime_error>([&] { gradcheck(f, inputs, {.projections = projections}); }),
              "cannot move");
    EXPECT_EQ(inputs[0].value(), before);
    EXPECT_TRUE(xgrad::grad_enabled());
  }
}

TEST(GradcheckTest, AModelsParametersMayBeCaptured) {
  const V weight = leaf({3, 2});
  const auto f = [&weight](const std::vector<V>& x) { return tanh(matmul(x[0], weight)); };
  EXPECT_TRUE(gradcheck(f, leaves({{4, 3}})));
  EXPECT_TRUE(gradgradcheck(f, leaves({{4, 3}})));
  EXPECT_FALSE(weight.has_grad());
  EXPECT_TRUE(gradcheck([&](const std::vector<V>&) { return tanh(matmul(leaf({4, 3}), weight)); }, {weight}));
}

TEST(GradcheckTest, WorksUnderNoGrad) {
  const xgrad::NoGrad guard;
  const auto f = [](const std::vector<V>& x) { return x[0] * x[0]; };
  EXPECT_TRUE(gradcheck(f, leaves({{3}})));
  EXPECT_TRUE(gradgradcheck(f, leaves({{3}})));
}

TEST(GradcheckTest, InputsMustBeLeavesThatRequireGradients) {
  const auto first = [](const std::vector<V>& x) { return x[0]; };
  const V result = leaf({2}) * 2.0, fixed = leaf({2}).detach();
  for (const V& bad : {result, fixed, V()}) {
    EXPECT_EQ(message_of<xgrad::ValueError>([&] {
                gradcheck(first, {leaf({2}), bad});
              }),
              "gradcheck: input 1 must be a leaf that requires a gradient");
    EXPECT_EQ(message_of<xgrad::ValueError>([&] {
                gradgradcheck(first, {leaf({2}), bad});
              }),
              "gradgradcheck: input 1 must be a leaf that requires a gradient");
  }
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { gradcheck(first, {}); }),
            "gradcheck: inputs must not be empty");
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { gradgradcheck(first, {}); }),
            "gradgradcheck: inputs must not be empty");
}

TEST(GradcheckTest, AGradientOfAnotherShapeIsAnError) {
  const auto f = unary(square, [](V dy, V x) { return sum(dy * x * 2.0); });
  EXPECT_EQ(message_of<xgrad::ShapeError>([&] { gradcheck(f, leaves({{3}})); }),
            "backward: 'unary' must return a gradient of shape (3) for input 0, got ()");
}

/// A large gradient that is nearly right does not hide a small one that is wrong.
TEST(GradcheckTest, ReportsTheElementThatIsWrong) {
  const V x(Array<double>{1000, 1}, true);
  const auto f = [](const std::vector<V>& inputs) {
    return record<double>(square_op, inputs[0].detach() * inputs[0].detach(), Inputs(inputs[0]),
                          xgrad::Saved(inputs[0]), [](V dy, Needs, V at) -> Grads<double, 1> {
                            return {dy * at * Array<double>{2.001, 2.5}};
                          });
  };
  const xgrad::GradcheckReport report = gradcheck(f, {x});
  EXPECT_FALSE(report);
  EXPECT_NE(report.worst.find("element (1)"), std::string::npos) << report.worst;
}

}  // namespace gradcheck_test
