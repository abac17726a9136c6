#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/ops/kernels/gemm.hpp>

namespace {

template <class T>
class GemmTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(GemmTest, Types, );

/// Products of all kinds of sizes, small enough for loops, of one tile, of several and with rests, with
/// leading dimensions beyond the rows, against sums in long double; what lies between the rows stays as it
/// was.
TYPED_TEST(GemmTest, IsTheSumOfProducts) {
  using T = TypeParam;
  std::mt19937_64 random(0);
  std::uniform_real_distribution<double> uniform(-1, 1);
  const auto size = [&](std::size_t low, std::size_t high) {
    return std::uniform_int_distribution<std::size_t>(low, high)(random);
  };
  const std::vector<std::vector<std::size_t>> ranges = {{0, 6}, {1, 40}, {50, 70}, {200, 300}};
  for (int round = 0; round < 160; ++round) {
    const auto side = [&] {
      const auto& range = ranges[size(0, ranges.size() - 1)];
      return size(range[0], range[1]);
    };
    const std::size_t m = side(), n = side(), k = side();
    const bool trans_a = round % 2 == 1, trans_b = round % 4 > 1;
    const auto leading = [&](std::size_t width) { return std::max<std::size_t>(1, width + size(0, 3)); };
    const std::size_t lda = leading(trans_a ? m : k), ldb = leading(trans_b ? k : n), ldc = leading(n);
    const auto draw = [&](std::size_t count) {
      std::vector<T> numbers(count);
      for (T& number : numbers) number = static_cast<T>(uniform(random));
      return numbers;
    };
    const std::vector<T> a = draw((trans_a ? k : m) * lda + 1), b = draw((trans_b ? n : k) * ldb + 1);
    const T alpha = round % 3 == 0 ? T(1) : static_cast<T>(uniform(random));
    const T beta = round % 5 == 0 ? static_cast<T>(uniform(random)) : static_cast<T>(round % 5 == 1);
    const std::vector<T> before = draw(m * ldc + 1);
    std::vector<T> c = before;
    if (beta == 0) {
      for (std::size_t i = 0; i < m * n; ++i) c[i / n * ldc + i % n] = std::numeric_limits<T>::quiet_NaN();
    }
    xgrad::kernels::gemm<T>(trans_a, trans_b, m, n, k, alpha, a.data(), lda, b.data(), ldb, beta, c.data(),
                            ldc);
    const double bound = std::numeric_limits<T>::epsilon() * (4 + static_cast<double>(k));
    std::size_t wrong = 0;
    for (std::size_t at = 0; at < c.size(); ++at) {
      const std::size_t i = at / ldc, j = at % ldc;
      if (i == m || j >= n) {
        wrong += c[at] != before[at];
        continue;
      }
      long double sum = 0;
      for (std::size_t p = 0; p < k; ++p) {
        sum += static_cast<long double>(trans_a ? a[p * lda + i] : a[i * lda + p]) *
               (trans_b ? b[j * ldb + p] : b[p * ldb + j]);
      }
      const double expected = static_cast<double>(alpha * sum + (beta == 0 ? 0.0L : beta * before[at]));
      wrong += !(std::fabs(static_cast<double>(c[at]) - expected) <= bound);
    }
    EXPECT_EQ(wrong, 0u) << m << " x " << n << " x " << k << (trans_a ? ", a" : "") << (trans_b ? ", b" : "")
                         << ", alpha " << alpha << ", beta " << beta;
  }
}

}  // namespace
