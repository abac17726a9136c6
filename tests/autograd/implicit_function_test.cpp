// Derivatives of what a solver found, from the equation that it solved.

#include <xgrad/autograd/implicit_function.hpp>

#include <cmath>

#include <gtest/gtest.h>

#include <xgrad/autograd/functional.hpp>
#include <xgrad/autograd/gradcheck.hpp>
#include <xgrad/ops/index/indexing.hpp>
#include <xgrad/ops/linalg/solve.hpp>
#include <xgrad/ops/pointwise/elementwise.hpp>
#include <xgrad/ops/product/matmul.hpp>
#include <xgrad/ops/reduce/reductions.hpp>
#include <xgrad/ops/shape/shapes.hpp>

#include "expect_error.hpp"

namespace implicit_function_test {

using xgrad::Array, xgrad::grad, xgrad::gradcheck, xgrad::gradgradcheck, xgrad::GraphError,
    xgrad::implicit_function, xgrad::Shape, xgrad::ShapeError, xgrad::ValueError;
using xgrad_tests::message_of;
using V = xgrad::Variable<double>;
using List = std::vector<V>;

V leaf(const Shape& shape, double start) {
  Array<double> x = Array<double>::from_shape(shape);
  for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = start + 0.31 * static_cast<double>(i % 4);
  return V(x, true);
}

/// Newton's method on Variables, which records nothing here.
template <class Residual>
V newton(const Residual& residual, V y) {
  EXPECT_FALSE(xgrad::grad_enabled());
  for (int i = 0; i < 30; ++i) {
    const auto n = static_cast<std::ptrdiff_t>(y.size());
    const V f = residual(y), j = reshape(xgrad::jacobian(residual, y), {n, n});
    y = y - reshape(solve(j, reshape(f, {n})), Shape(y.shape()));
  }
  return y;
}

/// The anomaly E of an orbit-like equation, E - e tanh(E) = M for M and e of one shape, elementwise.
V anomaly_residual(const V& y, const List& theta) { return y - theta[1] * tanh(y) - theta[0]; }

Array<double> anomaly(const std::vector<Array<double>>& theta) {
  Array<double> y = theta[0];
  for (int i = 0; i < 40; ++i) {
    const Array<double> t = xt::tanh(y);
    y -= (y - theta[1] * t - theta[0]) / (1 - theta[1] * (1 - t * t));
  }
  return y;
}

TEST(ImplicitFunctionTest, HasTheDerivativesOfTheFormula) {
  for (const bool batched : {false, true}) {
    const V m = leaf({3}, 0.4), e = leaf({3}, -0.3);
    const V y = implicit_function(List{m, e}, anomaly, anomaly_residual, {.batched = batched});
    EXPECT_STREQ(y.op(), "implicit_function");
    const List first = grad(sum(y), {m, e}, {.create_graph = true});
    const List second = grad(sum(first[0]), {m, e}, {.create_graph = true});
    const V third = grad(sum(second[0]), {m})[0];
    for (std::size_t i = 0; i < 3; ++i) {
      const double E = y.value()(i), ee = e.value()(i), t = std::tanh(E), s = 1 - t * t, d = 1 - ee * s;
      EXPECT_NEAR(E - ee * t, m.value()(i), 1e-15);
      EXPECT_NEAR(first[0].value()(i), 1 / d, 1e-14);
      EXPECT_NEAR(first[1].value()(i), t / d, 1e-14);
      EXPECT_NEAR(second[0].value()(i), -2 * ee * s * t / (d * d * d), 1e-13);
      EXPECT_NEAR(second[1].value()(i), s / (d * d) - 2 * ee * s * t * t / (d * d * d), 1e-13);
      const double of_d = 2 * ee * s * t;  // dd/dE
      const double of_second =
          -2 * ee * (-2 * s * t * t + s * s) / (d * d * d) + 6 * ee * s * t * of_d / std::pow(d, 4);
      EXPECT_NEAR(third.value()(i), of_second / d, 1e-12);
    }
  }
}

/// y (2, 3) with y + tanh(a y + b) = c, where a couples the rows, and w is read without being passed.
struct Coupled {
  V a = leaf({2, 2}, -0.4), b = leaf({2, 3}, 0.2), w = leaf({3}, 0.7);

  V operator()(const List& theta) const {
    const V weight = exp(w);
    const auto residual = [weight](const V& y, const List& at) {
      return y * weight + 0.3 * tanh(matmul(at[0], y) + at[1]) - at[1];
    };
    const auto solver = [&](const List& at) {
      return newton([&](const V& y) { return residual(y, at); }, at[1]);
    };
    return implicit_function(theta, solver, residual);
  }
};

TEST(ImplicitFunctionTest, DerivativesAreThoseOfFiniteDifferences) {
  const Coupled coupled;
  const auto f = [&](const List& all) { return square(coupled({all[0], all[1] * 1.0})); };
  const List inputs{coupled.a, coupled.b, coupled.w};
  EXPECT_TRUE(gradcheck(f, inputs)) << gradcheck(f, inputs).worst;
  EXPECT_TRUE(gradgradcheck(f, inputs)) << gradgradcheck(f, inputs).worst;
}

TEST(ImplicitFunctionTest, SamplesAreSolvedByThemselves) {
  const V theta = leaf({4, 2}, -0.5), a = leaf({2, 2}, -0.2);
  const auto y_of = [&](const List& at, bool batched) {
    const auto residual = [](const V& y, const List& p) { return y + 0.5 * tanh(matmul(y, p[1])) - p[0]; };
    const auto solver = [&](const List& p) {
      return newton([&](const V& y) { return residual(y, p); }, p[0]);
    };
    return implicit_function(at, solver, residual, {.batched = batched});
  };
  const auto batched = [&](const List& at) { return y_of(at, true) * y_of(at, true); };
  const V seed = leaf({4, 2}, 0.1).detach();
  const List expected = grad(y_of({theta, a}, false), {theta, a}, {.seed = seed});
  const List found = grad(y_of({theta, a}, true), {theta, a}, {.seed = seed});
  for (std::size_t k = 0; k < 2; ++k) {
    for (std::size_t i = 0; i < found[k].size(); ++i)
      EXPECT_NEAR(found[k].value().data()[i], expected[k].value().data()[i], 1e-14);
  }
  EXPECT_TRUE(gradcheck(batched, {theta, a})) << gradcheck(batched, {theta, a}).worst;
  EXPECT_TRUE(gradgradcheck(batched, {theta, a})) << gradgradcheck(batched, {theta, a}).worst;
}

TEST(ImplicitFunctionTest, TakesOneVariableAndFloats) {
  const auto cube_root = [](const xgrad::Variable<float>& theta) {
    return Array<float>(xt::cbrt(theta.value()));
  };
  const auto residual = [](const auto& y, const auto& theta) { return y * y * y - theta; };
  const xgrad::Variable<float> single(Array<float>{8, 27}, true);
  sum(implicit_function(single, cube_root, residual)).backward();
  EXPECT_NEAR(single.grad().value()(0), 1.0 / 12, 1e-6);
  EXPECT_NEAR(single.grad().value()(1), 1.0 / 27, 1e-6);
  const V theta(8.0, true);
  const auto of_array = [](const Array<double>& at) { return Array<double>(xt::cbrt(at)); };
  const V y = implicit_function(theta, of_array, residual);
  EXPECT_EQ(y.shape(), Shape{});
  EXPECT_NEAR(grad(y, {theta})[0].item(), 1.0 / 12, 1e-15);
}

TEST(ImplicitFunctionTest, KeepsNoGraphWhereNothingNeedsIt) {
  int calls = 0;
  const auto itself = [](const V& theta) { return theta; };
  const auto residual = [&calls](const V& y, const V& theta) {
    ++calls;
    return y - theta;
  };
  EXPECT_FALSE(implicit_function(V({1.0, 2.0}), itself, residual).requires_grad());
  const V theta = leaf({2}, 0.5);
  {
    const xgrad::NoGrad guard;
    calls = 0;
    EXPECT_FALSE(implicit_function(theta, itself, residual).requires_grad());
    EXPECT_EQ(calls, 0);
  }
  const V nothing(Array<double>::from_shape({0}), true);
  sum(implicit_function(nothing, itself, residual)).backward();
  const V y = implicit_function(
      List{theta, leaf({2}, 0.1).detach()}, [](const List& at) { return at[0]; },
      [](const V& at, const List& p) { return at + p[1] - p[0] - p[1]; });
  sum(y * y).backward();
  EXPECT_EQ(theta.grad().value(), 2.0 * theta.value());
}

TEST(ImplicitFunctionTest, RefusesWhatCannotBe) {
  const V theta = leaf({3}, 0.5);
  const auto itself = [](const V& at) { return at; };
  EXPECT_EQ(message_of<ShapeError>([&] {
              implicit_function(theta, itself, [](const V& y, const V& at) { return sum(y - at); });
            }),
            "implicit_function: residual must return the shape of y (3), got ()");
  EXPECT_EQ(message_of<ValueError>([&] {
              implicit_function(theta, itself, [](const V& y, const V& at) {
                return sum(y, {0}, {.keepdim = true}) - at;
              }).backward(theta);
            }),
            "implicit_function: the derivative of residual with respect to y must be invertible, pivot 2 of "
            "3 is 0");
  const auto zero = [](const V& at) { return at * 0.0; };
  EXPECT_EQ(
      message_of<ValueError>([&] {
        implicit_function(theta, zero, [](const V& y, const V& at) { return y * (at - at.value()(0)); },
                          {.batched = true})
            .backward(theta);
      }),
      "implicit_function: the derivative of residual with respect to y must be invertible, pivot 1 of 1 is 0 "
      "for sample 0");
  EXPECT_EQ(message_of<ShapeError>([&] {
              implicit_function(V(1.0, true), itself, [](const V& y, const V& at) { return y - at; },
                                {.batched = true});
            }),
            "implicit_function: with batched, y must have an axis of samples, got shape ()");
  EXPECT_EQ(
      message_of<GraphError>([&] { implicit_function(V(), itself, [](const V& y, const V&) { return y; }); }),
      "implicit_function: theta[0] is undefined");
  EXPECT_EQ(message_of<GraphError>([&] {
              implicit_function(
                  theta, [](const V&) { return V(); }, [](const V& y, const V&) { return y; });
            }),
            "implicit_function: solver must return a variable, got an undefined one");
  EXPECT_EQ(message_of<GraphError>(
                [&] { implicit_function(theta, itself, [](const V&, const V&) { return V(); }); }),
            "implicit_function: residual must return a variable, got an undefined one");
}

TEST(ImplicitFunctionTest, RefusesWhatIsNoRoot) {
  const auto residual = [](const V& y, const V& theta) { return y * y - theta; };
  const auto solved = [&](int steps, xgrad::ImplicitOptions options) {
    const V theta(Array<double>{9, 4}, true);
    const auto heron = [steps](const Array<double>& at) {
      Array<double> y = at;
      for (int i = 0; i < steps; ++i) y = 0.5 * (y + at / y);
      return y;
    };
    return grad(sum(implicit_function(theta, heron, residual, options)), {theta})[0].value();
  };
  for (const bool batched : {false, true}) {
    const std::string message = message_of<ValueError>([&] { solved(1, {.batched = batched}); });
    EXPECT_TRUE(
        message.starts_with("implicit_function: the solver must return a root of residual, got a y 1.6 "
                            "from one by Newton's method"))
        << message;
    EXPECT_NEAR(solved(8, {.batched = batched})(0), 1.0 / 6, 1e-12);
    EXPECT_NEAR(solved(1, {.batched = batched, .tolerance = 1})(0), 0.1, 1e-12)
        << "an inexact one, as allowed";
  }
}

}  // namespace implicit_function_test
