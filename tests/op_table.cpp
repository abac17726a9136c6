#include "op_table.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <xgrad/graph/random.hpp>
#include <xgrad/ops/arithmetic.hpp>
#include <xgrad/ops/attention_with_weights.hpp>
#include <xgrad/ops/cross_entropy.hpp>
#include <xgrad/ops/dropout.hpp>
#include <xgrad/ops/einsum.hpp>
#include <xgrad/ops/elementwise.hpp>
#include <xgrad/ops/embedding.hpp>
#include <xgrad/ops/indexing.hpp>
#include <xgrad/ops/layer_norm.hpp>
#include <xgrad/ops/linear.hpp>
#include <xgrad/ops/losses.hpp>
#include <xgrad/ops/masked_fill.hpp>
#include <xgrad/ops/matmul.hpp>
#include <xgrad/ops/reductions.hpp>
#include <xgrad/ops/self_attention.hpp>
#include <xgrad/ops/shapes.hpp>
#include <xgrad/ops/softmax.hpp>
#include <xgrad/ops/triangle.hpp>
#include <xgrad/ops/where.hpp>

#include "expect_error.hpp"
#include "op_references.hpp"

namespace xgrad_tests {
namespace {

using xgrad::Array, xgrad::Dims, xgrad::Ids, xgrad::Mask, xgrad::Shape, xgrad::Variable;
using xgrad::IndexError, xgrad::ShapeError, xgrad::ValueError;

constexpr Range positive{0.2, 3, 0};
constexpr Range away_from_zero{-2, 2, 0.3};

/// What the generic function f of a list of Variables is called with, and what it must give.
template <class F>
Case make_case(std::vector<Input> inputs, const F& f, Reference reference) {
  return {std::move(inputs), f, f, std::move(reference)};
}

/// One case for each list of inputs.
template <class F>
std::vector<Case> make_cases(const std::vector<std::vector<Input>>& lists, const F& f,
                             const Reference& reference) {
  std::vector<Case> cases;
  for (const std::vector<Input>& inputs : lists) cases.push_back(make_case(inputs, f, reference));
  return cases;
}

template <class Error, class Call>
ErrorCase error(std::string expected, Call call) {
  return {std::move(expected), [call] { return message_of<Error>(call); }};
}

Variable<float> x(const Shape& shape) { return Variable<float>(Array<float>(shape, 1.0f), true); }

Mask mask_of(const Shape& shape, std::initializer_list<int> elements) {
  Mask mask = Mask::from_shape(shape);
  std::transform(elements.begin(), elements.end(), mask.data(), [](int element) { return element != 0; });
  return mask;
}

Ids ids_of(const Shape& shape, std::initializer_list<std::int64_t> elements) {
  Ids ids = Ids::from_shape(shape);
  std::copy(elements.begin(), elements.end(), ids.data());
  return ids;
}

// elementwise

template <class F>
Op elementwise_op(const char* name, const F& f, double (*reference)(double), Range range = {}) {
  std::vector<std::vector<Input>> lists;
  for (const Shape& shape :
       {Shape{}, Shape{1}, Shape{2, 3}, Shape{17}, Shape{5, 33}, Shape{0}, Shape{2, 0, 3}})
    lists.push_back({{shape, range}});
  return {std::string("elementwise.") + name, make_cases(lists, f, naive::map(reference)), {}};
}

double gelu(double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }
double gelu_tanh(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

Op gelu_op() {
  Op op = elementwise_op("gelu", [](const auto& x) { return xgrad::gelu(x[0]); }, gelu, {-4, 4, 0});
  Op tanh = elementwise_op("", [](const auto& x) { return xgrad::gelu(x[0], xgrad::Gelu::tanh); }, gelu_tanh,
                           {-4, 4, 0});
  op.cases.insert(op.cases.end(), tanh.cases.begin(), tanh.cases.end());
  return op;
}

Op softplus_op() {
  Op op = elementwise_op(
      "softplus", [](const auto& x) { return xgrad::softplus(x[0]); },
      [](double x) { return std::log1p(std::exp(x)); }, {-8, 8, 0});
  op.cases.push_back(make_case(
      {{{5, 33}, {-3, 3, 0}}}, [](const auto& x) { return xgrad::softplus(x[0], 2, 3); },
      naive::map([](double x) { return 2 * x > 3 ? x : std::log1p(std::exp(2 * x)) / 2; })));
  return op;
}

Op clamp_op() {
  Op op = elementwise_op(
      "clamp", [](const auto& x) { return xgrad::clamp(x[0], -1, 0.5); },
      [](double x) { return std::min(std::max(x, -1.0), 0.5); });
  op.cases.push_back(make_case(
      {{7}}, [](const auto& x) { return xgrad::clamp(x[0], 0.25); },
      naive::map([](double x) { return std::max(x, 0.25); })));
  op.cases.push_back(make_case(
      {{7}}, [](const auto& x) { return xgrad::clamp(x[0], {}, 0.25); },
      naive::map([](double x) { return std::min(x, 0.25); })));
  op.errors = {
      error<ValueError>("clamp: at least one bound must be given", [] { xgrad::clamp(x({2}), {}, {}); })};
  return op;
}

// arithmetic

template <class F>
Op arithmetic_op(const char* name, const F& f, double (*reference)(double, double), Range second = {}) {
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{2, 3}, {2, 3}},    {{2, 3}, {3}},      {{3}, {2, 3}},     {{2, 3}, {2, 1}},    {{2, 1}, {1, 3}},
      {{}, {2, 3}},        {{2, 3}, {}},       {{}, {}},          {{4, 1, 3}, {5, 1}}, {{1, 1, 1}, {3}},
      {{17}, {17}},        {{3, 17}, {17}},    {{9, 17}, {9, 1}}, {{0}, {1}},          {{2, 0}, {1, 1}},
      {{2, 1, 4}, {3, 1}}, {{2, 3, 4}, {3, 4}}};
  std::vector<std::vector<Input>> lists;
  for (const auto& [a, b] : shapes) lists.push_back({a, {b, second}});
  const auto message = [name](const char* rest) { return std::string(name) + rest; };
  return {std::string("arithmetic.") + name,
          make_cases(lists, f, naive::binary(reference)),
          {error<ShapeError>(message(": shapes must broadcast, got a (2, 3) and b (4)"),
                             [f] {
                               f(Inputs<float>{x({2, 3}), x({4})});
                             }),
           error<ShapeError>(message(": shapes must broadcast, got a (2, 1, 3) and b (2, 2)"),
                             [f] {
                               f(Inputs<float>{x({2, 1, 3}), x({2, 2})});
                             }),
           error<ShapeError>(message(": shapes must broadcast, got a (0) and b (2)"), [f] {
             f(Inputs<float>{x({0}), x({2})});
           })}};
}

Op add_op() {
  Op op = arithmetic_op(
      "add", [](const auto& x) { return x[0] + x[1]; }, [](double a, double b) { return a + b; });
  op.cases.push_back(make_case(
      {{2, 3}}, [](const auto& x) { return 1.5 + (x[0] + 2.0); },
      naive::map([](double x) { return x + 3.5; })));
  return op;
}

Op sub_op() {
  Op op = arithmetic_op(
      "sub", [](const auto& x) { return x[0] - x[1]; }, [](double a, double b) { return a - b; });
  op.cases.push_back(make_case(
      {{2, 3}}, [](const auto& x) { return 1.5 - (x[0] - 2.0); },
      naive::map([](double x) { return 3.5 - x; })));
  return op;
}

Op mul_op() {
  Op op = arithmetic_op(
      "mul", [](const auto& x) { return x[0] * x[1]; }, [](double a, double b) { return a * b; });
  op.cases.push_back(make_case(
      {{2, 3}}, [](const auto& x) { return 1.5 * (x[0] * 2.0); },
      naive::map([](double x) { return x * 3; })));
  return op;
}

Op div_op() {
  Op op = arithmetic_op(
      "div", [](const auto& x) { return x[0] / x[1]; }, [](double a, double b) { return a / b; },
      away_from_zero);
  op.cases.push_back(make_case(
      {{{2, 3}, away_from_zero}}, [](const auto& x) { return 1.5 / (x[0] / 2.0); },
      naive::map([](double x) { return 3 / x; })));
  return op;
}

Op neg_op() {
  return {"arithmetic.neg",
          make_cases(
              {{{2, 3}}, {{}}, {{0}}}, [](const auto& x) { return -x[0]; },
              naive::map([](double x) { return -x; })),
          {}};
}

Op pow_op() {
  Op op = arithmetic_op(
      "pow", [](const auto& x) { return pow(x[0] * x[0] + 0.5, x[1]); },
      [](double a, double b) { return std::pow(a * a + 0.5, b); });
  for (const double exponent : {2.0, 3.0, -1.0, 0.0, 1.0, -2.0}) {
    op.cases.push_back({{{{2, 3}, away_from_zero}},
                        [exponent](const auto& x) { return pow(x[0], static_cast<float>(exponent)); },
                        [exponent](const auto& x) { return pow(x[0], exponent); },
                        [exponent](const std::vector<Array<double>>& x) {
                          Array<double> y = x[0];
                          for (double& element : y.storage()) element = std::pow(element, exponent);
                          return y;
                        }});
  }
  op.cases.push_back(make_case(
      {{2, 3}}, [](const auto& x) { return pow(x[0] * x[0] + 0.5, 0.5f); },
      naive::map([](double x) { return std::sqrt(x * x + 0.5); })));
  op.cases.push_back(make_case(
      {{2, 3}}, [](const auto& x) { return pow(x[0] * x[0] + 0.5, -0.5f); },
      naive::map([](double x) { return 1 / std::sqrt(x * x + 0.5); })));
  op.cases.push_back(make_case(
      {{2, 3}}, [](const auto& x) { return xgrad::pow(1.5, x[0]); },
      naive::map([](double x) { return std::pow(1.5, x); })));
  return op;
}

Op scaled_add_op() {
  return {"arithmetic.alpha",
          make_cases(
              {{{2, 3}, {3}}, {{3}, {2, 3}}, {{}, {}}},
              [](const auto& x) { return xgrad::add(xgrad::sub(x[0], x[1], 3), x[1], 0.5); },
              naive::binary([](double a, double b) { return a - 2.5 * b; })),
          {}};
}

Op broadcast_to_op() {
  Op op{"arithmetic.broadcast_to", {}, {}};
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{3}, {2, 3}},          {{2, 1}, {2, 3}}, {{}, {2, 3}},     {{1}, {17}},
      {{4, 1, 3}, {4, 5, 3}}, {{2, 3}, {2, 3}}, {{1, 3}, {0, 3}}, {{}, {}}};
  for (const auto& [from, to] : shapes)
    op.cases.push_back(make_case(
        {from}, [to = to](const auto& x) { return xgrad::broadcast_to(x[0], to); }, naive::broadcast_to(to)));
  op.errors = {error<ShapeError>("broadcast_to: x must stretch to shape, got x (2, 3) and shape (3)",
                                 [] {
                                   xgrad::broadcast_to(x({2, 3}), Shape{3});
                                 }),
               error<ShapeError>("broadcast_to: x must stretch to shape, got x (2) and shape (2, 3)", [] {
                 xgrad::broadcast_to(x({2}), Shape{2, 3});
               })};
  return op;
}

Op sum_to_op() {
  Op op{"arithmetic.sum_to", {}, {}};
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{2, 3}, {3}},       {{2, 3}, {2, 1}}, {{2, 3}, {}},     {{17}, {1}},    {{4, 5, 3}, {4, 1, 3}},
      {{4, 5, 3}, {5, 1}}, {{0, 3}, {3}},    {{2, 3}, {2, 3}}, {{9, 17}, {17}}};
  for (const auto& [from, to] : shapes)
    op.cases.push_back(make_case(
        {from}, [to = to](const auto& x) { return xgrad::sum_to(x[0], to); }, naive::sum_to(to)));
  op.errors = {error<ShapeError>("sum_to: shape must stretch to x, got x (2, 3) and shape (4)", [] {
    xgrad::sum_to(x({2, 3}), Shape{4});
  })};
  return op;
}

// products

Op matmul_op() {
  const std::vector<std::pair<Shape, Shape>> shapes = {{{2, 3}, {3, 4}},
                                                       {{3, 3}, {3, 3}},
                                                       {{3}, {3}},
                                                       {{2, 3}, {3}},
                                                       {{3}, {3, 4}},
                                                       {{5, 2, 3}, {3, 4}},
                                                       {{5, 2, 3}, {5, 3, 4}},
                                                       {{5, 1, 2, 3}, {4, 3, 2}},
                                                       {{3}, {5, 3, 4}},
                                                       {{5, 2, 3}, {3}},
                                                       {{2, 2, 3}, {1, 3, 2}},
                                                       {{1, 1}, {1, 1}},
                                                       {{1, 17}, {17, 1}},
                                                       {{2, 0}, {0, 3}},
                                                       {{0, 3}, {3, 2}},
                                                       {{0}, {0}},
                                                       {{0, 2, 3}, {0, 3, 2}},
                                                       {{17, 19}, {19, 23}},
                                                       {{2, 17, 9}, {2, 9, 17}},
                                                       {{2, 17, 9}, {9, 17}}};
  std::vector<std::vector<Input>> lists;
  for (const auto& [a, b] : shapes) lists.push_back({a, b});
  return {"matmul",
          make_cases(
              lists, [](const auto& x) { return xgrad::matmul(x[0], x[1]); }, naive::matmul()),
          {error<ShapeError>("matmul: inner axes must agree, got a (2, 3) and b (4, 5)",
                             [] {
                               xgrad::matmul(x({2, 3}), x({4, 5}));
                             }),
           error<ShapeError>("matmul: inner axes must agree, got a (3) and b (2)",
                             [] { xgrad::matmul(x({3}), x({2})); }),
           error<ShapeError>("matmul: both operands need at least one axis, got a () and b (2, 3)",
                             [] {
                               xgrad::matmul(x({}), x({2, 3}));
                             }),
           error<ShapeError>("matmul: the batch axes must broadcast, got a (2, 4, 5) and b (3, 5, 6)", [] {
             xgrad::matmul(x({2, 4, 5}), x({3, 5, 6}));
           })}};
}

Op linear_relu_op() {
  const auto f = [](const auto& x) {
    return x.size() > 2 ? xgrad::linear_relu(x[0], x[1], x[2]) : xgrad::linear_relu(x[0], x[1], {});
  };
  const Reference reference = [](const auto& x) {
    auto y = naive::linear()(x);
    for (double& element : y) element = std::max(element, 0.0);
    return y;
  };
  return {"linear.linear_relu",
          make_cases({{{2, 3}, {4, 3}, {4}},
                      {{2, 3}, {4, 3}},
                      {{3}, {4, 3}, {4}},
                      {{2, 5, 3}, {4, 3}, {4}},
                      {{0, 3}, {4, 3}, {4}},
                      {{2, 0}, {4, 0}, {4}},
                      {{17, 19}, {23, 19}, {23}}},
                     f, reference),
          {error<ShapeError>("linear_relu: weight must have the axes (out, in), got (3)",
                             [] {
                               xgrad::linear_relu(x({2, 3}), x({3}), {});
                             }),
           error<ShapeError>(
               "linear_relu: the last axis of x must be weight's last, got x (2, 3) and weight (4, 5)",
               [] {
                 xgrad::linear_relu(x({2, 3}), x({4, 5}), x({4}));
               }),
           error<ShapeError>("linear_relu: bias must have shape (4) to fit weight (4, 3), got (3)", [] {
             xgrad::linear_relu(x({2, 3}), x({4, 3}), x({3}));
           })}};
}

Op linear_op() {
  const std::vector<std::vector<Input>> lists = {
      {{2, 3}, {4, 3}, {4}},    {{2, 3}, {4, 3}},      {{3}, {4, 3}, {4}},
      {{2, 5, 3}, {4, 3}, {4}}, {{3, 3}, {3, 3}, {3}}, {{0, 3}, {4, 3}, {4}},
      {{2, 0}, {4, 0}, {4}},    {{1, 1}, {1, 1}, {1}}, {{17, 19}, {23, 19}, {23}}};
  const auto f = [](const auto& x) {
    return x.size() > 2 ? xgrad::linear(x[0], x[1], x[2]) : xgrad::linear(x[0], x[1]);
  };
  std::vector<Case> cases = make_cases(lists, f, naive::linear());
  for (Case& vector : make_cases({{{2, 3}, {3}}, {{3}, {3}}, {{2, 0, 3}, {3}}}, f, naive::matmul()))
    cases.push_back(std::move(vector));
  return {
      "linear",
      std::move(cases),
      {error<ShapeError>("linear: the last axis of x must be weight's last, got x (2, 3) and weight (4, 5)",
                         [] {
                           xgrad::linear(x({2, 3}), x({4, 5}));
                         }),
       error<ShapeError>("linear: the last axis of x must be weight's last, got x () and weight (4, 5)",
                         [] {
                           xgrad::linear(x({}), x({4, 5}));
                         }),
       error<ShapeError>("linear: weight must have the axes (out, in) or (in), got ()",
                         [] {
                           xgrad::linear(x({2, 3}), x({}));
                         }),
       error<ShapeError>("linear: weight must have the axes (out, in) or (in), got (1, 1, 3)",
                         [] {
                           xgrad::linear(x({2, 3}), x({1, 1, 3}));
                         }),
       error<ShapeError>("linear: a weight (in) takes no bias, got bias (1)",
                         [] {
                           xgrad::linear(x({2, 3}), x({3}), x({1}));
                         }),
       error<ShapeError>("linear: the last axis of x must be weight's last, got x (2, 3) and weight (2)",
                         [] {
                           xgrad::linear(x({2, 3}), x({2}));
                         }),
       error<ShapeError>("linear: bias must have shape (4) to fit weight (4, 3), got (3)", [] {
         xgrad::linear(x({2, 3}), x({4, 3}), x({3}));
       })}};
}

// softmax

std::vector<std::pair<Shape, int>> softmax_shapes() {
  return {{{2, 3}, -1}, {{2, 3}, 0}, {{2, 3, 4}, 1}, {{3}, 0},    {{17}, -1},
          {{5, 33}, 1}, {{2, 1}, 1}, {{}, 0},        {{0, 3}, 1}, {{3, 0}, 1}};
}

Op softmax_op() {
  Op op{"softmax", {}, {}};
  for (const auto& [shape, dim] : softmax_shapes()) {
    const std::size_t axis = dim < 0 ? shape.size() - 1 : static_cast<std::size_t>(dim);
    op.cases.push_back(make_case(
        {shape}, [dim = dim](const auto& x) { return xgrad::softmax(x[0], dim); }, naive::softmax(axis)));
  }
  const Mask masked = mask_of({2, 3}, {0, 1, 0, 1, 1, 0});
  op.cases.push_back(make_case(
      {{2, 3}},
      [masked](const auto& x) { return xgrad::softmax(xgrad::masked_fill(x[0], masked, -INFINITY)); },
      [masked](const std::vector<Array<double>>& x) {
        return naive::softmax(1)({naive::masked_fill(masked, -INFINITY)(x)});
      }));
  op.errors = {
      error<IndexError>("softmax: axis 2 is out of range for x (2, 3)",
                        [] {
                          xgrad::softmax(x({2, 3}), 2);
                        }),
      error<IndexError>("softmax: axis -3 is out of range for x (2, 3)",
                        [] {
                          xgrad::softmax(x({2, 3}), -3);
                        }),
      error<IndexError>("softmax: axis 1 is out of range for x ()", [] { xgrad::softmax(x({}), 1); })};
  return op;
}

Op log_softmax_op() {
  Op op{"softmax.log_softmax", {}, {}};
  for (const auto& [shape, dim] : softmax_shapes()) {
    const std::size_t axis = dim < 0 ? shape.size() - 1 : static_cast<std::size_t>(dim);
    op.cases.push_back(make_case(
        {shape}, [dim = dim](const auto& x) { return xgrad::log_softmax(x[0], dim); },
        naive::log_softmax(axis)));
  }
  op.errors = {error<IndexError>("log_softmax: axis 2 is out of range for x (2, 3)", [] {
    xgrad::log_softmax(x({2, 3}), 2);
  })};
  return op;
}

// layer_norm

/// f is given the inputs (x, and a residual if there is one, weight and bias where they are there), which of
/// weight and bias are there, normalized_shape and eps.
template <class F>
std::vector<Case> layer_norm_cases(bool residual, const F& f) {
  struct Sample {
    Shape shape;
    std::size_t axes;
    bool weight, bias;
    double eps;
  };
  std::vector<Case> cases;
  for (const auto& [shape, axes, weight, bias, eps] :
       {Sample{{2, 3}, 1, true, true, 1e-5}, Sample{{2, 3}, 1, false, false, 1e-5},
        Sample{{2, 3}, 1, true, false, 0.1}, Sample{{2, 3}, 1, false, true, 0.1},
        Sample{{2, 3, 4}, 2, true, true, 1e-5}, Sample{{2, 2, 3}, 1, true, true, 1e-5},
        Sample{{4}, 1, true, true, 1e-5}, Sample{{3, 1}, 1, true, true, 1e-5},
        Sample{{0, 3}, 1, true, true, 1e-5}, Sample{{5, 33}, 1, true, true, 1e-5}}) {
    const Shape inner(shape.end() - static_cast<std::ptrdiff_t>(axes), shape.end());
    std::vector<Input> inputs(residual ? 2 : 1, shape);
    if (weight) inputs.push_back(inner);
    if (bias) inputs.push_back(inner);
    const auto call = [f, inner, weight = weight, bias = bias, eps = eps](const auto& x) {
      const typename std::decay_t<decltype(x)>::value_type none;
      return f(x, weight ? x[x.size() - (bias ? 2 : 1)] : none, bias ? x.back() : none, inner, eps);
    };
    const Reference normalized = naive::layer_norm(axes, weight, bias, eps);
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
          layer_norm_cases(false, f),
          {error<ShapeError>("layer_norm: the last axes of x must be normalized_shape (4), got x (2, 3)",
                             [] {
                               xgrad::layer_norm(x({2, 3}), 4);
                             }),
           error<ShapeError>("layer_norm: the last axes of x must be normalized_shape (2, 3), got x (3)",
                             [] {
                               xgrad::layer_norm(x({3}), {2, 3});
                             }),
           error<ShapeError>("layer_norm: weight must have normalized_shape (3), got (2)",
                             [] {
                               xgrad::layer_norm(x({2, 3}), 3, x({2}));
                             }),
           error<ShapeError>("layer_norm: bias must have normalized_shape (3), got (1, 3)", [] {
             xgrad::layer_norm(x({2, 3}), 3, {}, x({1, 3}));
           })}};
}

Op add_layer_norm_op() {
  const auto f = [](const auto& x, const auto& weight, const auto& bias, const Shape& inner, double eps) {
    return xgrad::add_layer_norm(x[0], x[1], inner, weight, bias, eps);
  };
  return {"layer_norm.add_layer_norm",
          layer_norm_cases(true, f),
          {error<ShapeError>("add_layer_norm: x and residual must have the same shape, got (2, 3) and (1, 3)",
                             [] {
                               xgrad::add_layer_norm(x({2, 3}), x({1, 3}), 3);
                             }),
           error<ShapeError>("add_layer_norm: the last axes of x must be normalized_shape (4), got x (2, 3)",
                             [] {
                               xgrad::add_layer_norm(x({2, 3}), x({2, 3}), 4);
                             }),
           error<ShapeError>("add_layer_norm: weight must have normalized_shape (3), got (2)", [] {
             xgrad::add_layer_norm(x({2, 3}), x({2, 3}), 3, x({2}));
           })}};
}

// lookups and masks

Op embedding_op() {
  Op op{"embedding", {}, {}};
  for (const Ids& ids :
       {ids_of({2, 3}, {1, 5, 1, 0, 1, 5}), ids_of({4}, {0, 0, 0, 0}), ids_of({}, {2}), ids_of({0}, {}),
        ids_of({17}, {0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 5, 5, 5, 5, 5})}) {
    for (const std::size_t dim : {4, 1, 17})
      op.cases.push_back(make_case(
          {{6, dim}}, [ids](const auto& x) { return xgrad::embedding(ids, x[0]); }, naive::embedding(ids)));
  }
  // the padding row's gradient is dropped, so the outputs that depend on it must count for nothing
  const Ids padded = ids_of({4}, {5, 1, 5, 2});
  const Mask padding = mask_of({4, 1}, {1, 0, 1, 0});
  op.cases.push_back(make_case(
      {{6, 3}},
      [=](const auto& x) {
        return xgrad::masked_fill(xgrad::embedding(padded, x[0], {.padding_idx = -1}), padding, 0);
      },
      [=](const std::vector<Array<double>>& x) {
        return naive::masked_fill(padding, 0)({naive::embedding(padded)(x)});
      }));
  op.errors = {error<IndexError>("embedding: ids must be in [0, 6), got 7 (vocabulary size 6)",
                                 [] {
                                   xgrad::embedding(ids_of({2}, {0, 7}), x({6, 4}));
                                 }),
               error<IndexError>("embedding: ids must be in [0, 6), got -1 (vocabulary size 6)",
                                 [] {
                                   xgrad::embedding(ids_of({}, {-1}), x({6, 4}));
                                 }),
               error<IndexError>("embedding: ids must be in [0, 0), got 0 (vocabulary size 0)",
                                 [] {
                                   xgrad::embedding(ids_of({1}, {0}), x({0, 4}));
                                 }),
               error<IndexError>("embedding: padding_idx must be in [-6, 6), got 6",
                                 [] {
                                   xgrad::embedding(ids_of({1}, {0}), x({6, 4}), {.padding_idx = 6});
                                 }),
               error<ShapeError>("embedding: weight must have the axes (vocabulary, dim), got (6)",
                                 [] { xgrad::embedding(ids_of({1}, {0}), x({6})); })};
  return op;
}

Op masked_fill_op() {
  Op op{"masked_fill", {}, {}};
  const std::vector<std::pair<Shape, Mask>> samples = {
      {{2, 3}, mask_of({2, 3}, {0, 1, 0, 1, 1, 1})},
      {{2, 3}, mask_of({3}, {0, 1, 0})},
      {{2, 3}, mask_of({2, 1}, {1, 0})},
      {{3}, mask_of({2, 3}, {0, 1, 0, 0, 0, 1})},
      {{2, 1}, mask_of({1, 3}, {1, 0, 1})},
      {{2, 3}, mask_of({}, {1})},
      {{}, mask_of({}, {0})},
      {{0, 3}, mask_of({3}, {0, 1, 0})},
      {{17}, mask_of({17}, {1, 1, 0, 0, 1, 0, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1})}};
  for (const auto& [shape, mask] : samples)
    op.cases.push_back(make_case(
        {shape}, [mask = mask](const auto& x) { return xgrad::masked_fill(x[0], mask, -7.5); },
        naive::masked_fill(mask, -7.5)));
  op.errors = {error<ShapeError>("masked_fill: shapes must broadcast, got x (2, 3) and mask (4)", [] {
    xgrad::masked_fill(x({2, 3}), mask_of({4}, {0, 0, 0, 0}), 0);
  })};
  return op;
}

// reductions

std::vector<std::pair<Shape, Dims>> reductions() {
  return {{{2, 3}, 0},          {{2, 3}, -1}, {{2, 3}, {0, 1}}, {{2, 3, 4}, 1},
          {{2, 3, 4}, {0, -1}}, {{17}, 0},    {{9, 17}, 0},     {{9, 17}, 1},
          {{3, 1}, 1},          {{0, 3}, 1},  {{}, 0},          {{2, 3}, Shape{}}};
}

template <class F, class G>
Op reduction_op(const std::string& name, const F& all, const G& some, Reference (*reference)(Dims, bool)) {
  Op op{"reductions." + name, {}, {}};
  for (const Shape& shape : {Shape{2, 3}, Shape{}, Shape{17}, Shape{9, 17}, Shape{2, 3, 4}}) {
    Shape axes = shape;
    for (std::size_t k = 0; k < axes.size(); ++k) axes[k] = k;
    op.cases.push_back(make_case({shape}, all, reference(axes, false)));
  }
  for (const auto& [shape, dims] : reductions()) {
    for (const bool keepdim : {false, true}) {
      op.cases.push_back(make_case(
          {shape}, [=, dims = dims](const auto& x) { return some(x[0], dims, keepdim); },
          reference(dims, keepdim)));
    }
  }
  op.errors = {error<IndexError>(name + ": axis 2 is out of range for x (2, 3)",
                                 [some] {
                                   some(x({2, 3}), Dims{2}, false);
                                 }),
               error<IndexError>(name + ": axis -3 is out of range for x (2, 3)",
                                 [some] {
                                   some(x({2, 3}), Dims{-3}, true);
                                 }),
               error<ValueError>(name + ": dims must name an axis once, got (1, -1) for x (2, 3)", [some] {
                 some(x({2, 3}), Dims{1, -1}, false);
               })};
  return op;
}

Op sum_op() {
  const auto all = [](const auto& x) { return xgrad::sum(x[0]); };
  const auto some = [](const auto& x, const Dims& dims, bool keepdim) {
    return xgrad::sum(x, dims, keepdim);
  };
  Op op = reduction_op("sum", all, some, naive::sum);
  op.cases.push_back(make_case({{0}}, all, naive::sum(0, false)));
  op.cases.push_back(make_case(
      {{0, 3}}, [](const auto& x) { return xgrad::sum(x[0], 0); }, naive::sum(0, false)));
  return op;
}

Op mean_op() {
  const auto all = [](const auto& x) { return xgrad::mean(x[0]); };
  const auto some = [](const auto& x, const Dims& dims, bool keepdim) {
    return xgrad::mean(x, dims, keepdim);
  };
  return reduction_op("mean", all, some, naive::mean);
}

// shapes

Op reshape_op() {
  Op op{"shapes.reshape", {}, {}};
  struct Sample {
    Shape from;
    Dims to;
    Shape expected;
  };
  for (const auto& [from, to, expected] :
       {Sample{{2, 3}, {3, 2}, {3, 2}}, Sample{{2, 3}, -1, {6}}, Sample{{2, 3, 4}, {4, -1}, {4, 6}},
        Sample{{1}, Shape{}, {}}, Sample{{}, {1, 1}, {1, 1}}, Sample{{0, 3}, {3, 0}, {3, 0}},
        Sample{{0, 3}, {-1, 3}, {0, 3}}, Sample{{17}, {17, 1}, {17, 1}}})
    op.cases.push_back(make_case(
        {from}, [to = to](const auto& x) { return xgrad::reshape(x[0], to); }, naive::reshape(expected)));
  const auto refused = [](std::string why, Dims shape) {
    return error<ShapeError>("reshape: " + why + ", got x (2, 3) and shape " + xgrad::to_string(shape),
                             [shape] {
                               xgrad::reshape(x({2, 3}), shape);
                             });
  };
  constexpr std::ptrdiff_t huge = std::ptrdiff_t{1} << 62;
  op.errors = {refused("the number of elements must not change", {2, 4}),
               refused("the number of elements must not change", {4, -1}),
               refused("the number of elements must not change", {huge, huge}),
               refused("only one length can be -1", {-1, -1}),
               refused("a length must be at least 0, or -1 once", {-2, 3}),
               refused("-1 cannot be inferred beside a length of 0", {0, -1})};
  return op;
}

Op permute_op() {
  Op op{"shapes.permute", {}, {}};
  struct Sample {
    Shape shape;
    Dims dims;
    Shape order;
  };
  for (const auto& [shape, dims, order] :
       {Sample{{2, 3}, {1, 0}, {1, 0}}, Sample{{2, 3, 4}, {1, 2, 0}, {1, 2, 0}},
        Sample{{2, 2, 2}, {2, 0, 1}, {2, 0, 1}}, Sample{{2, 3, 4}, {0, -1, 1}, {0, 2, 1}},
        Sample{{2, 1, 3, 2}, {3, 1, 0, 2}, {3, 1, 0, 2}}, Sample{{}, Shape{}, {}},
        Sample{{0, 3}, {1, 0}, {1, 0}}, Sample{{17, 9}, {1, 0}, {1, 0}}})
    op.cases.push_back(make_case(
        {shape}, [dims = dims](const auto& x) { return xgrad::permute(x[0], dims); }, naive::permute(order)));
  op.errors = {
      error<ShapeError>("permute: dims must name every axis of x once, got x (2, 3) and dims (0)",
                        [] {
                          xgrad::permute(x({2, 3}), 0);
                        }),
      error<ShapeError>("permute: dims must name every axis of x once, got x (2, 3) and dims (1, -1)",
                        [] {
                          xgrad::permute(x({2, 3}), {1, -1});
                        }),
      error<IndexError>("permute: axis 2 is out of range for x (2, 3)", [] {
        xgrad::permute(x({2, 3}), {0, 2});
      })};
  return op;
}

Op transpose_op() {
  const auto f = [](const auto& x) { return xgrad::transpose(x[0], -1, 0); };
  Op op{"shapes.transpose", make_cases({{{2, 3}}, {{17, 9}}, {{0, 3}}}, f, naive::permute({1, 0})), {}};
  op.cases.push_back(make_case({{2, 3, 4}}, f, naive::permute({2, 1, 0})));
  op.cases.push_back(make_case({{5}}, f, naive::permute({0})));
  op.errors = {
      error<IndexError>("transpose: axis 2 is out of range for x (2, 3)",
                        [] {
                          xgrad::transpose(x({2, 3}), 0, 2);
                        }),
      error<IndexError>("transpose: axis 0 is out of range for x ()", [] { xgrad::transpose(x({}), 0, 1); })};
  return op;
}

Op concat_op() {
  Op op{"shapes.cat", {}, {}};
  struct Sample {
    std::vector<Input> parts;
    int dim;
    std::size_t axis;
  };
  for (const auto& [parts, dim, axis] :
       {Sample{{{2, 3}, {1, 3}}, 0, 0}, Sample{{{2, 3}, {2, 1}, {2, 2}}, -1, 1},
        Sample{{{2, 2, 3}, {2, 2, 3}}, 1, 1}, Sample{{{3}}, 0, 0}, Sample{{{2, 3}, {0, 3}, {1, 3}}, 0, 0},
        Sample{{{0, 3}, {0, 2}}, 1, 1}, Sample{{{17}, {17}}, 0, 0}})
    op.cases.push_back(make_case(
        parts, [dim = dim](const auto& x) { return xgrad::cat(x, dim); }, naive::cat(axis)));
  op.errors = {
      error<ShapeError>("cat: parts must agree in every axis but 0, got part 0 (2, 3) and part 1 (2, 4)",
                        [] {
                          xgrad::cat({x({2, 3}), x({2, 4})});
                        }),
      error<ShapeError>("cat: parts must agree in every axis but 1, got part 0 (2, 3) and part 2 (3)",
                        [] {
                          xgrad::cat({x({2, 3}), x({2, 4}), x({3})}, 1);
                        }),
      error<ShapeError>("cat: parts need at least one axis, got part 0 ()", [] { xgrad::cat({x({})}); }),
      error<IndexError>("cat: axis 2 is out of range for part 0 (2, 3)",
                        [] {
                          xgrad::cat({x({2, 3})}, 2);
                        }),
      error<ValueError>("cat: parts must not be empty", [] { xgrad::cat(Inputs<float>{}); })};
  return op;
}

// indexing

Op select_op() {
  Op op{"indexing.select", {}, {}};
  struct Sample {
    Shape shape;
    int dim;
    std::ptrdiff_t index;
    std::size_t axis, position;
  };
  for (const auto& [shape, dim, index, axis, position] :
       {Sample{{2, 3}, 0, 1, 0, 1}, Sample{{2, 3}, -1, -3, 1, 0}, Sample{{2, 3, 4}, 1, 2, 1, 2},
        Sample{{17}, 0, -1, 0, 16}, Sample{{3, 0}, 0, 1, 0, 1}, Sample{{1}, 0, 0, 0, 0}})
    op.cases.push_back(make_case(
        {shape}, [dim = dim, index = index](const auto& x) { return xgrad::select(x[0], dim, index); },
        naive::select(axis, position)));
  op.errors = {error<IndexError>("select: index 3 is out of range for axis 1 of x (2, 3)",
                                 [] {
                                   xgrad::select(x({2, 3}), 1, 3);
                                 }),
               error<IndexError>("select: index -3 is out of range for axis 0 of x (2, 3)",
                                 [] {
                                   xgrad::select(x({2, 3}), 0, -3);
                                 }),
               error<IndexError>("select: index 0 is out of range for axis 0 of x (0, 3)",
                                 [] {
                                   xgrad::select(x({0, 3}), 0, 0);
                                 }),
               error<IndexError>("select: axis 2 is out of range for x (2, 3)", [] {
                 xgrad::select(x({2, 3}), 2, 0);
               })};
  return op;
}

Op slice_op() {
  Op op{"indexing.slice", {}, {}};
  constexpr std::ptrdiff_t open = std::numeric_limits<std::ptrdiff_t>::max();
  struct Sample {
    Shape shape;
    int dim;
    std::ptrdiff_t start, end, step;
    std::size_t axis, first, count;
  };
  for (const auto& [shape, dim, start, end, step, axis, first, count] :
       {Sample{{5}, 0, 1, 4, 1, 0, 1, 3}, Sample{{5}, 0, 0, open, 2, 0, 0, 3},
        Sample{{5}, 0, 1, open, 2, 0, 1, 2}, Sample{{5}, 0, -2, open, 1, 0, 3, 2},
        Sample{{5}, 0, 0, -1, 3, 0, 0, 2}, Sample{{5}, 0, -100, 100, 1, 0, 0, 5},
        Sample{{5}, 0, 3, 2, 1, 0, 0, 0}, Sample{{5}, 0, 9, open, 1, 0, 0, 0},
        Sample{{5}, 0, 1, open, open, 0, 1, 1}, Sample{{2, 5, 3}, 1, 1, 4, 2, 1, 1, 2},
        Sample{{2, 17}, -1, 3, 16, 3, 1, 3, 5}, Sample{{0, 3}, 0, 0, open, 1, 0, 0, 0}})
    op.cases.push_back(make_case(
        {shape},
        [=, dim = dim, start = start, end = end, step = step](const auto& x) {
          return xgrad::slice(x[0], dim, start, end, step);
        },
        naive::slice(axis, first, count, static_cast<std::size_t>(step))));
  op.errors = {
      error<ValueError>("slice: step must be at least 1, got 0", [] { xgrad::slice(x({5}), 0, 0, 5, 0); }),
      error<ValueError>("slice: step must be at least 1, got -1", [] { xgrad::slice(x({5}), 0, 0, 5, -1); }),
      error<IndexError>("slice: axis 1 is out of range for x (5)", [] { xgrad::slice(x({5}), 1, 0); })};
  return op;
}

Op narrow_op() {
  Op op{"indexing.narrow", {}, {}};
  struct Sample {
    Shape shape;
    int dim;
    std::ptrdiff_t start, length;
    std::size_t axis, first;
  };
  for (const auto& [shape, dim, start, length, axis, first] :
       {Sample{{5}, 0, 1, 3, 0, 1}, Sample{{2, 5}, -1, -2, 2, 1, 3}, Sample{{2, 5, 3}, 1, 5, 0, 1, 5}})
    op.cases.push_back(make_case(
        {shape},
        [=, dim = dim, start = start, length = length](const auto& x) {
          return xgrad::narrow(x[0], dim, start, length);
        },
        naive::slice(axis, first, static_cast<std::size_t>(length), 1)));
  const auto refused = [](std::ptrdiff_t start, std::ptrdiff_t length) {
    return error<IndexError>("narrow: start " + std::to_string(start) + " and length " +
                                 std::to_string(length) + " are out of range for axis 0 of x (5)",
                             [=] { xgrad::narrow(x({5}), 0, start, length); });
  };
  constexpr std::ptrdiff_t huge = std::numeric_limits<std::ptrdiff_t>::max();
  op.errors = {refused(4, 2),  refused(-6, 1),   refused(6, 0),
               refused(0, -1), refused(1, huge), refused(huge, 1)};
  return op;
}

struct IndexSample {
  Shape shape;
  int dim;
  Ids index;
  std::size_t axis;  // dim, counted from the front
};

Op index_select_op() {
  Op op{"indexing.index_select", {}, {}};
  for (const auto& [shape, dim, index, axis] :
       std::vector<IndexSample>{{{4}, 0, ids_of({3}, {3, 0, 3}), 0},
                                {{4, 3}, 0, ids_of({2}, {2, 2}), 0},
                                {{2, 4, 3}, 1, ids_of({5}, {3, 0, 1, 1, 2}), 1},
                                {{2, 3}, -1, ids_of({}, {1}), 1},
                                {{2, 3}, 0, ids_of({0}, {}), 0}}) {
    Shape result = shape;
    result[axis] = index.size();
    op.cases.push_back(make_case(
        {shape}, [dim = dim, index = index](const auto& x) { return xgrad::index_select(x[0], dim, index); },
        naive::taken(result, [axis = axis, index = index](Shape at) {
          at[axis] = static_cast<std::size_t>(index.data()[at[axis]]);
          return at;
        })));
  }
  for (const Ids& index : {ids_of({}, {0}), ids_of({1}, {0})}) {
    op.cases.push_back(make_case(
        {{}}, [index](const auto& x) { return xgrad::index_select(x[0], -1, index); },
        naive::map([](double x) { return x; })));
  }
  op.errors = {error<IndexError>("index_select: index must be in [0, 1), got 1",
                                 [] { xgrad::index_select(x({}), 0, ids_of({1}, {1})); }),
               error<IndexError>("index_select: axis 0 is out of range for x ()",
                                 [] {
                                   xgrad::index_select(x({}), 0, ids_of({2}, {0, 0}));
                                 }),
               error<IndexError>("index_select: index must be in [0, 2), got 2",
                                 [] {
                                   xgrad::index_select(x({2, 3}), 0, ids_of({1}, {2}));
                                 }),
               error<IndexError>("index_select: index must be in [0, 3), got -1",
                                 [] {
                                   xgrad::index_select(x({2, 3}), 1, ids_of({2}, {0, -1}));
                                 }),
               error<IndexError>("index_select: axis 2 is out of range for x (2, 3)",
                                 [] {
                                   xgrad::index_select(x({2, 3}), 2, ids_of({1}, {0}));
                                 }),
               error<ShapeError>("index_select: index must have at most one axis, got (1, 1)", [] {
                 xgrad::index_select(x({2, 3}), 0, ids_of({1, 1}, {0}));
               })};
  return op;
}

Op gather_op() {
  Op op{"indexing.gather", {}, {}};
  for (const auto& [shape, dim, index, axis] :
       std::vector<IndexSample>{{{4}, 0, ids_of({3}, {3, 0, 3}), 0},
                                {{2, 3}, 1, ids_of({2, 4}, {0, 2, 2, 1, 1, 1, 0, 2}), 1},
                                {{3, 2}, 0, ids_of({1, 2}, {2, 0}), 0},
                                {{2, 3, 2}, -1, ids_of({1, 2, 1}, {1, 0}), 2},
                                {{2, 3}, 0, ids_of({0, 3}, {}), 0}}) {
    op.cases.push_back(make_case(
        {shape}, [dim = dim, index = index](const auto& x) { return xgrad::gather(x[0], dim, index); },
        naive::taken(index.shape(), [axis = axis, index = index](Shape at) {
          std::size_t offset = 0;
          for (std::size_t k = 0; k < at.size(); ++k) offset = offset * index.shape()[k] + at[k];
          at[axis] = static_cast<std::size_t>(index.data()[offset]);
          return at;
        })));
  }
  op.cases.push_back(make_case(
      {{}}, [](const auto& x) { return xgrad::gather(x[0], 0, ids_of({}, {0})); },
      naive::map([](double x) { return x; })));
  for (const auto& [shape, dim, index] :
       {std::tuple(Shape{}, 0, ids_of({2}, {0, 0})), std::tuple(Shape{3}, -1, ids_of({}, {2})),
        std::tuple(Shape{2, 3}, 1, ids_of({0}, {})), std::tuple(Shape{2, 3}, 0, ids_of({5, 0, 7}, {})),
        std::tuple(Shape{}, 0, ids_of({0}, {}))}) {
    op.cases.push_back(make_case(
        {shape}, [dim = dim, index = index](const auto& x) { return xgrad::gather(x[0], dim, index); },
        naive::taken(index.shape(), [scalar = shape.empty(), index = index](const Shape& at) {
          const std::int64_t id = index.data()[at.empty() ? 0 : at[0]];
          return scalar ? Shape{} : Shape{static_cast<std::size_t>(id)};
        })));
  }
  const std::string shapes =
      "gather: index must have x's rank and be nowhere longer but along axis 0, got x (2, 3) ";
  op.errors = {error<IndexError>("gather: index must be in [0, 2), got 4294967297",
                                 [] {
                                   xgrad::gather(x({2, 3}), 0, ids_of({1, 1}, {4294967297}));
                                 }),
               error<IndexError>("gather: axis 2 is out of range for x (2, 3)",
                                 [] {
                                   xgrad::gather(x({2, 3}), 2, ids_of({0}, {}));
                                 }),
               error<IndexError>("gather: index must be in [0, 1), got 1",
                                 [] { xgrad::gather(x({}), 0, ids_of({1}, {1})); }),
               error<IndexError>("gather: index must be in [0, 2), got 2",
                                 [] {
                                   xgrad::gather(x({2, 3}), 0, ids_of({1, 1}, {2}));
                                 }),
               error<ShapeError>(shapes + "and index (1)",
                                 [] {
                                   xgrad::gather(x({2, 3}), 0, ids_of({1}, {0}));
                                 }),
               error<ShapeError>(shapes + "and index (1, 4)", [] {
                 xgrad::gather(x({2, 3}), 0, ids_of({1, 4}, {0, 0, 0, 0}));
               })};
  return op;
}

// triangle, where

template <class F>
Op triangle_op(const char* name, const F& f, bool lower) {
  Op op{std::string("triangle.") + name, {}, {}};
  constexpr std::ptrdiff_t huge = std::numeric_limits<std::ptrdiff_t>::max();
  for (const Shape& shape :
       {Shape{3, 3}, Shape{2, 5}, Shape{4, 2}, Shape{2, 3, 4}, Shape{0, 3}, Shape{2, 0}}) {
    for (const std::ptrdiff_t diagonal :
         {std::ptrdiff_t{0}, std::ptrdiff_t{1}, std::ptrdiff_t{-2}, huge, -huge}) {
      const auto kept = [=](const Shape& at) -> std::optional<Shape> {
        const auto column = static_cast<std::ptrdiff_t>(at.back()),
                   row = static_cast<std::ptrdiff_t>(at[at.size() - 2]);
        const bool keep = lower ? column - row <= diagonal : column - row >= diagonal;
        return keep ? std::optional<Shape>(at) : std::nullopt;
      };
      op.cases.push_back(make_case(
          {shape}, [=](const auto& x) { return f(x[0], diagonal); }, naive::taken(shape, kept)));
    }
  }
  op.errors = {error<ShapeError>(std::string(name) + ": x must have at least two axes, got (3)",
                                 [f] { f(x({3}), 0); })};
  return op;
}

Op where_op() {
  Op op{"where", {}, {}};
  const Mask mask = mask_of({2, 3}, {1, 0, 0, 1, 1, 0});
  for (const auto& [a, b] :
       {std::pair<Shape, Shape>{{2, 3}, {2, 3}}, {{3}, {2, 1}}, {{}, {4, 1, 1}}, {{1}, {}}}) {
    op.cases.push_back(make_case(
        {a, b}, [mask](const auto& x) { return xgrad::where(mask, x[0], x[1]); }, naive::where(mask)));
  }
  op.errors = {error<ShapeError>("where: shapes must broadcast, got a (2) and b (3)",
                                 [mask] { xgrad::where(mask, x({2}), x({3})); }),
               error<ShapeError>("where: shapes must broadcast, got condition (2, 3) and a and b (2)",
                                 [mask] { xgrad::where(mask, x({2}), x({2})); })};
  return op;
}

// more reductions

template <class All, class Some>
Op extreme_op(const char* name, const All& all, const Some& some, Reference (*reference)(Dims, bool)) {
  Op op{std::string("reductions.") + name, {}, {}};
  for (const Shape& shape : {Shape{2, 3}, Shape{2, 3, 4}, Shape{17}, Shape{}})
    op.cases.push_back(make_case({shape}, all, [reference](const std::vector<Array<double>>& x) {
      Shape every = x[0].shape();
      for (std::size_t axis = 0; axis < every.size(); ++axis) every[axis] = axis;
      return reference(every, false)(x);
    }));
  for (const Dims& dims : {Dims{0}, Dims{-1}, Dims{1}, Dims{0, 2}, Dims{2, -2}, Dims{0, 1, 2}}) {
    for (const bool keepdim : {false, true}) {
      op.cases.push_back(make_case(
          {{2, 3, 33}}, [=](const auto& x) { return some(x[0], dims, keepdim); }, reference(dims, keepdim)));
    }
  }
  op.cases.push_back(make_case(
      {{0, 3}}, [=](const auto& x) { return some(x[0], 1, false); }, reference(1, false)));
  const std::string prefix = name;
  op.errors = {error<IndexError>(prefix + ": axis 2 is out of range for x (2, 3)",
                                 [some] {
                                   some(x({2, 3}), 2, false);
                                 }),
               error<ValueError>(prefix + ": dims must name an axis once, got (0, 0) for x (2, 3)", [some] {
                 some(x({2, 3}), {0, 0}, false);
               })};
  return op;
}

Op amax_op() {
  Op op = extreme_op(
      "amax", [](const auto& x) { return xgrad::amax(x[0]); },
      [](const auto& x, const Dims& dims, bool keepdim) { return xgrad::amax(x, dims, keepdim); },
      naive::amax);
  op.errors.push_back(error<ValueError>("amax: there are no elements to choose from in x (0, 3)", [] {
    xgrad::amax(x({0, 3}), 0);
  }));
  return op;
}

Op amin_op() {
  Op op = extreme_op(
      "amin", [](const auto& x) { return xgrad::amin(x[0]); },
      [](const auto& x, const Dims& dims, bool keepdim) { return xgrad::amin(x, dims, keepdim); },
      naive::amin);
  op.errors.push_back(
      error<ValueError>("amin: there are no elements to choose from in x (0)", [] { xgrad::amin(x({0})); }));
  return op;
}

Op logsumexp_op() {
  return extreme_op(
      "logsumexp",
      [](const auto& x) {
        Shape every(x[0].dimension(), 0);
        for (std::size_t axis = 0; axis < every.size(); ++axis) every[axis] = axis;
        return xgrad::logsumexp(x[0], every);
      },
      [](const auto& x, const Dims& dims, bool keepdim) { return xgrad::logsumexp(x, dims, keepdim); },
      naive::logsumexp);
}

Op var_op() {
  Op op{"reductions.var", {}, {}};
  for (const std::size_t correction : {0, 1}) {
    for (const bool keepdim : {false, true}) {
      for (const Dims& dims : {Dims{0}, Dims{-1}, Dims{0, 2}, Dims{0, 1, 2}}) {
        op.cases.push_back(make_case(
            {{2, 3, 17}},
            [=](const auto& x) {
              return xgrad::var(x[0], dims, {.correction = correction, .keepdim = keepdim});
            },
            naive::var(dims, keepdim, static_cast<double>(correction))));
      }
    }
  }
  op.cases.push_back(make_case(
      {{5}}, [](const auto& x) { return xgrad::var(x[0]); }, naive::var(0, false, 1)));
  op.errors = {error<IndexError>("var: axis 2 is out of range for x (2, 3)", [] {
    xgrad::var(x({2, 3}), 2);
  })};
  return op;
}

// more shapes

/// A row whose results are x in another shape.
template <class F>
void add_reshaped(Op& op, const Shape& from, const Shape& to, const F& f) {
  op.cases.push_back(make_case(
      {from}, [f](const auto& x) { return f(x[0]); }, naive::reshape(to)));
}

Op flatten_op() {
  Op op{"shapes.flatten", {}, {}};
  add_reshaped(op, {2, 3, 4}, {24}, [](const auto& x) { return xgrad::flatten(x); });
  add_reshaped(op, {2, 3, 4}, {2, 12}, [](const auto& x) { return xgrad::flatten(x, 1); });
  add_reshaped(op, {2, 3, 4}, {6, 4}, [](const auto& x) { return xgrad::flatten(x, 0, -2); });
  add_reshaped(op, {2, 3}, {2, 3}, [](const auto& x) { return xgrad::flatten(x, 1, 1); });
  add_reshaped(op, {}, {1}, [](const auto& x) { return xgrad::flatten(x); });
  add_reshaped(op, {2, 0}, {0}, [](const auto& x) { return xgrad::flatten(x); });
  op.errors = {
      error<IndexError>("flatten: axis 2 is out of range for x (2, 3)",
                        [] {
                          xgrad::flatten(x({2, 3}), 0, 2);
                        }),
      error<ValueError>("flatten: start_dim must not come after end_dim, got 1 and 0 for x (2, 3)", [] {
        xgrad::flatten(x({2, 3}), 1, 0);
      })};
  return op;
}

Op unsqueeze_op() {
  Op op{"shapes.unsqueeze", {}, {}};
  add_reshaped(op, {2, 3}, {1, 2, 3}, [](const auto& x) { return xgrad::unsqueeze(x, 0); });
  add_reshaped(op, {2, 3}, {2, 3, 1}, [](const auto& x) { return xgrad::unsqueeze(x, -1); });
  add_reshaped(op, {2, 3}, {2, 1, 3}, [](const auto& x) { return xgrad::unsqueeze(x, -2); });
  add_reshaped(op, {}, {1}, [](const auto& x) { return xgrad::unsqueeze(x, 0); });
  op.errors = {error<IndexError>("unsqueeze: axis 3 is out of range for x with one more axis (2, 3, 1)", [] {
    xgrad::unsqueeze(x({2, 3}), 3);
  })};
  return op;
}

Op squeeze_op() {
  Op op{"shapes.squeeze", {}, {}};
  add_reshaped(op, {1, 2, 1, 3}, {2, 3}, [](const auto& x) { return xgrad::squeeze(x); });
  add_reshaped(op, {1, 1}, {}, [](const auto& x) { return xgrad::squeeze(x); });
  add_reshaped(op, {2, 1, 3}, {2, 3}, [](const auto& x) { return xgrad::squeeze(x, 1); });
  add_reshaped(op, {2, 1, 3}, {2, 1, 3}, [](const auto& x) { return xgrad::squeeze(x, -1); });
  add_reshaped(op, {}, {}, [](const auto& x) { return xgrad::squeeze(x, 0); });
  op.errors = {error<IndexError>("squeeze: axis 2 is out of range for x (2, 3)", [] {
    xgrad::squeeze(x({2, 3}), 2);
  })};
  return op;
}

Op expand_op() {
  Op op{"shapes.expand", {}, {}};
  struct Sample {
    Shape from;
    Dims shape;
    Shape to;
  };
  for (const auto& [from, shape, to] :
       {Sample{{3, 1}, {3, 4}, {3, 4}}, Sample{{3, 1}, {2, -1, 4}, {2, 3, 4}}, Sample{{}, {2, 2}, {2, 2}},
        Sample{{1}, {0}, {0}}, Sample{{2, 3}, {-1, -1}, {2, 3}}})
    op.cases.push_back(make_case(
        {from}, [shape = shape](const auto& x) { return xgrad::expand(x[0], shape); },
        naive::broadcast_to(to)));
  const auto refused = [](Dims shape) {
    return error<ShapeError>(
        "expand: x must stretch to shape, got x (2, 1) and shape " + xgrad::to_string(shape), [shape] {
          xgrad::expand(x({2, 1}), shape);
        });
  };
  op.errors = {refused({3, 3}), refused(2), refused({-1, 2, 1}), refused({2, -2})};
  return op;
}

Op stack_op() {
  Op op{"shapes.stack", {}, {}};
  op.cases = {
      make_case(
          {{2, 3}, {2, 3}}, [](const auto& x) { return xgrad::stack(x); }, naive::stack(0)),
      make_case(
          {{2, 3}, {2, 3}, {2, 3}}, [](const auto& x) { return xgrad::stack(x, -1); }, naive::stack(2)),
      make_case(
          {{2, 3}, {2, 3}}, [](const auto& x) { return xgrad::stack(x, -2); }, naive::stack(1)),
      make_case(
          {{}, {}}, [](const auto& x) { return xgrad::stack(x); }, naive::stack(0))};
  op.errors = {error<ValueError>("stack: parts must not be empty", [] { xgrad::stack(Inputs<float>{}); }),
               error<IndexError>("stack: axis 2 is out of range for part 0 with one more axis (2, 1)",
                                 [] {
                                   xgrad::stack({x({2}), x({2})}, 2);
                                 }),
               error<ShapeError>("stack: parts must have one shape, got (2) and (3)", [] {
                 xgrad::stack({x({2}), x({3})});
               })};
  return op;
}

Op split_op() {
  Op op{"shapes.split", {}, {}};
  const auto second = [](const auto& x) { return xgrad::split(x[0], {1, 3, 0, 1}, 1)[1]; };
  const auto last = [](const auto& x) { return xgrad::split(x[0], 2, -1).back(); };
  op.cases = {make_case({{2, 5}}, second, naive::slice(1, 1, 3, 1)),
              make_case({{2, 5}}, last, naive::slice(1, 4, 1, 1)),
              make_case({{4}}, last, naive::slice(0, 2, 2, 1)),
              make_case(
                  {{2, 5}},
                  [](const auto& x) {
                    return xgrad::cat(xgrad::split(x[0], {2, 3}, 1), 1);
                  },
                  naive::map([](double x) { return x; }))};
  const auto refused = [](std::vector<std::ptrdiff_t> lengths) {
    return error<ValueError>("split: lengths must be at least 0 and add up to the length of axis 0 of x (5)",
                             [lengths] { xgrad::split(x({5}), lengths); });
  };
  constexpr std::ptrdiff_t huge = std::numeric_limits<std::ptrdiff_t>::max();
  op.errors = {refused({-1, 6}), refused({}), refused({2, 2}), refused({huge, huge, 7}),
               error<ValueError>("split: length must be at least 1, got 0", [] { xgrad::split(x({5}), 0); })};
  return op;
}

// losses and noise

Op dropout_op() {
  Op op{"dropout", {}, {}};
  op.cases = make_cases(
      {{{5, 17}}, {{}}, {{0}}},
      [](const auto& x) {
        xgrad::manual_seed(3);
        return xgrad::dropout(x[0], 0.25);
      },
      [](const std::vector<Array<double>>& x) {
        xgrad::manual_seed(3);
        Array<double> y = xgrad::bernoulli<double>(x[0].shape(), 0.75);
        for (std::size_t i = 0; i < y.size(); ++i) y.data()[i] *= x[0].data()[i] / 0.75;
        return y;
      });
  op.cases.push_back(make_case(
      {{2, 3}}, [](const auto& x) { return xgrad::dropout(x[0], 0.5, false); },
      naive::map([](double x) { return x; })));
  op.cases.push_back(make_case(
      {{2, 3}}, [](const auto& x) { return xgrad::dropout(x[0], 0); },
      naive::map([](double x) { return x; })));
  op.cases.push_back(make_case(
      {{2, 3}}, [](const auto& x) { return xgrad::dropout(x[0], 1); },
      naive::map([](double) { return 0.0; })));
  op.errors = {
      error<ValueError>("dropout: p must be in [0, 1], got 1.5", [] { xgrad::dropout(x({2}), 1.5); }),
      error<ValueError>("dropout: p must be in [0, 1], got -0.1",
                        [] { xgrad::dropout(x({2}), -0.1, false); }),
      error<ValueError>("dropout: p must be in [0, 1], got nan", [] { xgrad::dropout(x({2}), NAN); })};
  return op;
}

Op bmm_op() {
  Op op{"matmul.bmm",
        make_cases(
            {{{2, 3, 4}, {2, 4, 5}}, {{1, 1, 17}, {1, 17, 1}}, {{0, 2, 3}, {0, 3, 2}}},
            [](const auto& x) { return xgrad::bmm(x[0], x[1]); }, naive::matmul()),
        {}};
  op.errors = {
      error<ShapeError>("bmm: operands must be (B, n, k) and (B, k, m), got a (2, 3) and b (2, 3, 4)",
                        [] {
                          xgrad::bmm(x({2, 3}), x({2, 3, 4}));
                        }),
      error<ShapeError>("bmm: operands must be (B, n, k) and (B, k, m), got a (1, 2, 3) and b (2, 3, 4)", [] {
        xgrad::bmm(x({1, 2, 3}), x({2, 3, 4}));
      })};
  return op;
}

Op einsum_op() {
  Op op{"einsum", {}, {}};
  const auto add = [&op](const char* equation, std::vector<Input> inputs, std::vector<std::string> operands,
                         const char* output) {
    op.cases.push_back(make_case(
        std::move(inputs), [equation](const auto& x) { return xgrad::einsum(equation, x); },
        naive::einsum(std::move(operands), output)));
  };
  add("ij,jk->ik", {{2, 3}, {3, 4}}, {"ij", "jk"}, "ik");
  add("bhqd,bhkd->bhqk", {{2, 3, 4, 2}, {2, 3, 5, 2}}, {"bhqd", "bhkd"}, "bhqk");
  add("ij->ji", {{2, 3}}, {"ij"}, "ji");
  add("ij->", {{2, 3}}, {"ij"}, "");
  add("ij,ij->i", {{2, 3}, {2, 3}}, {"ij", "ij"}, "i");
  add("i,j->ij", {{2}, {3}}, {"i", "j"}, "ij");
  add("ij,ij->ji", {{2, 3}, {2, 3}}, {"ij", "ij"}, "ji");
  add("ii->i", {{3, 3}}, {"ii"}, "i");
  add("ii", {{3, 3}}, {"ii"}, "");
  add("ijkji,kl->lj", {{2, 3, 2, 3, 2}, {2, 4}}, {"ijkji", "kl"}, "lj");
  add("iii->i", {{2, 2, 2}}, {"iii"}, "i");
  add("ba", {{2, 3}}, {"ba"}, "ab");
  add(" i j , j k ", {{2, 3}, {3, 4}}, {"ij", "jk"}, "ik");
  add("...ij,...jk->...ik", {{4, 1, 2, 3}, {5, 3, 2}}, {"abij", "bjk"}, "abik");
  add("i...->...", {{2, 3, 4}}, {"iab"}, "ab");
  add("...i->i", {{2, 3, 4}}, {"abi"}, "i");
  add("i...j,j", {{2, 3, 4}, {4}}, {"iaj", "j"}, "ai");
  add("ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 2}}, {"ij", "jk", "kl"}, "il");
  add("i,ij,j->", {{2}, {2, 3}, {3}}, {"i", "ij", "j"}, "");
  add("ij,kj->ik", {{2, 1}, {3, 4}}, {"ij", "kj"}, "ik");
  add("ij,jk->ik", {{2, 0}, {0, 3}}, {"ij", "jk"}, "ik");
  add("ij,ij->ij", {{0, 1}, {1, 3}}, {"ij", "ij"}, "ij");
  add(",i->i", {{}, {3}}, {"", "i"}, "i");
  add("ab,cd->", {{2, 3}, {3, 2}}, {"ab", "cd"}, "");

  const auto refused = [&op]<class Error>(Error, const char* message, const char* equation,
                                          std::vector<Shape> shapes) {
    op.errors.push_back(error<Error>(message, [equation, shapes] {
      Inputs<float> operands;
      for (const Shape& shape : shapes) operands.push_back(x(shape));
      xgrad::einsum(equation, operands);
    }));
  };
  const ShapeError shape("");
  const ValueError value("");
  refused(shape, "einsum: operand 0 must have 3 axes for 'ijk', got (2, 3)", "ijk,jk->ik", {{2, 3}, {3, 4}});
  refused(shape, "einsum: operand 1 must have at least 2 axes for '...jk', got (3)", "ij,...jk->ik",
          {{2, 3}, {3}});
  refused(shape, "einsum: axes of one letter must have one length, got operand 1 (4, 5) where 3 came before",
          "ij,jk->ik", {{2, 3}, {4, 5}});
  refused(shape, "einsum: axes of one letter must have one length, got axes 0 and 1 of (2, 3)", "ii->i",
          {{2, 3}});
  refused(value, "einsum: 'ij,jk->ik' must name as many operands as there are, got 1", "ij,jk->ik", {{2, 3}});
  refused(value, "einsum: 'ij' must name as many operands as there are, got 0", "ij", {});
  refused(value, "einsum: axes must be letters or one '...', got 'i1' in 'i1->i'", "i1->i", {{2, 3}});
  refused(value, "einsum: axes must be letters or one '...', got 'i..' in 'i..->i'", "i..->i", {{2, 3}});
  refused(value, "einsum: axes must be letters or one '...', got 'i->i' in 'i->i->i'", "i->i->i", {{2}});
  refused(value, "einsum: axes must be letters or one '...', got '......' in '......'", "......", {{2}});
  refused(value, "einsum: an axis may be in the output once, got 'i->ii'", "i->ii", {{2}});
  refused(value, "einsum: every axis of the output must be one of an operand, got 'i->j'", "i->j", {{2}});
  return op;
}

Op gemm_op() {
  const auto reference = [](bool trans_a, bool trans_b, double alpha, double beta) {
    return [=](const std::vector<Array<double>>& x) {
      const auto turned = [](const Array<double>& a, bool turn) {
        return turn ? naive::permute({1, 0})({a}) : a;
      };
      Array<double> y = naive::matmul()({turned(x[0], trans_a), turned(x[1], trans_b)});
      y = y * alpha;
      return x.size() < 3
                 ? y
                 : naive::binary([](double a, double b) { return a + b; })({y, Array<double>(x[2] * beta)});
    };
  };
  Op op{"matmul.gemm", {}, {}};
  op.cases = {make_case(
                  {{2, 3}, {3, 4}}, [](const auto& x) { return xgrad::gemm(x[0], x[1]); },
                  reference(false, false, 1, 1)),
              make_case(
                  {{3, 2}, {4, 3}, {4}},
                  [](const auto& x) {
                    return xgrad::gemm(x[0], x[1], x[2],
                                       {.alpha = 0.5, .beta = 2, .trans_a = true, .trans_b = true});
                  },
                  reference(true, true, 0.5, 2)),
              make_case(
                  {{2, 3}, {4, 3}, {2, 1}},
                  [](const auto& x) { return xgrad::gemm(x[0], x[1], x[2], {.trans_b = true}); },
                  reference(false, true, 1, 1))};
  op.errors = {error<ShapeError>("gemm: operands must be matrices, got a (2) and b (2, 3)",
                                 [] {
                                   xgrad::gemm(x({2}), x({2, 3}));
                                 }),
               error<ShapeError>("gemm: c must broadcast to the product (2, 4), got (5)", [] {
                 xgrad::gemm(x({2, 3}), x({3, 4}), x({5}));
               })};
  return op;
}

Op mse_loss_op() {
  using xgrad::Reduction;
  Op op{"losses.mse_loss", {}, {}};
  const auto squares = [](double a, double b) { return (a - b) * (a - b); };
  op.cases = {
      make_case(
          {{2, 3}, {2, 3}}, [](const auto& x) { return xgrad::mse_loss(x[0], x[1], Reduction::none); },
          naive::binary(squares)),
      make_case(
          {{7}, {7}}, [](const auto& x) { return xgrad::mse_loss(x[0], x[1], Reduction::sum); },
          [squares](const auto& x) { return naive::sum(0, false)({naive::binary(squares)(x)}); }),
      make_case(
          {{7}, {7}}, [](const auto& x) { return xgrad::mse_loss(x[0], x[1]); },
          [squares](const auto& x) { return naive::mean(0, false)({naive::binary(squares)(x)}); })};
  op.errors = {error<ShapeError>("mse_loss: shapes must broadcast, got input (2) and target (3)",
                                 [] { xgrad::mse_loss(x({2}), x({3})); })};
  return op;
}

/// Class weights 1, 2, 3, ... for three classes.
template <class V>
V class_weights(const V&) {
  return V(Array<typename V::value_type>{1, 2, 3});
}

Op nll_loss_op() {
  using xgrad::Reduction;
  Op op{"losses.nll_loss", {}, {}};
  const Ids target = ids_of({4}, {2, -1, 0, 1});
  const auto reference = [target](bool weighted, char reduction) {
    return [=](const std::vector<Array<double>>& x) {
      Array<double> y = Array<double>::from_shape({4});
      double total = 0, count = 0;
      for (std::size_t i = 0; i < 4; ++i) {
        const std::int64_t id = target(i);
        const double weight = id < 0 ? 0 : weighted ? static_cast<double>(id + 1) : 1;
        y(i) = id < 0 ? 0 : -weight * x[0](i, static_cast<std::size_t>(id));
        total += y(i);
        count += weight;
      }
      return reduction == 'n' ? y : Array<double>(reduction == 's' ? total : total / count);
    };
  };
  op.cases = {
      make_case(
          {{4, 3}},
          [target](const auto& x) {
            return xgrad::nll_loss(x[0], target, {.ignore_index = -1, .reduction = Reduction::none});
          },
          reference(false, 'n')),
      make_case(
          {{4, 3}}, [target](const auto& x) { return xgrad::nll_loss(x[0], target, {.ignore_index = -1}); },
          reference(false, 'm')),
      make_case(
          {{4, 3}},
          [target](const auto& x) {
            return xgrad::nll_loss(
                x[0], target,
                {.weight = class_weights(x[0]), .ignore_index = -1, .reduction = Reduction::sum});
          },
          reference(true, 's')),
      make_case(
          {{4, 3}},
          [target](const auto& x) {
            return xgrad::nll_loss(x[0], target, {.weight = class_weights(x[0]), .ignore_index = -1});
          },
          reference(true, 'm'))};
  op.errors = {error<IndexError>("nll_loss: target must be in [0, 3), got 3 (3 classes)",
                                 [] {
                                   xgrad::nll_loss(x({2, 3}), ids_of({2}, {0, 3}));
                                 }),
               error<ShapeError>(
                   "nll_loss: target must have the shape of log_probs without the class axis, got log_probs "
                   "(2, 3) and target (3)",
                   [] {
                     xgrad::nll_loss(x({2, 3}), ids_of({3}, {0, 0, 0}));
                   }),
               error<ShapeError>("nll_loss: weight must be (3), got (2)",
                                 [] {
                                   xgrad::nll_loss(x({2, 3}), ids_of({2}, {0, 0}), {.weight = x({2})});
                                 }),
               error<ShapeError>("nll_loss: log_probs need an axis of classes, got ()",
                                 [] { xgrad::nll_loss(x({}), ids_of({}, {0})); })};
  return op;
}

/// -sum(target weight log_softmax) over the classes of each row of logits (N, C), with the target smoothed.
Reference soft_cross_entropy(Ids target, bool weighted, double smoothing, bool reduced) {
  return [=](const std::vector<Array<double>>& x) {
    const Array<double> log_probs = naive::log_softmax(1)({x[0]});
    const std::size_t rows = log_probs.shape()[0], classes = log_probs.shape()[1];
    Array<double> y = Array<double>::from_shape({rows});
    double total = 0, count = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      y(r) = 0;
      for (std::size_t c = 0; c < classes; ++c) {
        const double weight = weighted ? static_cast<double>(c + 1) : 1;
        const double hard = x.size() > 1 ? x[1](r, c) : static_cast<std::size_t>(target(r)) == c ? 1 : 0;
        y(r) -=
            (hard * (1 - smoothing) + smoothing / static_cast<double>(classes)) * weight * log_probs(r, c);
        count += x.size() > 1 ? 1 / static_cast<double>(classes) : hard * weight;
      }
      total += y(r);
    }
    return reduced ? Array<double>(total / count) : y;
  };
}

Op cross_entropy_op() {
  using xgrad::Reduction;
  Op op{"cross_entropy", {}, {}};
  struct Sample {
    Shape logits;
    Ids target;
    std::int64_t ignore_index;
  };
  for (const auto& [logits, target, ignore_index] :
       {Sample{{2, 3}, ids_of({2}, {2, 0}), -100}, Sample{{3}, ids_of({}, {1}), -100},
        Sample{{4, 3}, ids_of({4}, {2, -100, 0, -100}), -100}, Sample{{4, 3}, ids_of({4}, {2, 1, 0, 1}), 1},
        Sample{{2, 3, 2}, ids_of({2, 2}, {2, 0, 1, 1}), -100},
        Sample{{2, 3, 2, 2}, ids_of({2, 2, 2}, {2, 0, -1, 1, 0, 0, 2, 2}), -1},
        Sample{{2, 1}, ids_of({2}, {0, 0}), -100}, Sample{{3, 17}, ids_of({3}, {16, 0, 5}), -100}}) {
    for (const char reduction : {'n', 's', 'm'}) {
      const Reduction kind = reduction == 'n'   ? Reduction::none
                             : reduction == 's' ? Reduction::sum
                                                : Reduction::mean;
      op.cases.push_back(make_case(
          {logits},
          [target = target, ignore_index = ignore_index, kind](const auto& x) {
            return xgrad::cross_entropy(x[0], target, {.ignore_index = ignore_index, .reduction = kind});
          },
          naive::cross_entropy(target, reduction, ignore_index)));
    }
  }
  const auto summed = [](const auto& x) {
    return xgrad::cross_entropy(x[0], Ids(Array<std::int64_t>::from_shape({x[0].shape()[0]}) * 0 - 100),
                                {.reduction = Reduction::sum});
  };
  op.cases.push_back(make_case({{2, 3}}, summed, naive::cross_entropy(ids_of({2}, {-100, -100}), 's', -100)));
  op.cases.push_back(make_case({{0, 3}}, summed, naive::cross_entropy(ids_of({0}, {}), 's', -100)));
  const Ids classes = ids_of({3}, {2, 0, 1});
  op.cases.push_back(make_case(
      {{3, 3}},
      [classes](const auto& x) {
        return xgrad::cross_entropy(x[0], classes, {.weight = class_weights(x[0])});
      },
      soft_cross_entropy(classes, true, 0, true)));
  op.cases.push_back(make_case(
      {{3, 3}},
      [classes](const auto& x) {
        return xgrad::cross_entropy(x[0], classes, {.weight = class_weights(x[0]), .label_smoothing = 0.2});
      },
      soft_cross_entropy(classes, true, 0.2, true)));
  op.cases.push_back(make_case(
      {{3, 3}},
      [classes](const auto& x) {
        return xgrad::cross_entropy(x[0], classes, {.reduction = Reduction::none, .label_smoothing = 0.3});
      },
      soft_cross_entropy(classes, false, 0.3, false)));
  op.cases.push_back(make_case(
      {{3, 3}, {3, 3}},
      [](const auto& x) {
        return xgrad::cross_entropy(x[0], x[1], {.weight = class_weights(x[0]), .label_smoothing = 0.1});
      },
      soft_cross_entropy(classes, true, 0.1, true)));
  op.cases.push_back(make_case(
      {{3, 3}, {3, 3}},
      [](const auto& x) { return xgrad::cross_entropy(x[0], x[1], {.reduction = Reduction::none}); },
      soft_cross_entropy(classes, false, 0, false)));
  op.errors = {
      error<ValueError>("cross_entropy: label_smoothing must be in [0, 1], got 1.5",
                        [] {
                          xgrad::cross_entropy(x({2, 3}), ids_of({2}, {0, 0}), {.label_smoothing = 1.5});
                        }),
      error<ShapeError>("cross_entropy: weight must be (3), got (2)",
                        [] {
                          xgrad::cross_entropy(x({2, 3}), ids_of({2}, {0, 0}), {.weight = x({2})});
                        }),
      error<ShapeError>(
          "cross_entropy: target probabilities must have the shape of logits, got logits (2, 3) "
          "and target (2, 2)",
          [] {
            xgrad::cross_entropy(x({2, 3}), x({2, 2}));
          }),
      error<IndexError>("cross_entropy: target must be in [0, 3), got 5 (3 classes)",
                        [] {
                          xgrad::cross_entropy(x({2, 3}), ids_of({2}, {0, 5}));
                        }),
      error<IndexError>("cross_entropy: target must be in [0, 3), got -1 (3 classes)",
                        [] {
                          xgrad::cross_entropy(x({2, 3}), ids_of({2}, {-1, 0}));
                        }),
      error<ShapeError>("cross_entropy: target must have the shape of logits without the class "
                        "axis, got logits (2, 3) and target (3)",
                        [] {
                          xgrad::cross_entropy(x({2, 3}), ids_of({3}, {0, 0, 0}));
                        }),
      error<ShapeError>("cross_entropy: logits need an axis of classes, got ()",
                        [] { xgrad::cross_entropy(x({}), ids_of({}, {0})); })};
  return op;
}

// attention

struct AttentionSample {
  Shape q, k, v;
  naive::Attention how;
  Shape bias = {};  // of the numbers added to the scores, if it has axes
};

std::vector<AttentionSample> attention_samples() {
  const Mask padding = mask_of({1, 4}, {1, 1, 0, 1}),
             some = mask_of({3, 4}, {1, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0});
  return {{{3, 2}, {4, 2}, {4, 5}, {}},
          {{2, 3, 2}, {2, 4, 2}, {2, 4, 5}, {}},
          {{3, 2}, {3, 2}, {3, 2}, {}},
          {{2, 2, 3, 2}, {2, 2, 4, 2}, {2, 2, 4, 2}, {}},
          {{3, 2}, {4, 2}, {4, 2}, {.causal = true}},
          {{4, 2}, {3, 2}, {3, 2}, {.causal = true, .scale = 0.3}},
          {{3, 2}, {4, 2}, {4, 2}, {.allowed = padding}},
          {{3, 2}, {4, 2}, {4, 2}, {.allowed = some}},
          {{2, 3, 2}, {2, 4, 2}, {2, 4, 2}, {.allowed = some}},
          {{2, 3, 2}, {2, 4, 2}, {2, 4, 2}, {.allowed = mask_of({2, 1, 4}, {1, 1, 1, 0, 0, 0, 0, 0})}},
          {{3, 2}, {4, 2}, {4, 2}, {.causal = true, .allowed = some}},
          {{2, 3, 4}, {2, 4, 4}, {2, 4, 6}, {.heads = 2}},
          {{3, 4}, {4, 4}, {4, 4}, {.heads = 4, .causal = true}},
          {{2, 3, 2},
           {2, 4, 2},
           {2, 4, 2},
           {.heads = 1, .allowed = mask_of({2, 1, 1, 4}, {1, 1, 1, 0, 0, 0, 0, 0})}},
          {{2, 3, 4},
           {2, 4, 4},
           {2, 4, 4},
           {.heads = 2, .allowed = mask_of({2, 1, 1, 4}, {1, 1, 1, 0, 0, 0, 0, 0})}},
          {{2, 3, 4}, {2, 4, 4}, {2, 4, 4}, {.heads = 2, .allowed = mask_of({2, 3, 1}, {1, 0, 1, 1, 1, 0})}},
          {{2, 2, 3, 4},
           {2, 2, 4, 4},
           {2, 2, 4, 4},
           {.heads = 2, .allowed = mask_of({2, 1, 1, 1, 4}, {1, 1, 1, 0, 0, 1, 1, 0})}},
          {{2, 2, 3, 4},
           {2, 2, 4, 4},
           {2, 2, 4, 4},
           {.heads = 2, .allowed = mask_of({2, 1, 1, 4}, {1, 1, 1, 0, 0, 1, 1, 0})}},
          {{3, 2}, {4, 2}, {4, 2}, {}, {3, 4}},
          {{2, 3, 4}, {2, 4, 4}, {2, 4, 4}, {.heads = 2}, {2, 1, 4}},
          {{2, 3, 4}, {2, 4, 4}, {2, 4, 4}, {.heads = 2, .causal = true}, {2, 1, 1, 4}},
          {{0, 3, 2}, {0, 4, 2}, {0, 4, 2}, {}},
          {{0, 2}, {4, 2}, {4, 2}, {}},
          {{3, 2}, {0, 2}, {0, 2}, {}},
          {{17, 6}, {19, 6}, {19, 6}, {.heads = 2}}};
}

/// f is given q, k, v, the mask and the options.
template <class F>
Op attention_op(const char* name, const F& f, Reference (*reference)(naive::Attention)) {
  Op op{name, {}, {}};
  for (const AttentionSample& sample : attention_samples()) {
    std::vector<Input> inputs{sample.q, sample.k, sample.v};
    if (!sample.bias.empty()) inputs.push_back(sample.bias);
    const auto call = [f, how = sample.how](const auto& x) {
      xgrad::AttentionMask<typename std::decay_t<decltype(x[0])>::value_type> mask;
      if (how.allowed) mask = *how.allowed;
      if (x.size() > 3) mask = x[3];
      return f(x[0], x[1], x[2], mask,
               xgrad::AttentionOptions{.is_causal = how.causal, .scale = how.scale, .num_heads = how.heads});
    };
    op.cases.push_back(make_case(inputs, call, reference(sample.how)));
  }
  const auto refused = [f](std::string text, Shape q, Shape k, Shape v, xgrad::AttentionMask<float> mask = {},
                           xgrad::AttentionOptions options = {}) {
    return error<ShapeError>("scaled_dot_product_attention: " + text,
                             [=] { f(x(q), x(k), x(v), mask, options); });
  };
  const std::string fit = "q (..., L, E), k (..., S, E) and v (..., S, Ev) must fit together, got q ";
  op.errors = {refused(fit + "(3, 2), k (4, 3) and v (4, 2)", {3, 2}, {4, 3}, {4, 2}),
               refused(fit + "(3, 2), k (4, 2) and v (3, 2)", {3, 2}, {4, 2}, {3, 2}),
               refused(fit + "(2), k (4, 2) and v (4, 2)", {2}, {4, 2}, {4, 2}),
               refused(fit + "(2, 3, 2), k (1, 4, 2) and v (2, 4, 2)", {2, 3, 2}, {1, 4, 2}, {2, 4, 2}),
               refused("the last axes of q and v must be divisible by num_heads 2, got q (3, 3) and v (4, 3)",
                       {3, 3}, {4, 3}, {4, 3}, {}, {.num_heads = 2}),
               refused("attn_mask must broadcast to the scores (3, 4), got (2, 3, 4)", {3, 2}, {4, 2}, {4, 2},
                       Mask(Shape{2, 3, 4}, true)),
               refused("shapes must broadcast, got the scores (3, 4) and attn_mask (3)", {3, 2}, {4, 2},
                       {4, 2}, Mask(Shape{3}, true)),
               refused("shapes must broadcast, got the scores (3, 4) and attn_mask (5)", {3, 2}, {4, 2},
                       {4, 2}, x({5}))};
  return op;
}

Op self_attention_op() {
  struct Sample {
    Shape x;
    std::size_t out, v_out;
    bool biases;
    naive::Attention how = {};
    Shape bias = {};  // of the numbers added to the scores, if it has axes
  };
  const Mask some = mask_of({3, 3}, {1, 0, 1, 0, 0, 0, 1, 1, 0});
  const std::vector<Sample> samples = {
      {{3, 2}, 2, 2, false},
      {{3, 2}, 4, 5, true},
      {{2, 3, 2}, 4, 6, true, {.heads = 2}},
      {{2, 3, 4}, 4, 4, false, {.heads = 2, .allowed = mask_of({2, 1, 1, 3}, {1, 1, 0, 0, 0, 0})}},
      {{2, 2, 3, 4}, 4, 4, true, {.heads = 4, .causal = true, .scale = 0.3}},
      {{3, 2}, 2, 3, true, {.allowed = some}},
      {{2, 3, 2}, 4, 4, true, {.heads = 2}, {2, 1, 3}},
      {{0, 3, 2}, 2, 2, true},
      {{2, 0, 2}, 2, 2, true},
      {{17, 6}, 10, 6, true, {.heads = 2}}};
  Op op{"self_attention", {}, {}};
  for (const Sample& sample : samples) {
    const std::size_t in = sample.x.back();
    std::vector<Input> inputs{sample.x, Shape{sample.out, in}, Shape{sample.out, in},
                              Shape{sample.v_out, in}};
    if (sample.biases) {
      for (const std::size_t length : {sample.out, sample.out, sample.v_out}) inputs.push_back(Shape{length});
    }
    const std::size_t projections = inputs.size();
    if (!sample.bias.empty()) inputs.push_back(sample.bias);
    const auto call = [how = sample.how, biases = sample.biases, projections](const auto& x) {
      using V = typename std::decay_t<decltype(x)>::value_type;
      xgrad::AttentionMask<typename V::value_type> mask;
      if (how.allowed) mask = *how.allowed;
      if (x.size() > projections) mask = x.back();
      const auto bias = [&](std::size_t part) { return biases ? x[4 + part] : V(); };
      return xgrad::self_attention(
          x[0], {x[1], bias(0)}, {x[2], bias(1)}, {x[3], bias(2)}, mask,
          xgrad::AttentionOptions{.is_causal = how.causal, .scale = how.scale, .num_heads = how.heads});
    };
    const Reference reference = [how = sample.how, biases = sample.biases, projections](const auto& x) {
      std::decay_t<decltype(x)> attended;
      for (std::size_t part = 0; part < 3; ++part) {
        std::decay_t<decltype(x)> operands{x[0], x[1 + part]};
        if (biases) operands.push_back(x[4 + part]);
        attended.push_back(naive::linear()(operands));
      }
      if (x.size() > projections) attended.push_back(x.back());
      return naive::attention(how)(attended);
    };
    op.cases.push_back(make_case(inputs, call, reference));
  }
  op.errors = {error<ShapeError>(
                   "self_attention: x must be (..., L, in) and the weight of k (out, in), got x (3, 2) and "
                   "weight (2, 3)",
                   [] {
                     xgrad::self_attention(x({3, 2}), {x({2, 2}), {}}, {x({2, 3}), {}}, {x({2, 2}), {}});
                   }),
               error<ShapeError>(
                   "self_attention: the bias of v must be (2), got (3)",
                   [] {
                     xgrad::self_attention(x({3, 2}), {x({2, 2}), {}}, {x({2, 2}), {}}, {x({2, 2}), x({3})});
                   }),
               error<ShapeError>("self_attention: the last axes of q and v must be divisible by num_heads "
                                 "2, got q (3, 3) and v (3, 2)",
                                 [] {
                                   xgrad::self_attention(x({3, 2}), {x({3, 2}), {}}, {x({3, 2}), {}},
                                                         {x({2, 2}), {}}, {}, {.num_heads = 2});
                                 })};
  return op;
}

std::vector<Op> make_table() {
  const auto attend = [](const auto& q, const auto& k, const auto& v, const auto& mask, auto options) {
    return xgrad::scaled_dot_product_attention(q, k, v, mask, options);
  };
  const auto attend_composed = [](const auto& q, const auto& k, const auto& v, const auto& mask,
                                  auto options) {
    return xgrad::attention_with_weights(q, k, v, mask, options).output;
  };
  const auto weigh = [](const auto& q, const auto& k, const auto& v, const auto& mask, auto options) {
    return xgrad::attention_with_weights(q, k, v, mask, options).weights;
  };
  return {elementwise_op(
              "exp", [](const auto& x) { return xgrad::exp(x[0]); }, [](double x) { return std::exp(x); }),
          elementwise_op(
              "log", [](const auto& x) { return xgrad::log(x[0]); }, [](double x) { return std::log(x); },
              positive),
          elementwise_op(
              "sqrt", [](const auto& x) { return xgrad::sqrt(x[0]); }, [](double x) { return std::sqrt(x); },
              positive),
          elementwise_op(
              "tanh", [](const auto& x) { return xgrad::tanh(x[0]); }, [](double x) { return std::tanh(x); }),
          elementwise_op(
              "erf", [](const auto& x) { return xgrad::erf(x[0]); }, [](double x) { return std::erf(x); }),
          elementwise_op(
              "relu", [](const auto& x) { return xgrad::relu(x[0]); }, [](double x) { return x > 0 ? x : 0; },
              {-2, 2, 0.01}),
          gelu_op(),
          elementwise_op(
              "rsqrt", [](const auto& x) { return xgrad::rsqrt(x[0]); },
              [](double x) { return 1 / std::sqrt(x); }, positive),
          elementwise_op(
              "reciprocal", [](const auto& x) { return xgrad::reciprocal(x[0]); },
              [](double x) { return 1 / x; }, away_from_zero),
          elementwise_op(
              "square", [](const auto& x) { return xgrad::square(x[0]); }, [](double x) { return x * x; }),
          elementwise_op(
              "abs", [](const auto& x) { return xgrad::abs(x[0]); }, [](double x) { return std::abs(x); },
              {-2, 2, 0.01}),
          elementwise_op(
              "sigmoid", [](const auto& x) { return xgrad::sigmoid(x[0]); },
              [](double x) { return 1 / (1 + std::exp(-x)); }, {-8, 8, 0}),
          elementwise_op(
              "silu", [](const auto& x) { return xgrad::silu(x[0]); },
              [](double x) { return x / (1 + std::exp(-x)); }, {-8, 8, 0}),
          softplus_op(),
          clamp_op(),
          pow_op(),
          scaled_add_op(),
          arithmetic_op(
              "maximum", [](const auto& x) { return xgrad::maximum(x[0], x[1]); },
              [](double a, double b) { return std::max(a, b); }),
          arithmetic_op(
              "minimum", [](const auto& x) { return xgrad::minimum(x[0], x[1]); },
              [](double a, double b) { return std::min(a, b); }),
          where_op(),
          bmm_op(),
          gemm_op(),
          einsum_op(),
          mse_loss_op(),
          nll_loss_op(),
          amax_op(),
          amin_op(),
          logsumexp_op(),
          var_op(),
          flatten_op(),
          unsqueeze_op(),
          squeeze_op(),
          expand_op(),
          stack_op(),
          split_op(),
          narrow_op(),
          index_select_op(),
          gather_op(),
          triangle_op(
              "tril", [](const auto& x, std::ptrdiff_t diagonal) { return xgrad::tril(x, diagonal); }, true),
          triangle_op(
              "triu", [](const auto& x, std::ptrdiff_t diagonal) { return xgrad::triu(x, diagonal); }, false),
          add_op(),
          sub_op(),
          mul_op(),
          div_op(),
          neg_op(),
          broadcast_to_op(),
          sum_to_op(),
          matmul_op(),
          linear_op(),
          linear_relu_op(),
          softmax_op(),
          log_softmax_op(),
          layer_norm_op(),
          add_layer_norm_op(),
          embedding_op(),
          masked_fill_op(),
          sum_op(),
          mean_op(),
          reshape_op(),
          permute_op(),
          transpose_op(),
          concat_op(),
          select_op(),
          slice_op(),
          dropout_op(),
          cross_entropy_op(),
          attention_op("attention.scaled_dot_product_attention", attend, naive::attention),
          self_attention_op(),
          attention_op("attention_with_weights", attend_composed, naive::attention),
          attention_op("attention_with_weights.weights", weigh, naive::attention_weights)};
}

}  // namespace

const std::vector<Op>& op_table() {
  static const std::vector<Op> table = make_table();
  return table;
}

}  // namespace xgrad_tests
