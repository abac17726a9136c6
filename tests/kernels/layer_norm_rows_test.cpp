// Rows of every short length, forward and backward, against plain loops.

#include <xgrad/kernels/rows/layer_norm.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace layer_norm_rows_test {

namespace kernels = xgrad::kernels;

template <class T>
class LayerNormRowsTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(LayerNormRowsTest, Types, );

TYPED_TEST(LayerNormRowsTest, AreThoseOfPlainLoops) {
  using T = TypeParam;
  constexpr std::size_t rows = 18, longest = 70;  // more rows than the gradient adds up at once
  constexpr T eps = T(1e-5), tolerance = 512 * std::numeric_limits<T>::epsilon();
  std::mt19937 random(0);
  std::uniform_real_distribution<T> uniform(-2, 2);
  const auto draw = [&](std::size_t count) {
    std::vector<T> numbers(count);
    for (T& v : numbers) v = uniform(random);
    return numbers;
  };
  for (std::size_t n = 2; n <= longest; ++n) {
    for (const bool has_residual : {false, true}) {
      const std::vector<T> x = draw(rows * n), residual = draw(rows * n), dy = draw(rows * n);
      const std::vector<T> weight = draw(n), bias = draw(n);
      std::vector<T> y(rows * n), dx(rows * n), dweight(n), dbias(n), mean(rows), rstd(rows);
      std::vector<T> scratch(kernels::layer_norm_grad_scratch(rows, n));
      const kernels::LayerNormInput<T> input{
          rows, n, x.data(), has_residual ? residual.data() : nullptr, weight.data(), bias.data()};
      kernels::layer_norm_rows<T>(input, eps, {mean.data(), rstd.data()}, y.data());
      kernels::layer_norm_grad_rows<T>(dy.data(), input, {mean.data(), rstd.data()},
                                       {dx.data(), dweight.data(), dbias.data()}, scratch.data());
      std::vector<long double> sums(2 * n);
      for (std::size_t r = 0; r < rows; ++r) {
        std::vector<long double> numbers(n), hats(n), g(n);
        long double total = 0, squares = 0, of_g = 0, of_product = 0;
        for (std::size_t i = 0; i < n; ++i)
          total += numbers[i] =
              static_cast<long double>(x[r * n + i]) + (has_residual ? residual[r * n + i] : 0);
        for (const long double v : numbers) squares += (v - total / n) * (v - total / n);
        const long double scale = 1 / std::sqrt(squares / n + eps);
        for (std::size_t i = 0; i < n; ++i) {
          hats[i] = (numbers[i] - total / n) * scale;
          g[i] = static_cast<long double>(dy[r * n + i]) * weight[i];
          of_g += g[i];
          of_product += g[i] * hats[i];
          sums[i] += dy[r * n + i] * hats[i];
          sums[n + i] += dy[r * n + i];
        }
        for (std::size_t i = 0; i < n; ++i) {
          ASSERT_NEAR(y[r * n + i], static_cast<T>(hats[i] * weight[i] + bias[i]), tolerance * (1 + scale))
              << n;
          const long double gradient = scale * (g[i] - of_g / n - hats[i] * of_product / n);
          ASSERT_NEAR(dx[r * n + i], static_cast<T>(gradient), tolerance * scale * (1 + scale)) << n;
        }
      }
      for (std::size_t i = 0; i < n; ++i) {
        ASSERT_NEAR(dweight[i], static_cast<T>(sums[i]), 64 * tolerance) << n;
        ASSERT_NEAR(dbias[i], static_cast<T>(sums[n + i]), tolerance) << n;
      }
    }
  }
}

}  // namespace layer_norm_rows_test
