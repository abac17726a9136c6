// Rows of every short length, with nan, infinities and hidden keys among them, against plain loops.

#include <xgrad/kernels/attention/attention.hpp>
#include <xgrad/kernels/rows/softmax.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace softmax_rows_test {

namespace kernels = xgrad::kernels;

template <class T>
class SoftmaxRowsTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(SoftmaxRowsTest, Types, );

constexpr std::size_t longest = 70;

template <class T>
std::vector<T> softmax(const std::vector<T>& x) {
  long double max = -std::numeric_limits<long double>::infinity(), sum = 0;
  for (const T v : x) max = v > max ? v : max;
  for (const T v : x) sum += std::exp(v - max);
  std::vector<T> y;
  for (const T v : x) y.push_back(static_cast<T>(std::exp(v - max) / sum));
  return y;
}

/// Rows of all lengths: plain ones, and ones in which a number is nan, infinite, or far below the others.
template <class T, class Check>
void for_each_row(Check check) {
  constexpr T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  std::mt19937 random(0);
  std::uniform_real_distribution<T> uniform(-20, 20);
  for (std::size_t n = 1; n <= longest; ++n) {
    for (const T special : {T(0), nan, infinity, -infinity, T(-90), T(-120), T(-800)}) {
      std::vector<T> row(n);
      for (T& v : row) v = uniform(random);
      if (special != 0) row[random() % n] = special;
      check(row);
    }
    check(std::vector<T>(n, -infinity));
    check(std::vector<T>(n, nan));
  }
}

template <class T>
void expect_equal(const std::vector<T>& got, const std::vector<T>& expected, const std::string& what) {
  const T tolerance = 512 * std::numeric_limits<T>::epsilon();  // x - max is rounded
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const T size = std::max(std::fabs(expected[i]), std::numeric_limits<T>::min() / tolerance);
    ASSERT_TRUE(std::isnan(expected[i]) ? std::isnan(got[i])
                                        : std::fabs(got[i] - expected[i]) <= tolerance * size)
        << what << ", " << i << " of " << expected.size() << ": " << got[i] << " instead of " << expected[i];
  }
}

TYPED_TEST(SoftmaxRowsTest, Softmax) {
  using T = TypeParam;
  for_each_row<T>([](const std::vector<T>& row) {
    std::vector<T> y = row;
    kernels::softmax_rows(y.data(), y.data(), 1, y.size());
    expect_equal(y, softmax(row), "softmax");
  });
}

TYPED_TEST(SoftmaxRowsTest, Gradient) {
  using T = TypeParam;
  constexpr std::size_t rows = 3;
  std::mt19937 random(2);
  std::uniform_real_distribution<T> uniform(-1, 1);
  for (std::size_t n = 1; n <= longest; ++n) {
    std::vector<T> dy(rows * n), y(rows * n), dx(rows * n), expected;
    for (T& v : dy) v = uniform(random);
    for (T& v : y) v = uniform(random);
    for (std::size_t r = 0; r < rows; ++r) {
      long double dot = 0;
      for (std::size_t i = r * n; i < (r + 1) * n; ++i) dot += static_cast<long double>(dy[i]) * y[i];
      for (std::size_t i = r * n; i < (r + 1) * n; ++i)
        expected.push_back(static_cast<T>(y[i] * (dy[i] - dot)));
    }
    kernels::softmax_grad_rows(dy.data(), y.data(), dx.data(), rows, n);
    for (std::size_t i = 0; i < rows * n; ++i)
      ASSERT_NEAR(dx[i], expected[i], 64 * std::numeric_limits<T>::epsilon()) << i << ", rows of " << n;
  }
}

TYPED_TEST(SoftmaxRowsTest, Attention) {
  using T = TypeParam;
  std::mt19937 random(1);
  for_each_row<T>([&](const std::vector<T>& row) {
    const std::size_t n = row.size();
    for (const std::ptrdiff_t stride : {0, 1, 2}) {  // 0: nothing is hidden
      const auto allowed = std::make_unique<bool[]>(2 * n);
      std::generate_n(allowed.get(), 2 * n, [&] { return random() % 3 > 0; });
      std::vector<T> scores = row;
      for (std::size_t i = 0; stride > 0 && i < n; ++i) {
        if (!allowed[i * static_cast<std::size_t>(stride)]) scores[i] = -std::numeric_limits<T>::infinity();
      }
      const bool none = std::all_of(scores.begin(), scores.end(), [](T s) { return s < 0 && std::isinf(s); });
      const kernels::AttentionSizes sizes{1, 1, 1, 1, n, 1, 1};
      const T one = 1;
      std::vector<T> v(n), probs(n), scratch(kernels::attention_scratch(sizes, {}, false));
      T out;
      kernels::MaskView<T> mask;
      if (stride > 0) mask.allowed = allowed.get(), mask.key_stride = stride;
      const kernels::AttentionLayout layout{{1, 1}, {n, 1}, {n, 1}};
      kernels::attention_forward<T>({sizes, layout, &one, row.data(), v.data(), 1, 0, mask, {}, {}},
                                    {probs.data(), nullptr}, {1, scratch.data()}, &out);
      expect_equal(probs, none ? std::vector<T>(n) : softmax(scores), "attention");
    }
  });
}

}  // namespace softmax_rows_test
