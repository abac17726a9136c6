#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/kernels/gemm/gemm.hpp>

#include "keep_num_threads.hpp"

namespace gemm_test {

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
    xgrad::kernels::gemm<T>(alpha, {a.data(), m, k, lda, trans_a}, {b.data(), k, n, ldb, trans_b}, beta,
                            {c.data(), m, n, ldc});
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

/// A product of all options and its plain loops.
template <class T>
struct LargeProduct {
  std::size_t m, n, k;
  bool trans_a, trans_b;
  std::vector<T> a, b, before;
  std::vector<double> sums;

  static constexpr std::size_t padding = 3;
  std::size_t lda() const { return (trans_a ? m : k) + padding; }
  std::size_t ldb() const { return (trans_b ? k : n) + padding; }
  std::size_t ldc() const { return n + padding; }

  LargeProduct(std::size_t rows, std::size_t cols, std::size_t depth, unsigned flags)
      : m(rows), n(cols), k(depth), trans_a((flags & 1) != 0), trans_b((flags & 2) != 0) {
    std::mt19937_64 random(flags);
    std::uniform_real_distribution<double> uniform(-1, 1);
    const auto draw = [&](std::size_t count) {
      std::vector<T> numbers(count);
      for (T& number : numbers) number = static_cast<T>(uniform(random));
      return numbers;
    };
    a = draw((trans_a ? k : m) * lda());
    b = draw((trans_b ? n : k) * ldb());
    before = draw(m * ldc());
    sums.assign(m * n, 0);
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t p = 0; p < k; ++p) {
        const double left = trans_a ? a[p * lda() + i] : a[i * lda() + p];
        const T* from = trans_b ? &b[p] : &b[p * ldb()];
        const std::size_t step = trans_b ? ldb() : 1;
        for (std::size_t j = 0; j < n; ++j) sums[i * n + j] += left * from[j * step];
      }
    }
  }

  /// How many elements of the library's product are wrong, those between the rows included.
  std::size_t wrong(T alpha, T beta) const {
    std::vector<T> c = before;
    xgrad::kernels::gemm<T>(alpha, {a.data(), m, k, lda(), trans_a}, {b.data(), k, n, ldb(), trans_b}, beta,
                            {c.data(), m, n, ldc()});
    const double bound = std::numeric_limits<T>::epsilon() * (4 + static_cast<double>(k));
    std::size_t count = 0;
    for (std::size_t at = 0; at < c.size(); ++at) {
      const std::size_t i = at / ldc(), j = at % ldc();
      const double expected = j < n ? alpha * sums[i * n + j] + beta * before[at] : before[at];
      count += !(std::fabs(c[at] - expected) <= (j < n ? bound : 0));
    }
    return count;
  }
};

/// Products of more than one tile and panel in each direction, of few rows and of few columns, for which
/// threads get other pieces, and sums of many products. Runs with the kernels of other processors, too.
TYPED_TEST(GemmTest, LargeProductsOfAllOptions) {
  using T = TypeParam;
  const xgrad_tests::KeepNumThreads keep;
  for (unsigned flags = 0; flags < 4; ++flags) {
    for (const auto& [m, n, k] : {std::array<std::size_t, 3>{80, 70, 700},
                                  {270, 290, 280},
                                  {40, 590, 270},
                                  {590, 40, 270},
                                  {1, 590, 270},
                                  {2, 1031, 129},
                                  {3, 461, 303},
                                  {7, 461, 303},
                                  {8, 230, 600}}) {
      const LargeProduct<T> product(m, n, k, flags);
      for (const std::size_t threads : {1, 3}) {
        xgrad::set_num_threads(threads);
        for (const auto& [alpha, beta] : {std::pair<T, T>{T(1), T(0)}, {T(1), T(1)}, {T(0.5), T(-2)}}) {
          EXPECT_EQ(product.wrong(alpha, beta), 0u)
              << m << " x " << n << " x " << k << ", flags " << flags << ", alpha " << alpha << ", beta "
              << beta << ", " << threads << " threads";
        }
      }
    }
  }
}

/// A matrix of whole numbers inside of an array with longer rows, whose other elements are nan.
template <class T>
struct Padded {
  Padded(std::size_t rows, std::size_t cols, std::size_t padding, std::mt19937& random)
      : ld(cols + padding), elements((rows - 1) * ld + cols, std::numeric_limits<T>::quiet_NaN()) {
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < cols; ++c)
        at(r, c) = static_cast<T>(static_cast<std::int64_t>(random() % 17) - 8);
    }
  }

  T& at(std::size_t row, std::size_t col) { return elements[row * ld + col]; }

  std::size_t ld;
  std::vector<T> elements;
};

/// Sizes too small for BLAS and some just above.
TYPED_TEST(GemmTest, SmallProductsOfAllFlagsAndWidths) {
  using T = TypeParam;
  std::mt19937 random(0);
  for (unsigned flags = 0; flags < 4; ++flags) {
    const bool trans_a = (flags & 1) != 0, trans_b = (flags & 2) != 0;
    for (std::size_t m = 1; m <= 9; ++m) {
      for (std::size_t n = 1; n <= 19; ++n) {
        for (const std::size_t k : {1, 2, 3, 8, 33, 70, 256}) {
          Padded<T> a(trans_a ? k : m, trans_a ? m : k, random() % 3, random);
          Padded<T> b(trans_b ? n : k, trans_b ? k : n, random() % 3, random);
          Padded<T> c(m, n, random() % 3, random), expected = c;
          const T alpha = static_cast<T>(random() % 3), beta = static_cast<T>(random() % 3) - 1;
          for (std::size_t i = 0; i < m; ++i) {
            for (std::size_t j = 0; j < n; ++j) {
              T sum = 0;
              for (std::size_t p = 0; p < k; ++p)
                sum += (trans_a ? a.at(p, i) : a.at(i, p)) * (trans_b ? b.at(j, p) : b.at(p, j));
              expected.at(i, j) = alpha * sum + beta * c.at(i, j);
              if (beta == 0) c.at(i, j) = std::numeric_limits<T>::quiet_NaN();  // is not read
            }
          }
          xgrad::kernels::gemm<T>(alpha, {a.elements.data(), m, k, a.ld, trans_a},
                                  {b.elements.data(), k, n, b.ld, trans_b}, beta,
                                  {c.elements.data(), m, n, c.ld});
          for (std::size_t i = 0; i < c.elements.size(); ++i) {
            const T got = c.elements[i], wanted = expected.elements[i];
            ASSERT_TRUE(got == wanted || (std::isnan(got) && std::isnan(wanted)))
                << "flags " << flags << " m " << m << " n " << n << " k " << k << " alpha " << alpha
                << " beta " << beta << " element " << i << ": " << got << " instead of " << wanted;
          }
        }
      }
    }
  }
}

/// A row of a product of few rows has the same bits beside any others, also on several threads.
TYPED_TEST(GemmTest, ARowOfFewDoesNotDependOnTheOthers) {
  using T = TypeParam;
  const xgrad_tests::KeepNumThreads keep;
  constexpr std::size_t rows = 8, n = 517, k = 301;
  for (const unsigned flags : {0U, 2U}) {
    const LargeProduct<T> product(rows, n, k, flags);
    const xgrad::kernels::Matrix<const T> a(product.a.data(), rows, k, product.lda()),
        b(product.b.data(), k, n, product.ldb(), product.trans_b);
    constexpr T nan = std::numeric_limits<T>::quiet_NaN();  // is not read, as beta is 0
    std::vector<T> whole(rows * n, nan);
    xgrad::set_num_threads(1);
    xgrad::kernels::gemm<T>(1, a, b, 0, {whole.data(), rows, n});
    for (const std::size_t threads : {1, 2, 3}) {
      xgrad::set_num_threads(threads);
      for (std::size_t first = 0; first < rows; ++first) {
        std::vector<T> some((rows - first) * n, nan);
        xgrad::kernels::gemm<T>(1, a.some_rows(first, rows - first), b, 0, {some.data(), rows - first, n});
        EXPECT_TRUE(
            std::equal(some.begin(), some.end(), whole.begin() + static_cast<std::ptrdiff_t>(first * n)))
            << first << ", flags " << flags << ", " << threads << " threads";
      }
    }
  }
}

TYPED_TEST(GemmTest, ARowOfFewIsNotTouchedByNanBehindIt) {
  using T = TypeParam;
  constexpr std::size_t rows = 8, n = 517, k = 301;
  for (const unsigned flags : {0U, 2U}) {
    LargeProduct<T> product(rows, n, k, flags);
    const auto first_row = [&] {
      const xgrad::kernels::Matrix<const T> a(product.a.data(), rows, k, product.lda()),
          b(product.b.data(), k, n, product.ldb(), product.trans_b);
      std::vector<T> c(rows * n);
      xgrad::kernels::gemm<T>(1, a, b, 0, {c.data(), rows, n});
      c.resize(n);
      return c;
    };
    const std::vector<T> expected = first_row();
    std::fill_n(product.a.begin() + k, product.lda(), std::numeric_limits<T>::quiet_NaN());
    EXPECT_EQ(first_row(), expected) << "flags " << flags;
  }
}

}  // namespace gemm_test
