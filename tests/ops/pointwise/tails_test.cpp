// Elementwise functions far from 0: in float, values and derivatives are those of double to some digits, so
// that nothing cancels and no intermediate overflows or vanishes before the result does.
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/ops.hpp>

namespace tails_test {

using xgrad::Array, xgrad::Shape, xgrad::Variable;

template <class T>
using Function = Variable<T> (*)(const Variable<T>&);

template <class T>
std::vector<std::pair<std::string, Function<T>>> functions() {
  using V = const Variable<T>&;
  return {{"exp", [](V x) { return exp(x); }},
          {"exp2", [](V x) { return exp2(x); }},
          {"expm1", [](V x) { return expm1(x); }},
          {"log", [](V x) { return log(x); }},
          {"log1p", [](V x) { return log1p(x); }},
          {"log2", [](V x) { return log2(x); }},
          {"log10", [](V x) { return log10(x); }},
          {"sqrt", [](V x) { return sqrt(x); }},
          {"square", [](V x) { return square(x); }},
          {"abs", [](V x) { return abs(x); }},
          {"tanh", [](V x) { return tanh(x); }},
          {"sigmoid", [](V x) { return sigmoid(x); }},
          {"erf", [](V x) { return erf(x); }},
          {"erfc", [](V x) { return erfc(x); }},
          {"relu", [](V x) { return relu(x); }},
          {"leaky_relu", [](V x) { return leaky_relu(x, 0.25f); }},
          {"elu", [](V x) { return elu(x); }},
          {"log_sigmoid", [](V x) { return log_sigmoid(x); }},
          {"silu", [](V x) { return silu(x); }},
          {"gelu", [](V x) { return gelu(x); }},
          {"gelu tanh", [](V x) { return gelu(x, xgrad::Gelu::tanh); }},
          {"softplus", [](V x) { return softplus(x); }},
          {"atan", [](V x) { return atan(x); }},
          {"sinh", [](V x) { return sinh(x); }},
          {"cosh", [](V x) { return cosh(x); }},
          {"asin", [](V x) { return asin(x); }},
          {"acos", [](V x) { return acos(x); }},
          {"erfinv", [](V x) { return erfinv(x); }},
          {"sin", [](V x) { return sin(x); }},
          {"cos", [](V x) { return cos(x); }},
          {"tan", [](V x) { return tan(x); }},
          {"reciprocal", [](V x) { return reciprocal(x); }},
          {"rsqrt", [](V x) { return rsqrt(x); }},
          {"cube", [](V x) { return pow(x, 3); }},
          {"asinh", [](V x) { return asinh(x); }},
          {"acosh", [](V x) { return acosh(x); }},
          {"atanh", [](V x) { return atanh(x); }},
          {"mish", [](V x) { return mish(x); }},
          {"hardswish", [](V x) { return hardswish(x); }},
          {"hardsigmoid", [](V x) { return hardsigmoid(x); }},
          {"hardtanh", [](V x) { return hardtanh(x); }},
          {"selu", [](V x) { return selu(x); }},
          {"celu", [](V x) { return celu(x, 0.75f); }},
          {"softsign", [](V x) { return softsign(x); }},
          {"clamp", [](V x) { return clamp(x, -1, 2); }},
          {"floor", [](V x) { return floor(x); }},
          {"ceil", [](V x) { return ceil(x); }},
          {"round", [](V x) { return round(x); }},
          {"trunc", [](V x) { return trunc(x); }},
          {"sign", [](V x) { return sign(x); }},
          {"polygamma", [](V x) { return polygamma(1, x); }},
          {"lgamma", [](V x) { return lgamma(x); }},
          {"digamma", [](V x) { return digamma(x); }}};
}

/// The value at x, and the first two derivatives.
template <class T>
std::vector<T> taylor(Function<T> f, float at) {
  const Variable<T> x(static_cast<T>(at), true);
  const Variable<T> y = f(x);
  const Variable<T> slope = grad(y, {x}, {.create_graph = true})[0];
  const Variable<T> bend =
      slope.requires_grad() ? grad(slope, {x}, {.allow_unused = true})[0] : Variable<T>();
  return {y.item(), slope.item(), bend.defined() ? bend.item() : T{0}, grad(f(x), {x})[0].item()};
}

bool agree(float found, double expected, double tolerance) {
  using Limits = std::numeric_limits<float>;
  if (std::isnan(expected)) return std::isnan(found);
  if (std::abs(expected) > Limits::max())
    return std::isinf(found) && std::signbit(found) == std::signbit(expected);
  if (std::abs(expected) < Limits::min()) return std::abs(found) <= Limits::min();
  return std::abs(found - expected) <= tolerance * std::abs(expected);
}

TEST(TailsTest, FloatAgreesWithDouble) {
  const std::vector<float> sizes = {0,   1e-20f, 1e-8f, 1e-3f, 0.3f, 0.99f, 1,    1.5f,  3,       5.5f, 8,
                                    9.5, 13,     17,    30,    60,   80,    1e4f, 1e10f, 1.8e19f, 1e30f};
  const auto in_float = functions<float>();
  const auto in_double = functions<double>();
  const char* const what[] = {"value", "derivative", "second derivative", "derivative, not recorded"};
  for (std::size_t k = 0; k < in_float.size(); ++k) {
    for (const float size : sizes) {
      for (const float x : {size, -size}) {
        const auto found = taylor<float>(in_float[k].second, x);
        const auto expected = taylor<double>(in_double[k].second, x);
        // e^x and e^(x^2) turn the rounding of their exponent into a part of the result
        const double tolerance = 2e-6 * (1 + std::min(100.0f, x * x));
        for (std::size_t i = 0; i < found.size(); ++i)
          EXPECT_TRUE(agree(found[i], expected[i], tolerance))
              << in_float[k].first << ", " << what[i] << " at " << x << ": " << found[i] << ", in double "
              << expected[i];
      }
    }
  }
}

}  // namespace tails_test
