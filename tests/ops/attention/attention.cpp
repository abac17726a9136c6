// What there is to test of scaled_dot_product_attention.
#include <xgrad/ops/attention/attention.hpp>

#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include <xgrad/ops/attention/attention_with_weights.hpp>
#include <xgrad/ops/reduce/reductions.hpp>
#include <xgrad/ops/shape/shapes.hpp>

#include "../common/attention.hpp"
#include "../common/call.hpp"
#include "../common/expect_near.hpp"

namespace xgrad_tests::attention_rows {

const Rows rows([] {
  const auto attend = [](const auto& q, const auto& k, const auto& v, const auto& mask, auto options) {
    return xgrad::scaled_dot_product_attention(q, k, v, mask, options);
  };
  Op op = attention_op("attention.scaled_dot_product_attention", attend, naive_attention);
  op.large = attention_cases(large_attention_samples(), attend, naive_attention);
  return std::vector<Op>{op};
});

/// Heads (..., H, L, E) side by side, (..., L, H E), and apart again.
template <class T>
Variable<T> joined_heads(const Variable<T>& x) {
  const Variable<T> y = transpose(x, -3, -2);
  Shape shape(y.shape().begin(), y.shape().end() - 1);
  shape.back() *= y.shape().back();
  return reshape(y, shape);
}
template <class T>
Variable<T> split_heads(const Variable<T>& x, std::size_t heads) {
  Shape shape = x.shape();
  shape.back() = heads;
  shape.push_back(x.shape().back() / heads);
  return transpose(reshape(x, shape), -3, -2);
}

/// With axes of length 1 in front, as PyTorch reads a mask of fewer axes.
template <class T>
xgrad::AttentionMask<T> with_axes(const xgrad::AttentionMask<T>& mask, std::size_t axes) {
  if (mask.shape() == nullptr || mask.shape()->size() >= axes) return mask;
  Shape shape(axes, 1);
  std::copy_backward(mask.shape()->begin(), mask.shape()->end(), shape.end());
  if (mask.allowed() == nullptr) return reshape(mask.bias(), shape);
  Mask allowed = *mask.allowed();
  allowed.reshape(shape);
  return allowed;
}

/// With PyTorch's enable_gqa, heads have an axis.
const Conformance conformance{
    {"scaled_dot_product_attention", [](const auto& c) {
       xgrad::AttentionOptions options = attention_options(c);
       if (!c.has_attr("enable_gqa") || !c.flag("enable_gqa"))
         return scaled_dot_product_attention(c.x(), c.x(1), c.x(2), attention_mask(c, 3), options);
       options.num_heads = c.x().shape(-3);
       options.num_kv_heads = c.x(1).shape(-3);
       return split_heads(
           scaled_dot_product_attention(joined_heads(c.x()), joined_heads(c.x(1)), joined_heads(c.x(2)),
                                        with_axes(attention_mask(c, 3), c.x().dimension()), options),
           options.num_heads);
     }}};

void draw_attention(Drawing& d) {
  const DrawnAttention call = draw_attention_operands(d);
  d.call("scaled_dot_product_attention", call.inputs, call.attrs);
}

const Draws draws{{"scaled_dot_product_attention", draw_attention}};

TEST(AttentionTest, AQueryThatMayAttendToNothingGetsZerosAndZeroGradients) {
  const Variable<float> q(Array<float>{{1, 2}, {3, 4}}, true), k(Array<float>{{1, 0}, {0, 1}}, true),
      v(Array<float>{{5, 6}, {7, 8}}, true);
  const Mask allowed{{false, false}, {true, false}};
  for (const bool composed : {false, true}) {
    for (const Variable<float>* leaf : {&q, &k, &v}) leaf->zero_grad();
    const Variable<float> y = composed ? attention_with_weights(q, k, v, allowed).output
                                       : scaled_dot_product_attention(q, k, v, allowed);
    EXPECT_EQ(y.value(), (Array<float>{{0, 0}, {5, 6}}));
    y.backward(Variable<float>(Array<float>{{1, 1}, {1, 2}}));
    EXPECT_EQ(q.grad().value(), (Array<float>{{0, 0}, {0, 0}}));
    EXPECT_EQ(v.grad().value(), (Array<float>{{1, 2}, {0, 0}}));
  }
}

/// The third query sees the keys from 1 on, the fifth, which is nan, none of the three.
TEST(AttentionTest, AQueryBeyondTheWindowGetsZerosAndZeroGradients) {
  const Variable<float> q(Array<float>{{1, 1}, {1, 1}, {1, 1}, {1, 1}, {nan, nan}}, true),
      k(Array<float>(Shape{3, 2}, 1.0F), true), v(Array<float>{{2, 4}, {6, 8}, {10, 12}}, true);
  const Variable<float> y = scaled_dot_product_attention(q, k, v, {}, {.window_left = 1, .window_right = 0});
  EXPECT_EQ(y.value(), (Array<float>{{2, 4}, {4, 6}, {8, 10}, {10, 12}, {0, 0}}));
  y.backward(Variable<float>(Array<float>(Shape{5, 2}, 1.0F)));
  EXPECT_EQ(q.grad().value(), (Array<float>(Shape{5, 2}, 0.0F)));
  EXPECT_EQ(v.grad().value(), (Array<float>{{1.5, 1.5}, {1, 1}, {1.5, 1.5}}));
  for (const float number : k.grad().value()) EXPECT_TRUE(std::isfinite(number));
}

TEST(AttentionTest, NanInAMaskedKeyStaysOut) {
  const Variable<float> q(Array<float>{{1, 2}}, true), k(Array<float>{{1, 0}, {nan, nan}}, true),
      v(Array<float>{{5, 6}, {7, 8}}, true);
  const Variable<float> y = scaled_dot_product_attention(q, k, v, Mask{{true, false}});
  EXPECT_EQ(y.value(), (Array<float>{{5, 6}}));
}

/// Every mask that broadcasts to scores with two batch axes, one of them perhaps of length 1.
TEST(AttentionTest, FusedAndComposedAgreeForEveryMask) {
  for (const auto& [first, second] : {std::pair<std::size_t, std::size_t>{2, 1}, {1, 2}, {2, 3}, {1, 1}}) {
    for (const std::size_t heads : {0, 1, 2}) {
      Shape scores{first, second};
      if (heads > 0) scores.push_back(heads);
      scores.push_back(3);
      scores.push_back(4);
      std::mt19937_64 random(heads);
      const std::size_t width = 2 * std::max<std::size_t>(heads, 1);
      const Variable<double> q(draw(Input{Shape{first, second, 3, width}}, random)),
          k(draw(Input{Shape{first, second, 4, width}}, random)),
          v(draw(Input{Shape{first, second, 4, width}}, random));
      for (std::size_t kept = 0; kept < std::size_t{1} << scores.size(); ++kept) {
        Shape shape = scores;
        for (std::size_t axis = 0; axis < shape.size(); ++axis) {
          if ((kept >> axis & 1) == 0) shape[axis] = 1;
        }
        const Array<double> bias = draw(Input{shape}, random);
        const Mask allowed = bias > -1.0;
        for (const bool causal : {false, true}) {
          const xgrad::AttentionOptions options{.is_causal = causal, .num_heads = heads};
          for (const xgrad::AttentionMask<double>& mask :
               {xgrad::AttentionMask<double>(allowed),
                xgrad::AttentionMask<double>(Variable<double>(bias))}) {
            expect_near(scaled_dot_product_attention(q, k, v, mask, options).value(),
                        attention_with_weights(q, k, v, mask, options).output.value(), 1e-12,
                        xgrad::to_string(shape).c_str());
          }
        }
      }
    }
  }
}

/// Where the scores of a head are too many to be kept, the backward computes them again, block by block.
TEST(AttentionTest, LongSequencesAgreeWithTheComposedForm) {
  constexpr std::size_t queries = 650, keys = 811, heads = 2;
  std::mt19937_64 random(0);
  const auto leaf = [&](std::size_t rows, std::size_t width) {
    return Variable<double>(draw(Input{Shape{1, rows, width}}, random), true);
  };
  const Variable<double> q = leaf(queries, heads * 3), k = leaf(keys, heads * 3), v = leaf(keys, heads * 5);
  const Variable<double> seed(draw(Input{Shape{1, queries, heads * 5}}, random));
  const Array<double> full = draw(Input{Shape{1, 1, queries, keys}}, random);
  Mask some = full > 0.0, padding = Mask::from_shape({1, 1, 1, keys});
  std::fill_n(some.data() + 7 * keys, keys, false);  // a query that may attend to nothing
  for (std::size_t key = 0; key < keys; ++key) padding(0, 0, 0, key) = key < 600;
  for (const bool causal : {false, true}) {
    for (const xgrad::AttentionMask<double>& mask :
         {xgrad::AttentionMask<double>(), xgrad::AttentionMask<double>(some),
          xgrad::AttentionMask<double>(padding), xgrad::AttentionMask<double>(Variable<double>(full))}) {
      const xgrad::AttentionOptions options{.is_causal = causal, .num_heads = heads};
      const Variable<double> fused = scaled_dot_product_attention(q, k, v, mask, options);
      const Variable<double> composed = attention_with_weights(q, k, v, mask, options).output;
      expect_near(fused.value(), composed.value(), 1e-12, "y");
      const auto found = grad(fused, {q, k, v}, {.seed = seed});
      const auto expected = grad(composed, {q, k, v}, {.seed = seed});
      for (std::size_t i = 0; i < 3; ++i)
        expect_near(found[i].value(), expected[i].value(), 1e-11, "dq, dk or dv");
    }
  }
}

/// A query whose keys are all masked by a large number, as some do, attends to them equally.
TEST(AttentionTest, LongSequencesTakeLargeBiases) {
  constexpr std::size_t length = 736;
  std::mt19937_64 random(0);
  const auto leaf = [&] {
    return Variable<float>(Array<float>(draw(Input{Shape{length, 4}}, random)), true);
  };
  const Variable<float> q = leaf(), k = leaf(), v = leaf();
  Array<float> bias = xt::zeros<float>({length, length});
  std::fill_n(bias.data() + 5 * length, length, -1e9f);
  const auto found = grad(sum(scaled_dot_product_attention(q, k, v, Variable<float>(bias))), {q, k, v});
  const auto expected = grad(sum(attention_with_weights(q, k, v, Variable<float>(bias)).output), {q, k, v});
  for (std::size_t i = 0; i < 3; ++i)
    expect_near(found[i].value(), expected[i].value(), 1e-4, "dq, dk or dv");
}

TEST(AttentionTest, TheScaleMultipliesTheScoresBeforeTheBias) {
  const Variable<double> q(Array<double>{{2, 0}}), k(Array<double>{{1, 9}, {3, 9}}),
      v(Array<double>{{0, 0}, {1, 2}}), bias(Array<double>{{5, 4}});
  const double weight = 1 / (1 + std::exp((0.5 * 2 * 1 + 5) - (0.5 * 2 * 3 + 4)));
  for (const bool composed : {false, true}) {
    const Variable<double> y = composed ? attention_with_weights(q, k, v, bias, {.scale = 0.5}).output
                                        : scaled_dot_product_attention(q, k, v, bias, {.scale = 0.5});
    EXPECT_NEAR(y.value()(0, 0), weight, 1e-15);
    EXPECT_NEAR(y.value()(0, 1), 2 * weight, 1e-15);
  }
}

TEST(AttentionTest, ABiasChangedInPlaceIsNoticed) {
  const Variable<double> q(Array<double>{{1, 2}}, true), bias(Array<double>(Shape{1, 1}, 0.5));
  const Variable<double> y = scaled_dot_product_attention(q, q, q, bias);
  bias.assign(Array<double>(Shape{1, 1}, 2.0));
  EXPECT_NE(message_of<xgrad::GraphError>([&] { sum(y).backward(); }).find("was changed in place"),
            std::string::npos);
}

}  // namespace xgrad_tests::attention_rows
