// What there is to test and to measure of attention.
#include <xgrad/ops/attention.hpp>
#include <xgrad/ops/attention_with_weights.hpp>
#include <xgrad/ops/self_attention.hpp>

#ifndef XGRAD_BENCH_OPS

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

#include <gtest/gtest.h>

#include <xgrad/ops/reductions.hpp>

#include "common/call.hpp"
#include "common/expect_near.hpp"
#include "common/naive.hpp"
#include "common/op.hpp"

namespace xgrad_tests {
namespace {

using naive::at, naive::filled, naive::for_each_index, naive::generated, naive::joined, naive::reshaped,
    naive::with, naive::without, naive::Numbers, naive::Arguments;

/// How q, k and v attend; a fourth input is added to the scores.
struct Attention {
  std::size_t heads = 0;
  bool causal = false;
  std::optional<double> scale = {};
  std::optional<xgrad::Mask> allowed = {};
};

/// The weights (..., H, L, S) of q, k, v and perhaps a bias; zeros where a query may attend to nothing.
Numbers weights_of(const Arguments& x, const Attention& how) {
  const Numbers &q = x[0], &k = x[1];
  const std::size_t H = std::max<std::size_t>(how.heads, 1), rank = q.dimension();
  const std::size_t L = q.shape()[rank - 2], S = k.shape()[rank - 2], E = q.shape().back() / H;
  const Shape batch(q.shape().begin(), q.shape().end() - 2);
  const double scale = how.scale.value_or(1 / std::sqrt(static_cast<double>(E)));
  Numbers weights = filled(joined(batch, {H, L, S}), 0);
  for_each_index(joined(batch, {H, L}), [&](const Shape& row) {
    const Shape place(row.begin(), row.end() - 2);
    const std::size_t h = row[row.size() - 2], i = row.back();
    std::vector<double> weight(S, 0);
    double total = 0;
    for (std::size_t j = 0; j < S; ++j) {
      const Shape score_index = how.heads > 0 ? joined(place, {h, i, j}) : joined(place, {i, j});
      if (how.causal && j > i) continue;
      if (how.allowed && !at(*how.allowed, score_index)) continue;
      double score = 0;
      for (std::size_t e = h * E; e < (h + 1) * E; ++e)
        score += at(q, joined(place, {i, e})) * at(k, joined(place, {j, e}));
      score = score * scale + (x.size() > 3 ? at(x[3], score_index) : 0);
      weight[j] = std::exp(score);
      total += weight[j];
    }
    for (std::size_t j = 0; j < S; ++j) at(weights, joined(row, {j})) = total > 0 ? weight[j] / total : 0;
  });
  return weights;
}

Reference naive_attention(Attention how) {
  return [how](const Arguments& x) {
    const Numbers weights = weights_of(x, how);
    const Numbers& v = x[2];
    const std::size_t H = std::max<std::size_t>(how.heads, 1), Ev = v.shape().back() / H;
    return generated(with(x[0].shape(), x[0].dimension() - 1, v.shape().back()), [&](const Shape& index) {
      const Shape place(index.begin(), index.end() - 2);
      const std::size_t i = index[index.size() - 2], e = index.back();
      double total = 0;
      for (std::size_t j = 0; j < v.shape()[v.dimension() - 2]; ++j)
        total += at(weights, joined(place, {e / Ev, i, j})) * at(v, joined(place, {j, e}));
      return total;
    });
  };
}

Reference naive_attention_weights(Attention how) {
  return [how](const Arguments& x) {
    const Numbers weights = weights_of(x, how);
    return how.heads > 0 ? weights : reshaped(weights, without(weights.shape(), weights.dimension() - 3));
  };
}

struct AttentionSample {
  Shape q, k, v;
  Attention how;
  Shape bias = {};  // of the numbers added to the scores, if it has axes
};

std::vector<AttentionSample> attention_samples() {
  const Mask padding = mask_of({1, 4}, {1, 1, 0, 1}),
             some = mask_of({3, 4}, {1, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0});
  return {{{3, 2}, {4, 2}, {4, 5}, {}},
          {{2, 3, 2}, {2, 4, 2}, {2, 4, 5}, {}},
          {{3, 2}, {3, 2}, {3, 2}, {}},
          {{2, 2, 3, 2}, {2, 2, 4, 2}, {2, 2, 4, 2}, {}},
          {{3, 2}, {4, 2}, {4, 2}, {.causal = true}},
          {{4, 2}, {3, 2}, {3, 2}, {.causal = true, .scale = 0.3}},
          {{3, 2}, {4, 2}, {4, 2}, {.allowed = padding}},
          {{3, 2}, {4, 2}, {4, 2}, {.allowed = some}},
          {{2, 3, 2}, {2, 4, 2}, {2, 4, 2}, {.allowed = some}},
          {{2, 3, 2}, {2, 4, 2}, {2, 4, 2}, {.allowed = mask_of({2, 1, 4}, {1, 1, 1, 0, 0, 0, 0, 0})}},
          {{3, 2}, {4, 2}, {4, 2}, {.causal = true, .allowed = some}},
          {{2, 3, 4}, {2, 4, 4}, {2, 4, 6}, {.heads = 2}},
          {{3, 4}, {4, 4}, {4, 4}, {.heads = 4, .causal = true}},
          {{2, 3, 2},
           {2, 4, 2},
           {2, 4, 2},
           {.heads = 1, .allowed = mask_of({2, 1, 1, 4}, {1, 1, 1, 0, 0, 0, 0, 0})}},
          {{2, 3, 4},
           {2, 4, 4},
           {2, 4, 4},
           {.heads = 2, .allowed = mask_of({2, 1, 1, 4}, {1, 1, 1, 0, 0, 0, 0, 0})}},
          {{2, 3, 4}, {2, 4, 4}, {2, 4, 4}, {.heads = 2, .allowed = mask_of({2, 3, 1}, {1, 0, 1, 1, 1, 0})}},
          {{2, 2, 3, 4},
           {2, 2, 4, 4},
           {2, 2, 4, 4},
           {.heads = 2, .allowed = mask_of({2, 1, 1, 1, 4}, {1, 1, 1, 0, 0, 1, 1, 0})}},
          {{2, 2, 3, 4},
           {2, 2, 4, 4},
           {2, 2, 4, 4},
           {.heads = 2, .allowed = mask_of({2, 1, 1, 4}, {1, 1, 1, 0, 0, 1, 1, 0})}},
          {{3, 2}, {4, 2}, {4, 2}, {}, {3, 4}},
          {{2, 3, 4}, {2, 4, 4}, {2, 4, 4}, {.heads = 2}, {2, 1, 4}},
          {{2, 3, 4}, {2, 4, 4}, {2, 4, 4}, {.heads = 2, .causal = true}, {2, 1, 1, 4}},
          {{0, 3, 2}, {0, 4, 2}, {0, 4, 2}, {}},
          {{0, 2}, {4, 2}, {4, 2}, {}},
          {{3, 2}, {0, 2}, {0, 2}, {}},
          {{17, 6}, {19, 6}, {19, 6}, {.heads = 2}}};
}

/// f is given q, k, v, the mask and the options.
template <class F>
Op attention_op(const char* name, const F& f, Reference (*reference)(Attention)) {
  Op op{name};
  for (const AttentionSample& sample : attention_samples()) {
    std::vector<Input> inputs{sample.q, sample.k, sample.v};
    if (!sample.bias.empty()) inputs.push_back(sample.bias);
    const auto call = [f, how = sample.how](const auto& x) {
      xgrad::AttentionMask<typename std::decay_t<decltype(x[0])>::value_type> mask;
      if (how.allowed) mask = *how.allowed;
      if (x.size() > 3) mask = x[3];
      return f(x[0], x[1], x[2], mask,
               xgrad::AttentionOptions{.is_causal = how.causal, .scale = how.scale, .num_heads = how.heads});
    };
    op.cases.push_back(make_case(inputs, call, reference(sample.how)));
  }
  const auto refused = [f](std::string text, Shape q, Shape k, Shape v, xgrad::AttentionMask<float> mask = {},
                           xgrad::AttentionOptions options = {}) {
    return error<ShapeError>("scaled_dot_product_attention: " + text,
                             [=] { f(x(q), x(k), x(v), mask, options); });
  };
  const std::string fit = "q (..., L, E), k (..., S, E) and v (..., S, Ev) must fit together, got q ";
  op.errors = {refused(fit + "(3, 2), k (4, 3) and v (4, 2)", {3, 2}, {4, 3}, {4, 2}),
               refused(fit + "(3, 2), k (4, 2) and v (3, 2)", {3, 2}, {4, 2}, {3, 2}),
               refused(fit + "(2), k (4, 2) and v (4, 2)", {2}, {4, 2}, {4, 2}),
               refused(fit + "(2, 3, 2), k (1, 4, 2) and v (2, 4, 2)", {2, 3, 2}, {1, 4, 2}, {2, 4, 2}),
               refused("the last axes of q and v must be divisible by num_heads 2, got q (3, 3) and v (4, 3)",
                       {3, 3}, {4, 3}, {4, 3}, {}, {.num_heads = 2}),
               refused("attn_mask must broadcast to the scores (3, 4), got (2, 3, 4)", {3, 2}, {4, 2}, {4, 2},
                       Mask(Shape{2, 3, 4}, true)),
               refused("shapes must broadcast, got the scores (3, 4) and attn_mask (3)", {3, 2}, {4, 2},
                       {4, 2}, Mask(Shape{3}, true)),
               refused("shapes must broadcast, got the scores (3, 4) and attn_mask (5)", {3, 2}, {4, 2},
                       {4, 2}, x(5))};
  return op;
}

Op self_attention_op() {
  struct Sample {
    Shape x;
    std::size_t out, v_out;
    bool biases;
    Attention how = {};
    Shape bias = {};  // of the numbers added to the scores, if it has axes
  };
  const Mask some = mask_of({3, 3}, {1, 0, 1, 0, 0, 0, 1, 1, 0});
  const std::vector<Sample> samples = {
      {{3, 2}, 2, 2, false},
      {{3, 2}, 4, 5, true},
      {{2, 3, 2}, 4, 6, true, {.heads = 2}},
      {{2, 3, 4}, 4, 4, false, {.heads = 2, .allowed = mask_of({2, 1, 1, 3}, {1, 1, 0, 0, 0, 0})}},
      {{2, 2, 3, 4}, 4, 4, true, {.heads = 4, .causal = true, .scale = 0.3}},
      {{3, 2}, 2, 3, true, {.allowed = some}},
      {{2, 3, 2}, 4, 4, true, {.heads = 2}, {2, 1, 3}},
      {{0, 3, 2}, 2, 2, true},
      {{2, 0, 2}, 2, 2, true},
      {{17, 6}, 10, 6, true, {.heads = 2}}};
  Op op{"self_attention"};
  for (const Sample& sample : samples) {
    const std::size_t in = sample.x.back();
    std::vector<Input> inputs{sample.x, Shape{sample.out, in}, Shape{sample.out, in},
                              Shape{sample.v_out, in}};
    if (sample.biases) {
      for (const std::size_t length : {sample.out, sample.out, sample.v_out}) inputs.push_back(Shape{length});
    }
    const std::size_t projections = inputs.size();
    if (!sample.bias.empty()) inputs.push_back(sample.bias);
    const auto call = [how = sample.how, biases = sample.biases, projections](const auto& x) {
      using V = typename std::decay_t<decltype(x)>::value_type;
      xgrad::AttentionMask<typename V::value_type> mask;
      if (how.allowed) mask = *how.allowed;
      if (x.size() > projections) mask = x.back();
      const auto bias = [&](std::size_t part) { return biases ? x[4 + part] : V(); };
      return xgrad::self_attention(
          x[0], {x[1], bias(0)}, {x[2], bias(1)}, {x[3], bias(2)}, mask,
          xgrad::AttentionOptions{.is_causal = how.causal, .scale = how.scale, .num_heads = how.heads});
    };
    const Reference reference = [how = sample.how, biases = sample.biases, projections](const auto& x) {
      std::decay_t<decltype(x)> attended;
      for (std::size_t part = 0; part < 3; ++part) {
        std::decay_t<decltype(x)> operands{x[0], x[1 + part]};
        if (biases) operands.push_back(x[4 + part]);
        attended.push_back(naive::linear()(operands));
      }
      if (x.size() > projections) attended.push_back(x.back());
      return naive_attention(how)(attended);
    };
    op.cases.push_back(make_case(inputs, call, reference));
  }
  op.errors = {
      error<ShapeError>(
          "self_attention: x must be (..., L, in) and the weight of k (out, in), got x (3, 2) and "
          "weight (2, 3)",
          [] {
            xgrad::self_attention(x(3, 2), {x(2, 2), {}}, {x(2, 3), {}}, {x(2, 2), {}});
          }),
      error<ShapeError>("self_attention: the bias of v must be (2), got (3)",
                        [] {
                          xgrad::self_attention(x(3, 2), {x(2, 2), {}}, {x(2, 2), {}}, {x(2, 2), x(3)});
                        }),
      error<ShapeError>(
          "self_attention: the last axes of q and v must be divisible by num_heads "
          "2, got q (3, 3) and v (3, 2)",
          [] {
            xgrad::self_attention(x(3, 2), {x(3, 2), {}}, {x(3, 2), {}}, {x(2, 2), {}}, {}, {.num_heads = 2});
          })};
  return op;
}

const Rows rows([] {
  return std::vector<Op>{self_attention_op(),
                         attention_op(
                             "attention.scaled_dot_product_attention",
                             [](const auto& q, const auto& k, const auto& v, const auto& mask, auto options) {
                               return xgrad::scaled_dot_product_attention(q, k, v, mask, options);
                             },
                             naive_attention),
                         attention_op(
                             "attention_with_weights",
                             [](const auto& q, const auto& k, const auto& v, const auto& mask, auto options) {
                               return xgrad::attention_with_weights(q, k, v, mask, options).output;
                             },
                             naive_attention),
                         attention_op(
                             "attention_with_weights.weights",
                             [](const auto& q, const auto& k, const auto& v, const auto& mask, auto options) {
                               return xgrad::attention_with_weights(q, k, v, mask, options).weights;
                             },
                             naive_attention_weights)};
});

const Conformance conformance{{"scaled_dot_product_attention", []<class T>(const Call<T>& c) {
                                 xgrad::AttentionOptions options{.is_causal = c.flag("is_causal")};
                                 if (c.has_attr("scale")) options.scale = c.number("scale");
                                 xgrad::AttentionMask<T> mask;
                                 if (c.has(3))
                                   mask = c.is_mask(3) ? xgrad::AttentionMask<T>(c.mask(3))
                                                       : xgrad::AttentionMask<T>(c.x(3));
                                 return scaled_dot_product_attention(c.x(), c.x(1), c.x(2), mask, options);
                               }}};

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

TEST(AttentionTest, NanInAMaskedKeyStaysOut) {
  const Variable<float> q(Array<float>{{1, 2}}, true), k(Array<float>{{1, 0}, {nan, nan}}, true),
      v(Array<float>{{5, 6}, {7, 8}}, true);
  const Variable<float> y = scaled_dot_product_attention(q, k, v, Mask{{true, false}});
  EXPECT_EQ(y.value(), (Array<float>{{5, 6}}));
}

TEST(AttentionTest, WeightsSumToOneAndDropoutIsAppliedToThem) {
  const Variable<float> q(Array<float>{{1, 2}, {0, 1}}), k(Array<float>{{1, 0}, {0, 1}}),
      v(Array<float>{{1, 1}, {1, 1}});
  const auto result = attention_with_weights(q, k, v);
  expect_near(sum(result.weights, -1).value(), Array<float>{1, 1}, 1e-6, "weights");
  const auto dropped = attention_with_weights(q, k, v, {}, {.dropout_p = 1});
  EXPECT_EQ(dropped.output.value(), (Array<float>{{0, 0}, {0, 0}}));
  EXPECT_EQ(
      message_of<xgrad::ValueError>([&] { scaled_dot_product_attention(q, k, v, {}, {.dropout_p = 2}); }),
      "scaled_dot_product_attention: dropout_p must be in [0, 1], got 2");
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

TEST(AttentionTest, ABiasChangedInPlaceIsNoticed) {
  const Variable<double> q(Array<double>{{1, 2}}, true), bias(Array<double>(Shape{1, 1}, 0.5));
  const Variable<double> y = scaled_dot_product_attention(q, q, q, bias);
  bias.assign(Array<double>(Shape{1, 1}, 2.0));
  EXPECT_NE(message_of<xgrad::GraphError>([&] { sum(y).backward(); }).find("was changed in place"),
            std::string::npos);
}

TEST(SelfAttentionTest, ProjectionBiasesMayChangeBeforeBackward) {
  const Variable<double> x(Array<double>{{1, 2}, {3, 4}}, true), w(Array<double>{{1, 0}, {0, 1}}, true),
      bias(Array<double>{0.5, 1}, true);
  const auto attend = [&] {
    return sum(self_attention(x, {w, bias}, {w, bias}, {w, bias}, {}, {.num_heads = 1}));
  };
  const auto expected = grad(attend(), {x, w, bias});
  const Variable<double> y = attend();
  bias.assign(Array<double>{2, 3});
  const auto found = grad(y, {x, w, bias}, {.retain_graph = true});
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(found[i].value(), expected[i].value());
  EXPECT_NE(message_of<xgrad::GraphError>([&] {
              grad(y, {x}, {.create_graph = true});
            }).find("was changed in place"),
            std::string::npos);
}

}  // namespace
}  // namespace xgrad_tests

#else  // bench_ops

#include "common/bench.hpp"

namespace bench {
namespace {

const Rows rows("attention", [](const Sizes& s) -> std::vector<Row> {
  const std::size_t key = std::min<std::size_t>(s.columns, 64),
                    length = std::min<std::size_t>(s.n / key, 500);
  const Shape queries{s.n / (length * key), length, key};
  return {
      {"scaled_dot_product_attention",
       {{queries}, {queries}, {queries}},
       [](auto& a) { return scaled_dot_product_attention(a[0], a[1], a[2]); },
       [scale = 1 / std::sqrt(static_cast<double>(key))](auto& a) {
         return matmul(softmax(matmul(a[0] * scale, a[1].transpose(-2, -1)), -1), a[2]);
       }},
      {"scaled_dot_product_attention, dropout 0.1",
       {{queries}, {queries}, {queries}},
       [](auto& a) { return scaled_dot_product_attention(a[0], a[1], a[2], {}, {.dropout_p = 0.1}); },
       [scale = 1 / std::sqrt(static_cast<double>(key))](auto& a) {
         return matmul(dropout(softmax(matmul(a[0] * scale, a[1].transpose(-2, -1)), -1), 0.1, true), a[2]);
       }},
  };
});

}  // namespace
}  // namespace bench

#endif
