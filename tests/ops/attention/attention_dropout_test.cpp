// Attention with dropout: its mask is PyTorch's stream, and the fused kernels compute what the composed form
// does; and attention of sequences that are packed.

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/autograd/gradcheck.hpp>
#include <xgrad/base/random.hpp>
#include <xgrad/graph/grad_mode.hpp>
#include <xgrad/ops/attention/attention_with_weights.hpp>
#include <xgrad/ops/attention/detail/packed_self_attention.hpp>
#include <xgrad/ops/attention/self_attention.hpp>
#include <xgrad/ops/index/indexing.hpp>
#include <xgrad/ops/reduce/reductions.hpp>
#include <xgrad/ops/shape/shapes.hpp>

#include "../../difference.hpp"

namespace attention_dropout_test {

using xgrad::Array, xgrad::AttentionMask, xgrad::AttentionOptions, xgrad::Mask, xgrad::Shape, xgrad::Variable;
using xgrad_tests::largest_difference;
using V = Variable<double>;

V leaf(const Shape& shape, std::uint64_t seed) {
  xgrad::Generator generator(seed);
  return V(xgrad::uniform<double>(shape, -1, 1, generator), true);
}

TEST(AttentionDropoutTest, BitsAreThoseOfBernoulli) {
  for (const std::size_t cols : {1, 7, 8, 9, 63, 64, 65, 200, 512, 513, 1030}) {
    xgrad::Generator bits_generator(5), generator(5);
    const auto bits = xgrad::detail::bernoulli_bits(3, cols, 0.7, bits_generator);
    const auto expected = xgrad::bernoulli<float>({3, cols}, 0.7, generator);
    ASSERT_EQ(bits.shape(), (Shape{3, (cols + 7) / 8}));
    for (std::size_t r = 0; r < 3; ++r) {
      for (std::size_t c = 0; c < 8 * bits.shape()[1]; ++c) {
        const bool set = (bits(r, c / 8) >> c % 8 & 1) != 0;
        ASSERT_EQ(set, c < cols && expected(r, c) != 0) << "row " << r << ", column " << c << " of " << cols;
      }
    }
    EXPECT_EQ(bits_generator.get_state(), generator.get_state());
  }
}

TEST(AttentionDropoutTest, TheMaskIsBernoulliInTheShapeOfTheScores) {
  const Variable<float> q(Array<float>(Shape{2, 5, 6}, 0.0f)), k(Array<float>(Shape{2, 11, 6}, 0.0f)),
      v(Array<float>(Shape{2, 11, 11}, 0.0f));
  xgrad::manual_seed(3);
  const Array<float> kept = xgrad::bernoulli<float>({2, 1, 5, 11}, 0.6);
  const std::string state = xgrad::get_rng_state();
  xgrad::manual_seed(3);
  const Array<float> weights =
      attention_with_weights(q, k, v, {}, {.dropout_p = 0.4, .num_heads = 1}).weights.value();
  EXPECT_EQ(xgrad::get_rng_state(), state);
  const float weight = 1.0f / 11 * (1 / static_cast<float>(1 - 0.4));
  ASSERT_EQ(weights.shape(), kept.shape());
  for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_FLOAT_EQ(weights.data()[i], kept.data()[i] * weight);

  // With the identity for v, the fused kernels return these weights.
  Array<float> identity(Shape{2, 11, 11}, 0.0f);
  for (std::size_t i = 0; i < 11; ++i) identity(0, i, i) = identity(1, i, i) = 1;
  xgrad::manual_seed(3);
  const Array<float> fused =
      scaled_dot_product_attention(q, k, Variable<float>(identity), {}, {.dropout_p = 0.4, .num_heads = 1})
          .value();
  EXPECT_EQ(xgrad::get_rng_state(), state);
  for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_FLOAT_EQ(fused.data()[i], weights.data()[i]);
}

TEST(AttentionDropoutTest, WithProbabilityOneNothingIsKeptAndNothingDrawn) {
  const V q = leaf({3, 4}, 0), k = leaf({5, 4}, 1), v = leaf({5, 4}, 2);
  const std::string state = xgrad::get_rng_state();
  const V y = scaled_dot_product_attention(q, k, v, {}, {.dropout_p = 1});
  EXPECT_EQ(y.value(), Array<double>(Shape{3, 4}, 0.0));
  for (const V& dx : grad(sum(y), {q, k, v})) EXPECT_EQ(dx.value(), Array<double>(dx.shape(), 0.0));
  EXPECT_EQ(xgrad::get_rng_state(), state);
}

TEST(AttentionDropoutTest, RefusedCallsDrawNothing) {
  const V q = leaf({3, 4}, 0), bias = leaf({2, 2}, 1);
  const std::string state = xgrad::get_rng_state();
  EXPECT_THROW(scaled_dot_product_attention(q, q, q, bias, {.dropout_p = 0.5}), xgrad::ShapeError);
  EXPECT_EQ(xgrad::get_rng_state(), state);
}

TEST(AttentionDropoutTest, RecordingDoesNotChangeTheBits) {
  const V q = leaf({2, 9, 6}, 0), k = leaf({2, 13, 6}, 1), v = leaf({2, 13, 4}, 2);
  const AttentionOptions options{.dropout_p = 0.3, .num_heads = 2};
  xgrad::manual_seed(1);
  const V recorded = scaled_dot_product_attention(q, k, v, {}, options);
  const xgrad::NoGrad guard;
  xgrad::manual_seed(1);
  EXPECT_EQ(scaled_dot_product_attention(q, k, v, {}, options).value(), recorded.value());
}

/// The masks of a call of attention with scores (batch, heads, queries, keys).
std::vector<AttentionMask<double>> masks(std::size_t batch, std::size_t queries, std::size_t keys) {
  xgrad::Generator generator(7);
  Mask some = xgrad::uniform<double>({queries, keys}, 0, 1, generator) > 0.4;
  std::fill_n(some.data(), keys, false);  // a query that may attend to nothing
  return {AttentionMask<double>(), AttentionMask<double>(some),
          AttentionMask<double>(leaf({queries, keys}, 8)),
          AttentionMask<double>(leaf({batch, 1, 1, keys}, 9))};
}

/// The kernels keep the probabilities of short sequences, and compute those of long ones again.
TEST(AttentionDropoutTest, FusedAndComposedAgree) {
  for (const auto& [batch, queries, keys] :
       {std::array<std::size_t, 3>{2, 6, 9}, {3, 17, 8}, {1, 650, 811}}) {
    const V q = leaf({batch, queries, 6}, 0), k = leaf({batch, keys, 6}, 1), v = leaf({batch, keys, 10}, 2);
    const V seed = leaf({batch, queries, 10}, 3).detach();
    for (const bool causal : {false, true}) {
      for (const AttentionMask<double>& mask : masks(batch, queries, keys)) {
        const AttentionOptions options{.dropout_p = 0.2, .is_causal = causal, .num_heads = 2};
        xgrad::manual_seed(4);
        const V fused = scaled_dot_product_attention(q, k, v, mask, options);
        xgrad::manual_seed(4);
        const V composed = attention_with_weights(q, k, v, mask, options).output;
        EXPECT_LT(largest_difference(fused.value(), composed.value()), 1e-12);
        std::vector<V> leaves{q, k, v};
        if (mask.bias().defined()) leaves.push_back(mask.bias());
        const auto found = grad(fused, leaves, {.seed = seed}),
                   expected = grad(composed, leaves, {.seed = seed});
        for (std::size_t i = 0; i < leaves.size(); ++i)
          EXPECT_LT(largest_difference(found[i].value(), expected[i].value()), 1e-11) << "gradient " << i;
      }
    }
  }
}

TEST(AttentionDropoutTest, GradientsOfAllOrdersAreRight) {
  const auto attend = [](const std::vector<V>& x) {
    xgrad::manual_seed(6);  // the same mask in every call
    return scaled_dot_product_attention(x[0], x[1], x[2], x[3], {.dropout_p = 0.3, .num_heads = 2});
  };
  const std::vector<V> x{leaf({2, 3, 4}, 0), leaf({2, 9, 4}, 1), leaf({2, 9, 6}, 2), leaf({2, 1, 1, 9}, 3)};
  const auto first = xgrad::gradcheck(attend, x), second = xgrad::gradgradcheck(attend, x);
  EXPECT_TRUE(first) << first.worst;
  EXPECT_TRUE(second) << second.worst;

  const auto attend_to_itself = [](const std::vector<V>& x) {
    xgrad::manual_seed(6);
    return self_attention(x[0], {x[1], x[4]}, {x[2], {}}, {x[3], {}}, x[5],
                          {.dropout_p = 0.3, .is_causal = true, .num_heads = 2});
  };
  const std::vector<V> parts{leaf({2, 5, 3}, 0), leaf({4, 3}, 1), leaf({4, 3}, 2),
                             leaf({6, 3}, 3),    leaf({4}, 4),    leaf({1, 2, 1, 5}, 5)};
  const auto self_first = xgrad::gradcheck(attend_to_itself, parts),
             self_second = xgrad::gradgradcheck(attend_to_itself, parts);
  EXPECT_TRUE(self_first) << self_first.worst;
  EXPECT_TRUE(self_second) << self_second.worst;
}

/// A bias that requires a gradient takes the fused kernels, too.
TEST(AttentionTest, ABiasHasTheGradientOfTheComposedForm) {
  for (const auto& [queries, keys] : {std::pair<std::size_t, std::size_t>{6, 9}, {701, 811}}) {
    const V q = leaf({2, queries, 6}, 0), k = leaf({2, keys, 6}, 1), v = leaf({2, keys, 4}, 2);
    for (const Shape& shape :
         {Shape{2, 2, queries, keys}, Shape{queries, keys}, Shape{1, 2, 1, keys}, Shape{1}}) {
      const V bias = leaf(shape, 3), seed = leaf({2, queries, 4}, 4).detach();
      const AttentionOptions options{.num_heads = 2};
      const V fused = scaled_dot_product_attention(q, k, v, bias, options);
      const V composed = attention_with_weights(q, k, v, bias, options).output;
      const auto found = grad(fused, {bias}, {.seed = seed}),
                 expected = grad(composed, {bias}, {.seed = seed});
      EXPECT_LT(largest_difference(found[0].value(), expected[0].value()), 1e-11) << xgrad::to_string(shape);
    }
  }
}

TEST(PackedSelfAttentionTest, EachSequenceAttendsToItself) {
  const V x = leaf({9, 4}, 1);
  std::vector<V> inputs{x};
  for (std::uint64_t seed = 2; seed < 8; ++seed)
    inputs.push_back(seed % 2 == 0 ? leaf({6, 4}, seed) : leaf({6}, seed));
  const xgrad::Projection<double> q{inputs[1], inputs[2]}, k{inputs[3], inputs[4]}, v{inputs[5], inputs[6]};
  const std::vector<std::size_t> lengths{3, 0, 5, 1};
  for (const double dropout_p : {0.0, 0.4}) {
    const AttentionOptions options{.dropout_p = dropout_p, .num_heads = 2};
    xgrad::manual_seed(8);
    const V packed = xgrad::detail::packed_self_attention(x, q, k, v, lengths, options);
    xgrad::manual_seed(8);
    std::vector<V> parts;
    std::size_t row = 0;
    for (const std::size_t length : lengths) {
      const V rows = narrow(x, 0, static_cast<std::ptrdiff_t>(row), static_cast<std::ptrdiff_t>(length));
      parts.push_back(self_attention(rows, q, k, v, {}, options));
      row += length;
    }
    const V expected = cat(parts);
    EXPECT_LT(largest_difference(packed.value(), expected.value()), 1e-14);
    const auto gradients = grad(sum(expected * expected), inputs);
    const auto composed = grad(sum(packed * packed), inputs, {.retain_graph = true, .create_graph = true});
    const auto fused = grad(sum(packed * packed), inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_LT(largest_difference(fused[i].value(), gradients[i].value()), 1e-13) << i;
      EXPECT_LT(largest_difference(composed[i].value(), gradients[i].value()), 1e-13) << i;
    }
  }
}

}  // namespace attention_dropout_test
