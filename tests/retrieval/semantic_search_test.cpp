// The search among vectors, compared with that of all products in double.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/retrieval.hpp>
#include <xgrad/xgrad.hpp>

#include "../expect_error.hpp"
#include "../keep_num_threads.hpp"

namespace semantic_search_test {

using namespace xgrad::retrieval;
using xgrad::Array, xgrad::ShapeError, xgrad::ValueError;
using xgrad::pretrained::Similarity;
using xgrad_tests::message_of;

template <class T>
Array<T> random_vectors(std::size_t count, std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  Array<T> vectors = Array<T>::from_shape({count, size});
  for (T& number : vectors) number = static_cast<T>(random() % 2001) / T(1000) - 1;
  return vectors;
}

template <class T>
double product(const Array<T>& a, std::size_t i, const Array<T>& b, std::size_t j) {
  double sum = 0;
  for (std::size_t k = 0; k < a.shape(1); ++k) sum += double(a(i, k)) * double(b(j, k));
  return sum;
}

/// The nearest vectors of a query, by sorting all.
template <class T>
std::vector<SearchHit> sorted_hits(const Array<T>& queries, std::size_t query, const Array<T>& corpus,
                                   const SearchOptions& options) {
  std::vector<SearchHit> hits;
  for (std::size_t i = 0; i < corpus.shape(0); ++i) {
    const double lengths =
        std::sqrt(product(queries, query, queries, query)) * std::sqrt(product(corpus, i, corpus, i));
    const double dot = product(queries, query, corpus, i);
    const bool cosine = options.similarity == Similarity::cosine;
    hits.push_back({i, !cosine ? dot : lengths > 0 ? dot / lengths : 0});
  }
  std::stable_sort(hits.begin(), hits.end(),
                   [](const SearchHit& a, const SearchHit& b) { return a.score > b.score; });
  hits.resize(std::min(options.top_k, hits.size()));
  return hits;
}

template <class T>
void expect_sorted_hits(const Array<T>& queries, const Array<T>& corpus, const SearchOptions& options) {
  const auto found = semantic_search(queries, corpus, options);
  ASSERT_EQ(found.size(), queries.shape(0));
  for (std::size_t q = 0; q < found.size(); ++q) {
    const std::vector<SearchHit> expected = sorted_hits(queries, q, corpus, options);
    ASSERT_EQ(found[q].size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(found[q][i].index, expected[i].index) << q << " " << i;
      EXPECT_NEAR(found[q][i].score, expected[i].score, 1e-12);
    }
  }
}

template <class T>
class SemanticSearchTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(SemanticSearchTest, Types);

TYPED_TEST(SemanticSearchTest, FindsWhatSortingAllProductsFinds) {
  using T = TypeParam;
  for (const Similarity similarity : {Similarity::cosine, Similarity::dot}) {
    for (const std::size_t count : {1, 5, 959, 960, 961, 3000}) {
      expect_sorted_hits(random_vectors<T>(3, 13, 1), random_vectors<T>(count, 13, 2),
                         {.top_k = 10, .similarity = similarity});
    }
    expect_sorted_hits(random_vectors<T>(130, 40, 3), random_vectors<T>(1000, 40, 4),
                       {.top_k = 3, .similarity = similarity});
    expect_sorted_hits(random_vectors<T>(2, 1, 5), random_vectors<T>(50, 1, 6),
                       {.top_k = 100, .similarity = similarity});
  }
}

TYPED_TEST(SemanticSearchTest, EqualScoresComeInTheOrderOfTheCorpus) {
  using T = TypeParam;
  const Array<T> different = random_vectors<T>(7, 33, 7);
  Array<T> corpus = Array<T>::from_shape({5000, 33});
  for (std::size_t i = 0; i < corpus.shape(0); ++i) std::copy_n(&different(i % 7, 0), 33, &corpus(i, 0));
  const auto found = semantic_search(different, corpus, {.top_k = 700});
  for (std::size_t q = 0; q < 7; ++q) {
    ASSERT_EQ(found[q].size(), 700U);
    for (std::size_t i = 0; i < 700; ++i) {
      ASSERT_EQ(found[q][i].index, q + 7 * i);
      ASSERT_NEAR(found[q][i].score, 1, 1e-12);
    }
  }
}

// Scores that differ by less than a float shows: the products of matrices cannot tell which is the higher
// one.
TEST(SemanticSearch, IsExactWhereFloatsAreNot) {
  constexpr std::size_t count = 2000, size = 64;
  Array<float> corpus = Array<float>::from_shape({count, size});
  std::mt19937 random(8);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = 0; k < size; ++k)
      corpus(i, k) = 1.0f + static_cast<float>(random() % 8) * std::numeric_limits<float>::epsilon();
  }
  const Array<float> queries = random_vectors<float>(20, size, 9);
  expect_sorted_hits(queries, corpus, {.top_k = 20, .similarity = Similarity::dot});
}

TEST(SemanticSearch, ThreadsOtherQueriesAndPrecisionDoNotMatter) {
  const xgrad_tests::KeepNumThreads keep;
  const Array<float> queries = random_vectors<float>(70, 48, 10),
                     corpus = random_vectors<float>(9000, 48, 11);
  xgrad::set_num_threads(1);
  const auto expected = semantic_search(queries, corpus);
  const auto expect_same = [](const std::vector<SearchHit>& a, const std::vector<SearchHit>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].index, b[i].index);
      EXPECT_EQ(a[i].score, b[i].score);
    }
  };
  for (const std::size_t threads : {2, 5}) {
    xgrad::set_num_threads(threads);
    const auto found = semantic_search(queries, corpus);
    for (std::size_t q = 0; q < 70; ++q) expect_same(found[q], expected[q]);
  }
  for (const std::size_t q : {0, 69}) {
    const Array<float> one = xt::view(queries, xt::range(q, q + 1), xt::all());
    expect_same(semantic_search(one, corpus)[0], expected[q]);
  }
  const xgrad::MatmulPrecisionGuard guard(xgrad::MatmulPrecision::medium);
  expect_same(semantic_search(queries, corpus)[3], expected[3]);
}

TEST(SemanticSearch, NumbersOfAnySizeAndZerosAreCompared) {
  const Array<float> corpus{{3e38f, 3e38f}, {1e-30f, 0}, {0, 0}, {-3e38f, 3e38f}, {-1, -1}};
  const Array<float> queries{{3e38f, 3e38f}, {0, 0}};
  const auto cosines = semantic_search(queries, corpus);
  std::vector<std::size_t> order;
  for (const auto& hit : cosines[0]) order.push_back(hit.index);
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
  EXPECT_NEAR(cosines[0][0].score, 1, 1e-12);
  EXPECT_NEAR(cosines[0][1].score, std::sqrt(0.5), 1e-12);
  EXPECT_EQ(cosines[0][2].score, 0);
  EXPECT_NEAR(cosines[0][4].score, -1, 1e-12);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(cosines[1][i].index, i);
    EXPECT_EQ(cosines[1][i].score, 0);
  }
  const auto products = semantic_search(queries, corpus, {.top_k = 1, .similarity = Similarity::dot});
  EXPECT_EQ(products[0][0].index, 0U);
  EXPECT_NEAR(products[0][0].score, 1.8e77, 1e71);
}

TEST(SemanticSearch, ProductsBelowTheSmallestFloatAreCompared) {
  const Array<float> queries = random_vectors<float>(3, 8, 12) * 1e-30f,
                     corpus = random_vectors<float>(2000, 8, 13) * 1e-30f;
  expect_sorted_hits(queries, corpus, {.top_k = 5});
}

TEST(SemanticSearch, NothingIsFoundInNothing) {
  const auto none = Array<float>::from_shape({0, 4});
  const Array<float> one{{1, 2, 3, 4}};
  EXPECT_EQ(semantic_search(none, one).size(), 0U);
  ASSERT_EQ(semantic_search(one, none).size(), 1U);
  EXPECT_TRUE(semantic_search(one, none)[0].empty());
  EXPECT_TRUE(semantic_search(one, one, {.top_k = 0})[0].empty());
}

TEST(SemanticSearch, WhatCannotBeComparedIsRefused) {
  const Array<float> one{{1, 2}}, two{{1, 2}, {NAN, 1}};
  EXPECT_EQ(message_of<ShapeError>([&] {
              semantic_search(Array<float>{{1, 2, 3}}, one);
            }),
            "semantic_search: queries must have the shape (queries, 2), got (1, 3)");
  EXPECT_EQ(message_of<ShapeError>([&] {
              semantic_search(one, Array<float>{1, 2});
            }),
            "semantic_search: corpus must have the shape (texts, size), got (2)");
  const Array<float> without_numbers = Array<float>::from_shape({3, 0});
  EXPECT_EQ(message_of<ShapeError>([&] { semantic_search(without_numbers, without_numbers); }),
            "semantic_search: corpus must have the shape (texts, size), got (3, 0)");
  EXPECT_EQ(message_of<ValueError>([&] { semantic_search(one, two); }),
            "semantic_search: corpus must be finite, which vector 1 is not");
  EXPECT_EQ(message_of<ValueError>([&] {
              semantic_search(Array<float>{{INFINITY, 1}}, one);
            }),
            "semantic_search: queries must be finite, which vector 0 is not");
  EXPECT_EQ(message_of<ValueError>([&] { semantic_search(one, one, {.similarity = Similarity::manhattan}); }),
            "semantic_search: similarity must be cosine or dot, got manhattan");
}

}  // namespace semantic_search_test
