// Attention with keys and values that are kept, against attention of whole sequences.

#include <gtest/gtest.h>

#include <xgrad/xgrad.hpp>

#include "expect_error.hpp"
#include "pool.hpp"

namespace key_value_cache_test {

using xgrad::KeyValueCache, xgrad::Variable;
using V = Variable<double>;

V normal(const xgrad::Shape& shape, std::uint64_t seed) {
  xgrad::Generator generator(seed);
  return V(xgrad::normal<double>(shape, 0, 1, generator));
}

void expect_same_as_whole(std::size_t length, std::optional<std::size_t> window,
                          const std::vector<std::size_t>& steps) {
  const V q = normal({1, length, 12}, 1), k = normal({1, length, 6}, 2), v = normal({1, length, 10}, 3);
  xgrad::AttentionOptions options{.scale = 0.3, .num_heads = 4, .num_kv_heads = 2};
  KeyValueCache<double> cache({std::nullopt, window});
  options.is_causal = true;
  if (window) options.window_left = *window - 1;
  const V want = scaled_dot_product_attention(q, k, v, {}, options);
  options.is_causal = false;
  options.window_left.reset();
  std::size_t first = 0;
  for (std::size_t step = 0; first < length; ++step) {
    const std::size_t n = std::min(steps[step % steps.size()], length - first);
    const auto rows = [&](const V& x) { return narrow(x, 1, first, n); };
    cache.attend(0, rows(q), rows(k), rows(v), options);
    const V got = cache.attend(1, rows(q), rows(k), rows(v), options);
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got.value().data()[i], want.value().data()[first * 20 + i], 1e-12)
          << "token " << first + i / 20;
    first += n;
    EXPECT_EQ(cache.length(), first);
  }
  EXPECT_EQ(cache.kept(0), length);
  EXPECT_LE(cache.kept(1), window.value_or(length) + 256);
}

TEST(KeyValueCacheTest, AttentionIsThatOfTheWholeSequence) {
  for (const std::optional<std::size_t> window : {std::optional<std::size_t>(), {1}, {3}, {300}}) {
    expect_same_as_whole(9, window, {4, 1});
    expect_same_as_whole(600, window, {250, 1, 1, 7});
    expect_same_as_whole(700, window, {1});
  }
}

TEST(KeyValueCacheTest, WhatItReleasesWhileItGrowsIsLessThanWhatItHolds) {
  if (!xgrad_tests::pool_keeps_memory()) GTEST_SKIP() << "the pool keeps nothing in this build";
  const V row = normal({1, 1, 64}, 1);
  for (const std::optional<std::size_t> window : {std::optional<std::size_t>(), {1000}}) {
    xgrad::empty_cache();
    KeyValueCache<double> cache({window, window});
    for (int token = 0; token < 3000; ++token)
      for (const std::size_t layer : {0, 1}) cache.attend(layer, row, row, row, {.num_heads = 1});
    const std::size_t held = 4 * cache.kept(0) * 64 * sizeof(double);
    EXPECT_LT(xgrad::memory_stats().cached_bytes, 3 * held);
  }
}

TEST(KeyValueCacheTest, CopiesOfACacheGoOnAlone) {
  const V q = normal({1, 1, 4}, 1), k = normal({1, 1, 4}, 2), v = normal({1, 1, 4}, 3),
          other = normal({1, 1, 4}, 4);
  KeyValueCache<double> cache(1);
  cache.attend(0, q, k, v, {});
  KeyValueCache<double> copy = cache;
  copy.attend(0, q, other, other, {});
  KeyValueCache<double> expected(1);
  expected.attend(0, q, k, v, {});
  EXPECT_EQ(cache.attend(0, q, v, k, {}).value(), expected.attend(0, q, v, k, {}).value());
}

TEST(KeyValueCacheTest, ACallThatThrowsHasAppendedNothing) {
  const V q = normal({1, 1, 4}, 1), k = normal({1, 1, 4}, 2), v = normal({1, 1, 4}, 3);
  KeyValueCache<double> cache(1), expected(1);
  cache.attend(0, q, k, v, {});
  expected.attend(0, q, k, v, {});
  EXPECT_THROW(cache.attend(0, normal({1, 1, 3}, 1), v, k, {}), xgrad::ShapeError);
  EXPECT_EQ(cache.length(), 1U);
  EXPECT_EQ(cache.attend(0, q, k, v, {}).value(), expected.attend(0, q, k, v, {}).value());
}

TEST(KeyValueCacheTest, RefusesWhatDoesNotFit) {
  using xgrad_tests::message_of;
  const V q = normal({1, 2, 4}, 1), k = normal({1, 2, 4}, 2);
  KeyValueCache<double> cache(1);
  cache.attend(0, q, k, k, {});
  EXPECT_EQ(message_of<xgrad::ShapeError>([&] {
              cache.attend(0, q, normal({1, 2, 3}, 1), k, {});
            }),
            "KeyValueCache: k must be (1, n, 4), got (1, 2, 3)");
  EXPECT_EQ(message_of<xgrad::ShapeError>([&] {
              cache.attend(0, q, k, normal({1, 1, 4}, 1), {});
            }),
            "KeyValueCache: k and v must have as many rows, got (1, 2, 4) and (1, 1, 4)");
  EXPECT_EQ(message_of<xgrad::ShapeError>([&] {
              KeyValueCache<double>(1).attend(0, q, normal({2, 4}, 1), k, {});
            }),
            "KeyValueCache: k must be (1, n, size), got (2, 4)");
  EXPECT_EQ(message_of<xgrad::GraphError>([&] { cache.attend(0, q, V(k.value(), true), k, {}); }),
            "KeyValueCache: attend keeps no gradients: call it under NoGrad");
  EXPECT_EQ(message_of<xgrad::ValueError>([] { KeyValueCache<double>({std::optional<std::size_t>(0)}); }),
            "KeyValueCache: a window must be at least 1, got 0");
  EXPECT_EQ(cache.length(), 2u);
}

}  // namespace key_value_cache_test
