#include <xgrad/pretrained/detail/conv1d.hpp>

#include <array>

#include <gtest/gtest.h>

#include <xgrad/autograd/gradcheck.hpp>
#include <xgrad/base/random.hpp>

#include "../expect_error.hpp"

namespace conv1d_test {

using xgrad::Array, xgrad::Variable, xgrad::pretrained::detail::conv1d;
using xgrad_tests::message_of;

TEST(Conv1dTest, IsTheSumOfItsDefinition) {
  xgrad::manual_seed(1);
  for (const auto& [groups, width, length] :
       {std::array<std::size_t, 3>{1, 3, 5}, {2, 5, 4}, {4, 1, 3}, {2, 7, 1}}) {
    const std::size_t in = 4 / groups, out = 8;
    const Variable<double> x(xgrad::normal<double>({2, length, 4}), true),
        weight(xgrad::normal<double>({out, in, width}), true), bias(xgrad::normal<double>({out}), true);
    Array<double> expected = xt::zeros<double>({std::size_t{2}, length, out});
    for (std::size_t b = 0; b < 2; ++b) {
      for (std::size_t t = 0; t < length; ++t) {
        for (std::size_t o = 0; o < out; ++o) {
          expected(b, t, o) = bias.value()(o);
          for (std::size_t s = 0; s < width; ++s) {
            if (t + s < width / 2 || t + s - width / 2 >= length) continue;
            for (std::size_t i = 0; i < in; ++i) {
              expected(b, t, o) +=
                  x.value()(b, t + s - width / 2, o / (out / groups) * in + i) * weight.value()(o, i, s);
            }
          }
        }
      }
    }
    EXPECT_TRUE(xt::allclose(conv1d(x, weight, bias).value(), expected, 1e-14, 1e-14)) << groups;
    EXPECT_TRUE(xt::allclose(conv1d<double>(x, weight, {}).value() + bias.value(), expected, 1e-14, 1e-14))
        << groups;
    EXPECT_TRUE(xgrad::gradcheck(
                    [](const std::vector<Variable<double>>& v) {
                      const Variable<double> y = conv1d(v[0], v[1], v[2]);
                      return y * y;
                    },
                    {x, weight, bias})
                    .ok)
        << groups;
  }
}

TEST(Conv1dTest, RefusesShapesThatDoNotFit) {
  const auto filled = [](const xgrad::Shape& shape) { return Variable<float>(xt::ones<float>(shape)); };
  EXPECT_EQ(message_of<xgrad::ValueError>([&] {
              conv1d<float>(filled({1, 3, 2}), filled({2, 2, 4}), {});
            }),
            "conv1d: the width of weight must be odd, got 4");
  EXPECT_EQ(message_of<xgrad::ShapeError>([&] {
              conv1d<float>(filled({1, 3, 4}), filled({3, 2, 3}), {});
            }),
            "conv1d: x (batch, L, G I), weight (O, I, K) and bias (O) must fit together, got x (1, 3, 4), "
            "weight (3, 2, 3) and bias ()");
}

}  // namespace conv1d_test
