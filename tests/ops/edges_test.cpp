// Gradients at the edges of a function: overflow, infinities, zeros, nan, empty and masked inputs.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/autograd/checkpoint.hpp>
#include <xgrad/autograd/on_gradient.hpp>
#include <xgrad/ops.hpp>

#include "expect_error.hpp"

namespace edges_test {

using xgrad::Array, xgrad::GraphError, xgrad::Ids, xgrad::Mask, xgrad::Padding, xgrad::Shape, xgrad::Variable;
using xgrad_tests::message_of;
using V = Variable<float>;
using D = Variable<double>;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// The gradients of a and b, of the sum of f(a, b) at one place.
template <class T, class F>
std::vector<T> gradients(F f, T a, T b) {
  const Variable<T> x(a, true), y(b, true);
  std::vector<T> found;
  for (const Variable<T>& one : grad(f(x, y), {x, y})) found.push_back(one.item());
  return found;
}

/// d2 f / da2, d2 f / da db and d2 f / db2.
template <class F>
std::vector<double> second_derivatives(F f, double a, double b) {
  const D x(a, true), y(b, true);
  const auto first = grad(f(x, y), {x, y}, {.create_graph = true});
  const auto derivative = [](const D& of, const D& by) {
    if (!of.requires_grad()) return 0.0;
    const D found = grad(of, {by}, {.retain_graph = true, .allow_unused = true})[0];
    return found.defined() ? found.item() : 0.0;
  };
  return {derivative(first[0], x), derivative(first[0], y), derivative(first[1], y)};
}

TEST(EdgesTest, LogsumexpHasSharesThatAddUpToOneFarFromZero) {
  for (const float size : {1e4f, -1e4f, 3e38f}) {
    const V x(Array<float>{size, size}, true);
    EXPECT_EQ(grad(logsumexp(x, 0), {x})[0].value(), (Array<float>{0.5, 0.5})) << size;
  }
}

TEST(EdgesTest, Atan2NeitherOverflowsNorVanishes) {
  const auto f = [](const auto& a, const auto& b) { return atan2(a, b); };
  for (const float size : {1e-30f, 1.0f, 1e30f}) {
    const std::vector<float> found = gradients<float>(f, 3 * size, 4 * size);
    EXPECT_NEAR(found[0] * size, 4.0f / 25, 1e-6f) << size;
    EXPECT_NEAR(found[1] * size, -3.0f / 25, 1e-6f) << size;
  }
  EXPECT_EQ(gradients<double>(f, 0, 0), (std::vector<double>{0, 0})) << "as PyTorch since 2.13";
  EXPECT_EQ(second_derivatives(f, 0, 0), (std::vector<double>{0, 0, 0}));
  EXPECT_LT(std::abs(gradients<double>(f, 2, inf)[0]), 1e-300);
  EXPECT_EQ(gradients<double>(f, inf, 2)[0], 0);
}

TEST(EdgesTest, SecondDerivativesOfPowAreThoseOfTheFormula) {
  const auto f = [](const D& a, const D& b) { return pow(a, b); };
  EXPECT_EQ(second_derivatives(f, 2, 0)[1], 0.5) << "d/db of b a^(b - 1) at b = 0";
  for (const double b : {2.0, 3.5}) {
    const std::vector<double> at_zero = second_derivatives(f, 0, b);
    EXPECT_EQ(at_zero[0], b == 2 ? 2 : 0) << b;
    EXPECT_EQ(at_zero[1], 0) << b;
    EXPECT_EQ(at_zero[2], 0) << b;
  }
  EXPECT_EQ(gradients<double>(f, 0, 0), (std::vector<double>{0, 0}));
  EXPECT_EQ(gradients<double>(f, nan, 0)[0], 0) << "a^0 is 1";
  const auto g = [](const V& a, const V& b) { return pow(a, b); };
  EXPECT_EQ(gradients<float>(g, 1e-40f, 0)[0], 0) << "1 / a overflows";
}

TEST(EdgesTest, RemaindersCountWholeQuotients) {
  const auto f = [](const auto& a, const auto& b) { return fmod(a, b); };
  const auto g = [](const auto& a, const auto& b) { return remainder(a, b); };
  EXPECT_EQ(gradients<double>(f, 7, inf), (std::vector<double>{1, 0}));
  EXPECT_EQ(gradients<double>(g, 7, inf), (std::vector<double>{1, 0}));
  const float below = std::nextafter(3.0f, 0.0f);  // below / 0.1f rounds up to 30
  const float step = 0.1f, whole = std::nearbyint((below - std::fmod(below, step)) / step);
  EXPECT_EQ(gradients<float>(f, below, step)[1], -whole);
  EXPECT_EQ(gradients<float>(g, below, step)[1], -whole);
  EXPECT_EQ(gradients<float>(g, -below, step)[1], whole + 1);
  EXPECT_EQ(second_derivatives(f, 7, inf), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(second_derivatives(f, inf, 2), (std::vector<double>{0, 0, 0}));
}

TEST(EdgesTest, ExpOfNegativesIsTheDerivativeOfExpm1) {
  const V x(-20.0f, true);
  EXPECT_EQ(grad(expm1(x), {x})[0].item(), exp(x).item());
}

TEST(EdgesTest, GeluHasTheSlopesOfItsAsymptotesAtInfinity) {
  for (const xgrad::Gelu form : {xgrad::Gelu::none, xgrad::Gelu::tanh}) {
    for (const bool recorded : {false, true}) {
      const D x(Array<double>{inf, -inf, 1e200, -1e200}, true);
      EXPECT_EQ(grad(sum(gelu(x, form)), {x}, {.create_graph = recorded})[0].value(),
                (Array<double>{1, 0, 1, 0}))
          << recorded;
    }
  }
}

TEST(EdgesTest, GeluInDoubleHasAnExactTail) {
  for (double x = -5; x > -37; x -= 1.5) {
    const double expected = 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    EXPECT_NEAR(gelu(D(x)).item(), expected, 1e-13 * x * x * std::abs(expected)) << x;
  }
}

TEST(EdgesTest, EluPassesNanOn) {
  const D x(nan, true);
  EXPECT_TRUE(std::isnan(grad(elu(x), {x})[0].item()));
  EXPECT_TRUE(std::isnan(grad(elu(x), {x}, {.create_graph = true})[0].item()));
}

TEST(EdgesTest, SecondDerivativesOfNanAreNan) {
  const auto f = [](const auto& a, const auto& b) { return atan2(a, b); };
  for (const double d : second_derivatives(f, nan, nan)) EXPECT_TRUE(std::isnan(d));
  for (const auto& g : {+[](const D& x) { return elu(x); }, +[](const D& x) { return log_sigmoid(x); },
                        +[](const D& x) { return softplus(x); }, +[](const D& x) { return gelu(x); },
                        +[](const D& x) { return silu(x); }, +[](const D& x) { return lgamma(x); }}) {
    const D x(nan, true);
    const D slope = grad(g(x), {x}, {.create_graph = true})[0];
    EXPECT_TRUE(std::isnan(grad(slope, {x})[0].item()));
  }
}

TEST(EdgesTest, NormOfANegativePowerHasNoNanAtInfinity) {
  const D x(Array<double>{1, inf}, true);
  EXPECT_EQ(grad(norm(x, -1), {x})[0].value(), (Array<double>{1, 0}));
}

TEST(EdgesTest, ScatterAddOfNothingHasZeroGradients) {
  const V x(Array<float>{1, 2}, true), src(Array<float>{5, 6}, true);
  const V y = scatter_add(x, 0, Ids::from_shape({0}), src);
  EXPECT_EQ(y.value(), x.value());
  const auto found = grad(sum(y), {x, src});
  EXPECT_EQ(found[0].value(), (Array<float>{1, 1}));
  EXPECT_EQ(found[1].value(), (Array<float>{0, 0}));
}

TEST(EdgesTest, QrHasPreciseSecondDerivativesInFloat) {
  // far from orthogonal columns: what cancels is amplified
  const Array<float> a{{-0.5122127f, -0.79437786f, -0.10413653f}, {-0.48921323f, -0.6516217f, -0.5179744f}};
  const auto second = []<class T>(const Array<T>& at) {
    const Variable<T> x(at, true);
    const auto [q, r] = qr(x);
    const Variable<T> dx = grad(sum(sin(q)) + sum(cos(r)), {x}, {.create_graph = true})[0];
    return grad(sum(square(dx)), {x})[0].value();
  };
  for (const bool wide : {true, false}) {
    const Array<float> at = wide ? a : Array<float>(xt::transpose(a));
    const Array<float> found = second(at);
    const Array<double> expected = second(Array<double>(at));
    const double largest = *std::max_element(expected.begin(), expected.end());
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found.data()[i], expected.data()[i], 2e-4 * largest) << wide << " " << i;
  }
}

TEST(EdgesTest, LeastSquaresOfNanAreNan) {
  for (std::size_t at = 0; at < 9; ++at) {
    Array<float> a{{2, 1, 0}, {1, 3, 1}, {0, 1, 4}};
    a.data()[at] = std::numeric_limits<float>::quiet_NaN();
    for (const float x : lstsq(V(a), reshape(V({1, 2, 3}), {3, 1})).value()) EXPECT_TRUE(std::isnan(x)) << at;
  }
}

TEST(EdgesTest, TheCorrectionOfAVarianceMayBeAnyNumber) {
  const D x(Array<double>{1, 2, 6});
  EXPECT_EQ(var(x, 0, {.correction = 0.5}).item(), 14 / 2.5);
  EXPECT_EQ(var(x, 0, {.correction = -1}).item(), 14 / 4.0);
}

TEST(EdgesTest, GemmDoesNotReadCIfBetaIsZero) {
  const D a(Array<double>(Shape{1, 2}, 1.0)), b(Array<double>(Shape{2, 1}, 5.5)),
      c(Array<double>(Shape{1, 1}, nan), true);
  const D y = gemm(a, b, c, {.beta = 0});
  EXPECT_EQ(y.item(), 11);
  EXPECT_EQ(grad(y, {c})[0].item(), 0);
  EXPECT_EQ(gemm(a, b, c.detach(), {.beta = 0}).item(), 11);
}

TEST(EdgesTest, CircularPaddingRepeatsWhatNegativeSidesLeave) {
  const V x(Array<float>{0, 1, 2, 3});
  EXPECT_EQ(pad(x, {-1, 1}, Padding::circular).value(), (Array<float>{1, 2, 3, 1}));
  EXPECT_EQ(pad(x, {1, -1}, Padding::circular).value(), (Array<float>{2, 0, 1, 2}));
  EXPECT_EQ(message_of<xgrad::ValueError>([&] {
              pad(x, {-3, 2}, Padding::circular);
            }),
            "pad: axis 0 is too short for mode circular, got x (4) and pad (-3, 2)");
}

TEST(EdgesTest, AHookMustNotChangeTheGradientOfOtherBranches) {
  const V x(Array<float>{1, 2}, true);
  const V hooked = on_gradient(x, [](const V& dy) { dy.assign(dy.value() * 0); });
  EXPECT_EQ(message_of<GraphError>([&] { sum(hooked + x).backward(); }),
            "on_gradient: the hook must not change its argument, but return a gradient");
}

TEST(EdgesTest, ACheckpointNoticesAChangedParameter) {
  const V w(2.0f, true), x(3.0f, true);
  const V y = xgrad::checkpoint([w](const V& at) { return at * w; }, x);
  w.assign(Array<float>(5.0f));
  EXPECT_EQ(message_of<GraphError>([&] { y.backward(); }),
            "checkpoint: f must return the same values each time; what it reads, such as a parameter, may "
            "have changed");
}

TEST(EdgesTest, LossesDoNotBroadcastColumnsAgainstRows) {
  const V column(xt::ones<float>({3, 1})), row(xt::ones<float>({3}));
  const std::string rest =
      ": one of input and target must broadcast to the other, got input (3, 1) and target (3)";
  const auto error = [](auto f) { return message_of<xgrad::ShapeError>(f); };
  EXPECT_EQ(error([&] { mse_loss(column, row); }), "mse_loss" + rest);
  EXPECT_EQ(error([&] { l1_loss(column, row); }), "l1_loss" + rest);
  EXPECT_EQ(error([&] { huber_loss(column, row); }), "huber_loss" + rest);
  EXPECT_EQ(error([&] { smooth_l1_loss(column, row); }), "smooth_l1_loss" + rest);
  EXPECT_EQ(error([&] { kl_div(column, row); }), "kl_div" + rest);
  EXPECT_EQ(mse_loss(column, V(0.0f)).item(), 1);
}

TEST(EdgesTest, ProbabilitiesHaveNoIgnoredClass) {
  const V logits(Array<float>{{1, 2}});
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { cross_entropy(logits, logits, {.ignore_index = 0}); }),
            "cross_entropy: probabilities have no ignore_index, got 0");
}

TEST(EdgesTest, AScalarIsNotRolledAlongAnAxis) {
  EXPECT_EQ(message_of<xgrad::IndexError>([] { roll(V(1.0f), 1, 0); }),
            "roll: a scalar has no axes, got dims (0)");
}

}  // namespace edges_test
