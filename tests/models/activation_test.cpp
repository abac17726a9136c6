#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include <xgrad/models/layers/activation.hpp>

namespace {

using xgrad::Activation, xgrad::Variable;

TEST(ActivationTest, EachIsItsFormula) {
  for (const double x : {-3.0, -0.7, 0.0, 0.2, 2.5}) {
    const auto at = [x](Activation f) { return xgrad::activate(f, Variable<double>(x)).item(); };
    const double u = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
    EXPECT_NEAR(at(Activation::gelu), x / 2 * (1 + std::erf(x / std::sqrt(2))), 1e-15);
    EXPECT_NEAR(at(Activation::gelu_tanh), x / 2 * (1 + std::tanh(u)), 1e-15);
    EXPECT_NEAR(at(Activation::gelu_fast),
                0.5 * x * (1 + std::tanh(x * 0.7978845608 * (1 + 0.044715 * x * x))), 1e-15);
    EXPECT_EQ(at(Activation::relu), std::max(x, 0.0));
    EXPECT_NEAR(at(Activation::silu), x / (1 + std::exp(-x)), 1e-15);
    EXPECT_NEAR(at(Activation::tanh), std::tanh(x), 1e-15);
    for (const Activation f : {Activation::relu, Activation::gelu, Activation::gelu_tanh,
                               Activation::gelu_fast, Activation::silu, Activation::tanh})
      EXPECT_NEAR(xgrad::activate_gated(f, Variable<double>(x), Variable<double>(1.5)).item(), at(f) * 1.5,
                  1e-15);
  }
}

}  // namespace
