// The nearest rows, compared with sorting all scores. The tests of semantic_search() have more.

#include "../../kernels/index/nearest_rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace nearest_rows_test {

using xgrad::kernels::NearRow, xgrad::kernels::Vectors;

template <class T>
struct RandomRows {
  RandomRows(std::size_t count, std::size_t size, unsigned seed, double scale = 1)
      : numbers(count * size), norms(count), size(size) {
    std::mt19937 random(seed);
    for (T& number : numbers)
      number = static_cast<T>((static_cast<double>(random() % 2001) / 1000 - 1) * scale);
    xgrad::kernels::row_norms(numbers.data(), count, size, norms.data());
  }

  Vectors<T> vectors() const { return {numbers.data(), norms.data(), norms.size(), size}; }

  std::vector<T> numbers;
  std::vector<double> norms;
  std::size_t size;
};

template <class T>
double product(const RandomRows<T>& a, std::size_t i, const RandomRows<T>& b, std::size_t j) {
  double sum = 0;
  for (std::size_t k = 0; k < a.size; ++k)
    sum += static_cast<double>(a.numbers[i * a.size + k]) * static_cast<double>(b.numbers[j * b.size + k]);
  return sum;
}

template <class T>
void expect_sorted(const RandomRows<T>& queries, const RandomRows<T>& rows, std::size_t most, bool cosine) {
  std::vector<std::vector<NearRow>> nearest;
  xgrad::kernels::nearest_rows(queries.vectors(), rows.vectors(), most, cosine, nearest);
  ASSERT_EQ(nearest.size(), queries.norms.size());
  for (std::size_t q = 0; q < nearest.size(); ++q) {
    std::vector<NearRow> all;
    for (std::size_t i = 0; i < rows.norms.size(); ++i) {
      const double lengths = std::sqrt(product(queries, q, queries, q) * product(rows, i, rows, i));
      const double dot = product(queries, q, rows, i);
      all.push_back({i, !cosine ? dot : lengths > 0 ? dot / lengths : 0});
    }
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
    ASSERT_EQ(nearest[q].size(), std::min(most, all.size()));
    for (std::size_t i = 0; i < nearest[q].size(); ++i) {
      ASSERT_EQ(nearest[q][i].row, all[i].row) << q << ' ' << i;
      ASSERT_NEAR(nearest[q][i].score, all[i].score, 1e-12 * std::max(1.0, std::abs(all[i].score)));
    }
  }
}

TEST(NearestRows, AreThoseOfSortingAllScores) {
  for (const bool cosine : {false, true}) {
    for (const std::size_t rows : {1, 959, 961, 2500}) {
      expect_sorted(RandomRows<float>(2, 21, 1), RandomRows<float>(rows, 21, 2), 9, cosine);
      expect_sorted(RandomRows<double>(70, 8, 3), RandomRows<double>(rows, 8, 4), 3, cosine);
    }
    expect_sorted(RandomRows<float>(2, 8, 5, 1e-30), RandomRows<float>(2500, 8, 6, 1e-30), 5, cosine);
    expect_sorted(RandomRows<float>(2, 8, 7, 3e38), RandomRows<float>(2500, 8, 8, 3e38), 5, cosine);
  }
}

TEST(NearestRows, EqualOnesAreInTheirOrder) {
  const RandomRows<float> queries(1, 5, 9);
  RandomRows<float> rows(3000, 5, 10);
  for (std::size_t i = 0; i < rows.norms.size(); ++i) {
    std::copy_n(queries.numbers.data(), 5, rows.numbers.data() + 5 * i);
    rows.norms[i] = queries.norms[0];
  }
  std::vector<std::vector<NearRow>> nearest;
  xgrad::kernels::nearest_rows(queries.vectors(), rows.vectors(), 1500, true, nearest);
  ASSERT_EQ(nearest[0].size(), 1500U);
  for (std::size_t i = 0; i < 1500; ++i) ASSERT_EQ(nearest[0][i].row, i);
}

TEST(NearestRows, AScoreThatIsNoNumberIsLeftOut) {
  const RandomRows<float> queries(1, 5, 11);
  RandomRows<float> rows(10, 5, 12);
  rows.numbers[3 * 5] = std::numeric_limits<float>::quiet_NaN();
  std::vector<std::vector<NearRow>> nearest;
  xgrad::kernels::nearest_rows(queries.vectors(), rows.vectors(), 20, false, nearest);
  EXPECT_EQ(nearest[0].size(), 9U);
  for (const NearRow& one : nearest[0]) EXPECT_NE(one.row, 3U);
  xgrad::kernels::nearest_rows(queries.vectors(), rows.vectors(), 0, false, nearest);
  EXPECT_TRUE(nearest[0].empty());
}

}  // namespace nearest_rows_test
