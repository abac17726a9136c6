// What there is to test of qkv_attention.
#include <xgrad/ops/attention/qkv_attention.hpp>

#include <random>

#include <gtest/gtest.h>

#include <xgrad/base/random.hpp>
#include <xgrad/ops/index/indexing.hpp>

#include "../common/attention.hpp"
#include "../common/expect_near.hpp"

namespace xgrad_tests::qkv_attention_rows {

struct Sample {
  Shape qkv;
  Attention how = {};
  Shape bias = {};  // of the numbers added to the scores, if it has axes
};

/// The columns of q, k and v, and what is added to the scores.
Arguments apart(const Arguments& x, const Attention& how) {
  const std::size_t parts = how.q_parts() + 2 * how.kv_parts(), dim = x[0].shape().back() / parts;
  const std::size_t widths[] = {how.q_parts() * dim, how.kv_parts() * dim, how.kv_parts() * dim};
  Arguments split;
  std::size_t begin = 0;
  for (const std::size_t width : widths) {
    split.push_back(generated(with(x[0].shape(), x[0].dimension() - 1, width), [&](Shape index) {
      index.back() += begin;
      return at(x[0], index);
    }));
    begin += width;
  }
  split.insert(split.end(), x.begin() + 1, x.end());
  return split;
}

Case case_of(const Sample& sample) {
  std::vector<Input> inputs{sample.qkv};
  if (!sample.bias.empty()) inputs.push_back(sample.bias);
  const auto call = [how = sample.how](const auto& x) {
    xgrad::AttentionMask<typename std::decay_t<decltype(x[0])>::value_type> mask;
    if (how.allowed) mask = *how.allowed;
    if (x.size() > 1) mask = x[1];
    return xgrad::qkv_attention(x[0], mask, how.options());
  };
  const Reference reference = [how = sample.how](const Arguments& x) {
    return naive_attention(how)(apart(x, how));
  };
  return make_case(inputs, call, reference);
}

const Rows rows([] {
  Op op{"qkv_attention"};
  const std::vector<Sample> samples = {
      {{3, 6}},
      {{2, 3, 12}, {.heads = 2}},
      {{2, 4, 8}, {.heads = 2, .causal = true, .kv_heads = 1}},
      {{3, 6}, {.allowed = mask_of({3, 3}, {1, 0, 1, 0, 0, 0, 1, 1, 0})}},
      {{2, 3, 6}, {.heads = 2}, {2, 1, 3, 3}},
      {{5, 6}, {.heads = 1, .left = 1, .right = 1, .keys = 3}},
      {{2, 2, 4, 6}, {.causal = true, .scale = 0.3, .first = 1, .softcap = 1.5}},
      {{0, 3, 3}},
      {{0, 6}, {.heads = 2}},
      {{17, 18}, {.heads = 3}}};
  for (const Sample& sample : samples) op.cases.push_back(case_of(sample));
  op.large.push_back(case_of({{7, 41, 18}, {.heads = 4, .causal = true, .kv_heads = 1}}));
  const auto refused = [](const char* text, Shape qkv, xgrad::AttentionOptions options) {
    return error<ShapeError>(text, [=] { xgrad::qkv_attention(x(qkv), {}, options); });
  };
  op.errors = {refused("qkv_attention: qkv must be (..., L, (H + 2 G) E) for 1 heads of q and 1 of k and v, "
                       "got (6)",
                       {6}, {}),
               refused("qkv_attention: qkv must be (..., L, (H + 2 G) E) for 4 heads of q and 2 of k and v, "
                       "got (3, 12)",
                       {3, 12}, {.num_heads = 4, .num_kv_heads = 2})};
  return std::vector<Op>{op};
});

const Conformance conformance{{"qkv_attention", [](const auto& c) {
                                 return qkv_attention(c.x(), attention_mask(c, 1), attention_options(c));
                               }}};

void draw_qkv_attention(Drawing& d) {
  const std::size_t heads = d.below(5), parts = std::max<std::size_t>(heads, 1);
  const std::size_t kv_parts = heads > 0 && heads % 2 == 0 && d.chance(0.5) ? heads / 2 : parts;
  const Name drawn = d.numbers(2);
  const Shape& shape = d.shape(drawn);
  const Name x = d.numbers(with(shape, shape.size() - 1, (parts + 2 * kv_parts) * (1 + d.below(3))));
  const Shape batch(shape.begin(), shape.end() - 2);
  const std::size_t length = shape[shape.size() - 2];
  d.call("qkv_attention", {x, draw_attention_mask(d, batch, heads, length, length)},
         draw_attention_attrs(d, heads, kv_parts == parts ? 0 : kv_parts));
}

const Draws draws{{"qkv_attention", draw_qkv_attention}};

/// Rows of one array, in blocks of queries, have the bits of arrays of their own.
TEST(QkvAttentionTest, HasTheBitsOfThreeArrays) {
  constexpr std::size_t length = 300, heads = 4, kv_heads = 2, dim = 8;
  std::mt19937_64 random(0);
  const Variable<float> qkv(Array<float>(draw(Input{Shape{2, length, (heads + 2 * kv_heads) * dim}}, random)),
                            true);
  const Variable<float> seed(Array<float>(draw(Input{Shape{2, length, heads * dim}}, random)));
  const auto columns = [&](const Variable<float>& x, std::ptrdiff_t begin, std::ptrdiff_t end) {
    return narrow(x, -1, begin * std::ptrdiff_t{dim}, (end - begin) * std::ptrdiff_t{dim});
  };
  for (const double dropout_p : {0.0, 0.3}) {
    const xgrad::AttentionOptions options{.dropout_p = dropout_p,
                                          .is_causal = true,
                                          .num_heads = heads,
                                          .num_kv_heads = kv_heads,
                                          .window_left = 100};
    xgrad::manual_seed(3);
    const Variable<float> together = qkv_attention(qkv, {}, options);
    xgrad::manual_seed(3);
    const Variable<float> apart =
        scaled_dot_product_attention(columns(qkv, 0, 4), columns(qkv, 4, 6), columns(qkv, 6, 8), {}, options);
    EXPECT_EQ(together.value(), apart.value());
    EXPECT_EQ(grad(together, {qkv}, {.seed = seed})[0].value(),
              grad(apart, {qkv}, {.seed = seed})[0].value());
  }
}

}  // namespace xgrad_tests::qkv_attention_rows
