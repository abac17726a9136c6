// Products of 8-bit integers with each kind of instructions that the processor has, beside sums in 64 bits.

#include <xgrad/kernels/low_precision/int8.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "keep_num_threads.hpp"

namespace int8_test {

using xgrad::kernels::Int8Instructions, xgrad::kernels::Int8Matrix, xgrad::kernels::Int8Range,
    xgrad::kernels::Int8Rows;
using Integers = std::vector<std::int8_t>;

std::vector<Int8Instructions> all_instructions() {
  std::vector<Int8Instructions> all;
  for (const auto one : {Int8Instructions::none, Int8Instructions::avx2, Int8Instructions::vnni}) {
    if (one <= xgrad::kernels::int8_instructions()) all.push_back(one);
  }
  return all;
}

struct Sizes {
  std::size_t m, n, k;
};

std::string text(const Sizes& sizes, Int8Instructions instructions) {
  return std::to_string(sizes.m) + " x " + std::to_string(sizes.n) + " x " + std::to_string(sizes.k) +
         ", instructions " + std::to_string(static_cast<int>(instructions));
}

std::vector<float> product(const Sizes& sizes, const Integers& x, const Integers& weight,
                           Int8Instructions instructions) {
  const Int8Rows rows(x.data(), sizes.m, sizes.k);
  const Int8Matrix matrix(weight, std::vector<float>(sizes.n, 1), sizes.k);
  std::vector<float> y(sizes.m * sizes.n, -1);
  xgrad::kernels::int8_linear_rows(rows, matrix, nullptr, y.data(), instructions);
  return y;
}

/// Each exact sum, as a float.
std::vector<float> expected(const Sizes& sizes, const Integers& x, const Integers& weight) {
  std::vector<float> y;
  for (std::size_t i = 0; i < sizes.m; ++i) {
    for (std::size_t j = 0; j < sizes.n; ++j) {
      std::int64_t sum = 0;
      for (std::size_t p = 0; p < sizes.k; ++p)
        sum += std::int64_t{x[i * sizes.k + p]} * weight[j * sizes.k + p];
      y.push_back(static_cast<float>(sum));
    }
  }
  return y;
}

TEST(Int8Test, ProductsAreThoseOf64Bits) {
  std::mt19937 random(0);
  const auto drawn = [&](std::size_t count) {
    Integers all(count);
    for (std::int8_t& one : all) one = static_cast<std::int8_t>(random() % 256 - 128);
    return all;
  };
  std::vector<Sizes> cases;
  for (const std::size_t m : {1, 2, 3, 11, 12, 13, 25, 121}) {
    for (const std::size_t n : {1, 31, 32, 33, 65}) {
      for (const std::size_t k : {1, 3, 4, 5, 63, 64, 65, 130}) cases.push_back({m, n, k});
    }
  }
  cases.push_back({131, 200, 1000});
  for (const Sizes& sizes : cases) {
    const Integers x = drawn(sizes.m * sizes.k), weight = drawn(sizes.n * sizes.k);
    const std::vector<float> sums = expected(sizes, x, weight);
    for (const Int8Instructions one : all_instructions())
      EXPECT_EQ(product(sizes, x, weight, one), sums) << text(sizes, one);
  }
}

TEST(Int8Test, ExtremesDoNotSaturate) {
  const Sizes sizes{3, 2, xgrad::kernels::most_int8_cols};
  Integers x(sizes.m * sizes.k), weight(sizes.n * sizes.k);
  const auto fill = [&](Integers& all, std::size_t row, int first, int second) {
    for (std::size_t i = 0; i < sizes.k; ++i)
      all[row * sizes.k + i] = static_cast<std::int8_t>(i % 2 == 0 ? first : second);
  };
  fill(x, 0, -128, -128);
  fill(x, 1, 127, 127);
  fill(x, 2, 127, -128);
  fill(weight, 0, -128, -128);
  fill(weight, 1, 127, -128);
  const std::vector<float> sums = expected(sizes, x, weight);
  EXPECT_EQ(sums[0], 0x1p30F);
  for (const Int8Instructions one : all_instructions())
    EXPECT_EQ(product(sizes, x, weight, one), sums) << text(sizes, one);
}

std::vector<float> drawn_floats(std::size_t count) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> all(count);
  for (float& one : all) one = normal(random);
  return all;
}

TEST(Int8Test, RowsDependNeitherOnOtherRowsNorOnThreads) {
  const xgrad_tests::KeepNumThreads keep;
  constexpr std::size_t m = 300, n = 130, k = 200;
  const std::vector<float> x = drawn_floats(m * k), w = drawn_floats(n * k), bias = drawn_floats(n);
  const Int8Rows weight({w.data(), n, k}, Int8Range::symmetric);
  const Int8Matrix matrix(weight.values(), {weight.scales(), n}, k);
  for (const Int8Instructions one : all_instructions()) {
    const auto rows_from = [&](std::size_t begin, std::size_t count) {
      std::vector<float> y(count * n);
      const Int8Rows rows({x.data() + begin * k, count, k}, Int8Range::all);
      xgrad::kernels::int8_linear_rows(rows, matrix, bias.data(), y.data(), one);
      return y;
    };
    xgrad::set_num_threads(1);
    const std::vector<float> all = rows_from(0, m);
    for (const std::size_t threads : {2, 3, 7}) {
      xgrad::set_num_threads(threads);
      EXPECT_EQ(rows_from(0, m), all) << threads << " threads";
    }
    for (const std::size_t count : {1, 5, 17}) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(100 * n);
      EXPECT_EQ(rows_from(100, count),
                std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(count * n)));
    }
  }
}

TEST(Int8Test, ScalesZerosAndBiasesAreThoseOfTheFormula) {
  constexpr std::size_t m = 14, n = 37, k = 70;
  std::vector<float> x = drawn_floats(m * k);
  for (std::size_t i = 0; i < k; ++i) x[i] = std::abs(x[i]) + 1;       // all above 0
  for (std::size_t i = k; i < 2 * k; ++i) x[i] = -std::abs(x[i]) - 1;  // all below
  for (std::size_t i = 2 * k; i < 3 * k; ++i) x[i] = std::max(x[i], -0.17F);
  const std::vector<float> w = drawn_floats(n * k), bias = drawn_floats(n);
  const Int8Rows rows({x.data(), m, k}, Int8Range::all), weight({w.data(), n, k}, Int8Range::symmetric);
  const Int8Matrix matrix(weight.values(), {weight.scales(), n}, k);
  EXPECT_EQ(matrix.values(), weight.values());
  const auto rounded = [&](std::size_t i, std::size_t p) {
    return double{rows.scales()[i]} * (rows.row(i)[p] - rows.zeros()[i]);
  };
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t p = 0; p < k; ++p)
      EXPECT_NEAR(rounded(i, p), x[i * k + p], 0.501 * rows.scales()[i]) << i << " " << p;
  }
  for (const Int8Instructions one : all_instructions()) {
    std::vector<float> y(m * n);
    xgrad::kernels::int8_linear_rows(rows, matrix, bias.data(), y.data(), one);
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::size_t p = 0; p < k; ++p)
          sum += rounded(i, p) * weight.values()[j * k + p] * double{weight.scales()[j]};
        EXPECT_NEAR(y[i * n + j], sum + double{bias[j]}, 1e-5) << i << " " << j;
      }
    }
  }
}

TEST(Int8Test, ZerosOfTheWeightAreTakenOff) {
  constexpr std::size_t m = 14, n = 37, k = 70;
  const std::vector<float> x = drawn_floats(m * k);
  Integers weight(n * k);
  std::vector<std::int32_t> zeros(n);
  for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<std::int8_t>(i * 7919 % 256 - 128);
  for (std::size_t j = 0; j < n; ++j) zeros[j] = static_cast<std::int32_t>(j * 31 % 256) - 128;
  const std::vector<float> none(n, 1), scales = drawn_floats(n), bias = drawn_floats(n);
  for (const std::int32_t zero : {0, 93, 255}) {
    const Int8Rows rows({x.data(), m, k}, 0.01F, zero);
    const Int8Matrix matrix(weight, none, k, zeros);
    for (const Int8Instructions one : all_instructions()) {
      std::vector<float> y(m * n);
      xgrad::kernels::int8_linear_rows(rows, matrix, scales.data(), bias.data(), y.data(), one);
      for (std::size_t i = 0; i < m; ++i) {
        for (std::size_t j = 0; j < n; ++j) {
          std::int64_t sum = 0;
          for (std::size_t p = 0; p < k; ++p)
            sum += std::int64_t{rows.row(i)[p] - zero} * (weight[j * k + p] - zeros[j]);
          const volatile float scaled = static_cast<float>(sum) * scales[j];  // rounded before the bias
          EXPECT_EQ(y[i * n + j], scaled + bias[j]) << i << " " << j << " " << zero;
        }
      }
    }
  }
}

TEST(Int8Test, NumbersAreRoundedByAStepAsInOnnx) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  std::vector<float> x{0.5F, 1.5F, 2.5F, -0.5F, -1.5F, 0.49999997F, inf, -inf, std::nanf(""), 1e30F, -1e30F};
  while (x.size() < 200) x.push_back(0.37F * static_cast<float>(x.size()) - 40);
  for (const std::int32_t zero : {0, 7, 255}) {
    const Int8Rows rows({x.data(), 1, x.size()}, 0.25F, zero);
    std::int32_t sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float places = std::nearbyint(x[i] / 0.25F) + static_cast<float>(zero);
      const float kept = std::isnan(places) ? 0 : std::clamp(places, 0.0F, 255.0F);
      EXPECT_EQ(static_cast<float>(rows.row(0)[i]), kept) << x[i] << " " << zero;
      sum += rows.row(0)[i];
    }
    EXPECT_EQ(rows.sums()[0], sum);
    EXPECT_EQ(rows.zeros()[0], zero);
  }
}

TEST(Int8Test, ExtremesAreThoseOfNumbersAndZero) {
  std::vector<float> x(200'000, 1);
  EXPECT_EQ(xgrad::kernels::extremes_with_zero(x.data(), x.size()).least, 0);
  EXPECT_EQ(xgrad::kernels::extremes_with_zero(x.data(), 0).largest, 0);
  x[5] = x[199'998] = std::nanf("");
  x[131'071] = -3;
  x[199'999] = 4;
  const auto [least, largest] = xgrad::kernels::extremes_with_zero(x.data(), x.size());
  EXPECT_EQ(least, -3);
  EXPECT_EQ(largest, 4);
}

TEST(Int8Test, GeluOfProductsIsNearTheExactOne) {
  using xgrad::kernels::Int8Activation;
  constexpr std::size_t m = 200, n = 70, k = 5;
  std::vector<float> x = drawn_floats(m * k), w = drawn_floats(n * k), bias = drawn_floats(n);
  for (std::size_t i = 0; i < k; ++i) x[i] = std::nanf("");
  const Int8Rows rows({x.data(), m, k}, Int8Range::all), weight({w.data(), n, k}, Int8Range::symmetric);
  const Int8Matrix matrix(weight.values(), {weight.scales(), n}, k);
  for (const Int8Instructions one : all_instructions()) {
    std::vector<float> plain(m * n), y(m * n);
    xgrad::kernels::int8_linear_rows(rows, matrix, bias.data(), plain.data(), one);
    xgrad::kernels::int8_linear_rows(rows, matrix, bias.data(), y.data(), one, Int8Activation::gelu);
    for (std::size_t i = 0; i < n; ++i) EXPECT_TRUE(std::isnan(y[i])) << i;
    for (std::size_t i = n; i < m * n; ++i) {
      const double exact = double{plain[i]} * std::erfc(-double{plain[i]} * std::sqrt(0.5)) / 2;
      EXPECT_NEAR(y[i], exact, 3e-5) << plain[i];
    }
  }
}

TEST(Int8Test, LargestNumbersHaveTheirPlaces) {
  const std::vector<float> x{-1, 0, 0.5F, 2, -3, 1, 0, 0};
  const Int8Rows symmetric({x.data(), 2, 4}, Int8Range::symmetric), all({x.data(), 2, 4}, Int8Range::all);
  EXPECT_EQ(symmetric.values(), (Integers{-64, 0, 32, 127, -127, 42, 0, 0}));
  EXPECT_EQ(symmetric.scales()[0], 2.0F / 127);
  EXPECT_EQ(all.zeros()[0], 85);  // a third of 254, rounded up
  EXPECT_EQ(all.row(0)[3] - all.row(0)[0], 254);
  EXPECT_EQ(all.row(0)[1], all.zeros()[0]);
}

TEST(Int8Test, OnlyRowsWithNumbersThatAreNotFiniteAreNan) {
  constexpr float inf = std::numeric_limits<float>::infinity(), most = std::numeric_limits<float>::max();
  constexpr std::size_t k = 70, n = 3;
  const std::vector<float> special{inf, -inf, std::nanf(""), -std::nanf(""), most, -most, 1e-40F, 0};
  const Int8Matrix matrix(Integers(n * k, 1), std::vector<float>(n, 0.5F), k);
  for (const std::size_t place : {0, 31, 69}) {
    for (const Int8Range range : {Int8Range::symmetric, Int8Range::all}) {
      std::vector<float> x(special.size() * k, 0.0F);
      for (std::size_t r = 0; r < special.size(); ++r) x[r * k + place] = special[r];
      const Int8Rows rows({x.data(), special.size(), k}, range);
      for (const Int8Instructions one : all_instructions()) {
        std::vector<float> y(special.size() * n);
        xgrad::kernels::int8_linear_rows(rows, matrix, nullptr, y.data(), one);
        for (std::size_t r = 0; r < special.size(); ++r) {
          const float got = y[r * n + 1];
          if (!std::isfinite(special[r])) {
            EXPECT_TRUE(std::isnan(got)) << r;
          } else if (std::abs(special[r]) == most) {
            EXPECT_NEAR(got / special[r], 0.5F, 1e-2F);
          } else {
            EXPECT_EQ(got, 0) << r;
          }
        }
      }
    }
  }
}

}  // namespace int8_test
