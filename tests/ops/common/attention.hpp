#pragma once

// What the tests of attention's ops share: its naive reference, and the rows of those that take q, k and v.

#include <algorithm>
#include <cmath>
#include <optional>

#include <xgrad/ops/attention/attention.hpp>

#include "call.hpp"
#include "draw.hpp"
#include "naive.hpp"
#include "op.hpp"

namespace xgrad_tests {

using naive::at, naive::filled, naive::for_each_index, naive::generated, naive::joined, naive::reshaped,
    naive::with, naive::without, naive::Numbers, naive::Arguments;

/// How q, k and v attend; a fourth input is added to the scores.
struct Attention {
  std::size_t heads = 0;
  bool causal = false;
  std::optional<double> scale = {};
  std::optional<xgrad::Mask> allowed = {};
  std::size_t kv_heads = 0;
  std::optional<std::size_t> left = {}, right = {};  // of the window
  std::size_t first = 0;                             // place of the first query
  std::optional<std::size_t> keys = {};              // how many rows of k and v are keys
  std::optional<double> softcap = {};

  std::size_t q_parts() const { return std::max<std::size_t>(heads, 1); }
  std::size_t kv_parts() const { return kv_heads > 0 ? kv_heads : q_parts(); }
  xgrad::AttentionOptions options() const {
    return {.is_causal = causal,
            .scale = scale,
            .num_heads = heads,
            .num_kv_heads = kv_heads,
            .window_left = left,
            .window_right = right,
            .first_query = first,
            .num_keys = keys,
            .softcap = softcap};
  }
};

/// The weights (..., H, L, S) of q, k, v and perhaps a bias; zeros where a query may attend to nothing.
inline Numbers weights_of(const Arguments& x, const Attention& how) {
  const Numbers &q = x[0], &k = x[1];
  const std::size_t H = how.q_parts(), shared = H / how.kv_parts(), rank = q.dimension();
  const std::size_t L = q.shape()[rank - 2], S = how.keys.value_or(k.shape()[rank - 2]),
                    E = q.shape().back() / H;
  const Shape batch(q.shape().begin(), q.shape().end() - 2);
  const double scale = how.scale.value_or(1 / std::sqrt(static_cast<double>(E)));
  Numbers weights = filled(joined(batch, {H, L, S}), 0);
  for_each_index(joined(batch, {H, L}), [&](const Shape& row) {
    const Shape place(row.begin(), row.end() - 2);
    const std::size_t h = row[row.size() - 2], i = row.back();
    const std::size_t at_key = how.first + i;  // where the query stands
    std::vector<double> weight(S, 0);
    double total = 0;
    for (std::size_t j = 0; j < S; ++j) {
      const Shape score_index = how.heads > 0 ? joined(place, {h, i, j}) : joined(place, {i, j});
      if (how.causal && j > at_key) continue;
      if (how.left && j + *how.left < at_key) continue;
      if (how.right && j > at_key + *how.right) continue;
      if (how.allowed && !at(*how.allowed, score_index)) continue;
      double score = 0;
      for (std::size_t e = 0; e < E; ++e)
        score += at(q, joined(place, {i, h * E + e})) * at(k, joined(place, {j, h / shared * E + e}));
      score *= scale;
      if (how.softcap) score = *how.softcap * std::tanh(score / *how.softcap);
      if (x.size() > 3) score += at(x[3], score_index);
      weight[j] = std::exp(score);
      total += weight[j];
    }
    for (std::size_t j = 0; j < S; ++j) at(weights, joined(row, {j})) = total > 0 ? weight[j] / total : 0;
  });
  return weights;
}

inline Reference naive_attention(Attention how) {
  return [how](const Arguments& x) {
    const Numbers weights = weights_of(x, how);
    const Numbers& v = x[2];
    const std::size_t H = how.q_parts(), shared = H / how.kv_parts(), Ev = v.shape().back() / how.kv_parts();
    return generated(with(x[0].shape(), x[0].dimension() - 1, H * Ev), [&](const Shape& index) {
      const Shape place(index.begin(), index.end() - 2);
      const std::size_t i = index[index.size() - 2], h = index.back() / Ev, e = index.back() % Ev;
      double total = 0;
      for (std::size_t j = 0; j < weights.shape().back(); ++j)
        total += at(weights, joined(place, {h, i, j})) * at(v, joined(place, {j, h / shared * Ev + e}));
      return total;
    });
  };
}

inline Reference naive_attention_weights(Attention how) {
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

inline std::vector<AttentionSample> attention_samples() {
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
          {{3, 3, 2}, {3, 4, 2}, {3, 4, 2}, {.allowed = some}},
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
          {{2, 3, 4}, {2, 4, 4}, {2, 4, 4}, {.heads = 2}, {1, 2, 1, 4}},
          {{3, 3, 4}, {3, 4, 4}, {3, 4, 4}, {.heads = 2}, {2, 1, 4}},
          {{2, 3, 4}, {2, 4, 4}, {2, 4, 4}, {.heads = 2, .causal = true}, {2, 1, 1, 4}},
          {{0, 3, 2}, {0, 4, 2}, {0, 4, 2}, {}},
          {{0, 2}, {4, 2}, {4, 2}, {}},
          {{3, 2}, {0, 2}, {0, 2}, {}},
          {{17, 6}, {19, 6}, {19, 6}, {.heads = 2}},
          {{2, 3, 8}, {2, 5, 4}, {2, 5, 6}, {.heads = 4, .kv_heads = 2}},
          {{3, 6}, {4, 2}, {4, 2}, {.heads = 3, .causal = true, .kv_heads = 1}, {3, 1, 4}},
          {{5, 2}, {5, 2}, {5, 3}, {.left = 1, .right = 1}},
          {{5, 2}, {7, 2}, {7, 2}, {.heads = 1, .right = 2}},
          {{2, 7, 4}, {2, 3, 4}, {2, 3, 4}, {.heads = 2, .left = 2}},
          {{6, 4}, {6, 2}, {6, 2}, {.heads = 2, .causal = true, .kv_heads = 1, .left = 0}},
          {{3, 2}, {4, 2}, {4, 2}, {.allowed = some, .left = 1}},
          {{4, 2}, {4, 2}, {4, 2}, {.left = 2, .right = 0}, {4, 4}}};
}

/// Queries that do not begin with the first key, rows of k and v that are no keys, and capped scores.
inline std::vector<AttentionSample> placed_attention_samples() {
  const Mask some = mask_of({3, 2}, {1, 0, 1, 1, 0, 0});
  const auto placed = [](std::size_t first, std::optional<std::size_t> keys, Attention how = {}) {
    how.first = first;
    how.keys = keys;
    return how;
  };
  const auto capped = [](double softcap, Attention how = {}) {
    how.softcap = softcap;
    return how;
  };
  const Attention window{.heads = 2, .causal = true, .scale = 2, .left = 2};
  return {{{2, 2}, {5, 2}, {5, 3}, placed(3, {}, {.causal = true})},
          {{2, 3, 4}, {2, 6, 2}, {2, 6, 2}, placed(1, 4, {.heads = 2, .causal = true, .kv_heads = 1})},
          {{2, 1, 4}, {2, 6, 4}, {2, 6, 6}, placed(2, 3, {.heads = 2, .causal = true, .left = 1})},
          {{3, 2}, {4, 2}, {4, 2}, placed(7, 2, {.allowed = some})},
          {{3, 2}, {4, 2}, {4, 2}, placed(4, {}, {.left = 1, .right = 0})},
          {{3, 2}, {4, 2}, {4, 2}, placed(0, 0)},
          {{3, 2}, {4, 2}, {4, 3}, capped(0.7)},
          {{2, 3, 4}, {2, 4, 2}, {2, 4, 2}, capped(1.5, {.heads = 2, .kv_heads = 1}), {2, 1, 3, 4}},
          {{3, 2}, {2, 2}, {2, 2}, capped(2, {.allowed = some})},
          {{4, 4}, {6, 4}, {6, 4}, capped(0.5, placed(2, 5, window))}};
}

/// Heads that are shared out, several and one at a time, and queries that are worked on in blocks.
inline std::vector<AttentionSample> large_attention_samples() {
  return {
      {{7, 40, 12}, {7, 41, 12}, {7, 41, 9}, {.heads = 3}},
      {{5, 61, 6}, {5, 103, 6}, {5, 103, 4}, {.heads = 2, .causal = true}, {2, 61, 103}},
      {{3, 70, 1}, {3, 5003, 1}, {3, 5003, 1}, {.allowed = scattered_mask({3, 1, 5003})}},
      {{1, 140, 2}, {1, 4001, 2}, {1, 4001, 1}, {.causal = true}},
      {{3, 90, 8}, {3, 91, 4}, {3, 91, 2}, {.heads = 4, .kv_heads = 2}},
      {{1, 150, 4}, {1, 4001, 2}, {1, 4001, 2}, {.heads = 2, .kv_heads = 1, .left = 40, .right = 30}},
      {{2, 150, 4},
       {2, 1701, 2},
       {2, 1701, 2},
       {.heads = 2, .causal = true, .kv_heads = 1, .left = 900, .first = 1450, .keys = 1600, .softcap = 3}}};
}

/// f is given q, k, v, the mask and the options.
template <class F>
std::vector<Case> attention_cases(const std::vector<AttentionSample>& samples, const F& f,
                                  Reference (*reference)(Attention)) {
  std::vector<Case> cases;
  for (const AttentionSample& sample : samples) {
    std::vector<Input> inputs{sample.q, sample.k, sample.v};
    if (!sample.bias.empty()) inputs.push_back(sample.bias);
    const auto call = [f, how = sample.how](const auto& x) {
      xgrad::AttentionMask<typename std::decay_t<decltype(x[0])>::value_type> mask;
      if (how.allowed) mask = *how.allowed;
      if (x.size() > 3) mask = x[3];
      return f(x[0], x[1], x[2], mask, how.options());
    };
    cases.push_back(make_case(inputs, call, reference(sample.how)));
  }
  return cases;
}

template <class F>
Op attention_op(const char* name, const F& f, Reference (*reference)(Attention)) {
  Op op{name, attention_cases(attention_samples(), f, reference)};
  for (Case& placed : attention_cases(placed_attention_samples(), f, reference))
    op.cases.push_back(std::move(placed));
  const auto refused = [f](std::string text, Shape q, Shape k, Shape v, xgrad::AttentionMask<float> mask = {},
                           xgrad::AttentionOptions options = {}) {
    return error<ShapeError>("scaled_dot_product_attention: " + text,
                             [=] { f(x(q), x(k), x(v), mask, options); });
  };
  const std::string fit = "q (..., L, E), k (..., S, E) and v (..., S, Ev) must fit together, got q ";
  const auto refused_value = [f](std::string text, xgrad::AttentionOptions options) {
    return error<ValueError>("scaled_dot_product_attention: " + text,
                             [=] { f(x(3, 2), x(4, 2), x(4, 2), xgrad::AttentionMask<float>(), options); });
  };
  op.errors = {
      refused_value("num_keys must be at most the rows of k and v, got 5 and k (4, 2)", {.num_keys = 5}),
      refused_value("softcap must be above 0 and finite, got 0", {.softcap = 0}),
      refused_value("softcap must be above 0 and finite, got nan", {.softcap = nan}),
      refused_value("num_kv_heads must divide num_heads, got num_kv_heads 2 and num_heads 1",
                    {.num_heads = 1, .num_kv_heads = 2}),
      refused("attn_mask must broadcast to the scores (3, 2), got (3, 4)", {3, 2}, {4, 2}, {4, 2},
              Mask(Shape{3, 4}, true), {.num_keys = 2}),
      refused(fit + "(3, 2), k (4, 3) and v (4, 2)", {3, 2}, {4, 3}, {4, 2}),
      refused(fit + "(3, 2), k (4, 2) and v (3, 2)", {3, 2}, {4, 2}, {3, 2}),
      refused(fit + "(2), k (4, 2) and v (4, 2)", {2}, {4, 2}, {4, 2}),
      refused(fit + "(2, 3, 2), k (1, 4, 2) and v (2, 4, 2)", {2, 3, 2}, {1, 4, 2}, {2, 4, 2}),
      refused(fit + "(2, 3, 2), k (2, 4, 2) and v (1, 4, 2)", {2, 3, 2}, {2, 4, 2}, {1, 4, 2}),
      refused("the last axes of q and v must be divisible by num_heads 2, got q (3, 3) and v (4, 3)", {3, 3},
              {4, 3}, {4, 3}, {}, {.num_heads = 2}),
      refused(fit + "(3, 8), k (4, 8) and v (4, 4), with 4 heads of q and 2 of k and v", {3, 8}, {4, 8},
              {4, 4}, {}, {.num_heads = 4, .num_kv_heads = 2}),
      refused(
          "the last axes of q and v must be divisible by num_heads and num_kv_heads 4 and 2, got q (3, 8) "
          "and v (4, 3)",
          {3, 8}, {4, 4}, {4, 3}, {}, {.num_heads = 4, .num_kv_heads = 2}),
      refused("attn_mask must broadcast to the scores (3, 4), got (2, 3, 4)", {3, 2}, {4, 2}, {4, 2},
              Mask(Shape{2, 3, 4}, true)),
      refused("attn_mask must broadcast to the scores (3, 4), got (3)", {3, 2}, {4, 2}, {4, 2},
              Mask(Shape{3}, true)),
      refused("attn_mask must broadcast to the scores (2, 4, 3, 5), got (2, 5), which for sequences is (2, "
              "1, 1, 5)",
              {2, 3, 4}, {2, 5, 4}, {2, 5, 4}, Mask(Shape{2, 5}, true), {.num_heads = 4}),
      refused("attn_mask must broadcast to the scores (2, 4, 3, 5), got (2, 3, 5), which for sequences is "
              "(2, 1, 3, 5)",
              {2, 3, 4}, {2, 5, 4}, {2, 5, 4}, x(2, 3, 5), {.num_heads = 4}),
      refused(
          "attn_mask must broadcast to the scores (2, 3, 5), got (2, 5), which for sequences is (2, 1, 5)",
          {2, 3, 4}, {2, 5, 4}, {2, 5, 4}, Mask(Shape{2, 5}, true)),
      refused("attn_mask (3, 5) may be for queries or for sequences, as there are 3 of each: reshape it to "
              "(1, 3, 5) or (3, 1, 1, 5)",
              {3, 3, 4}, {3, 5, 4}, {3, 5, 4}, Mask(Shape{3, 5}, true), {.num_heads = 2}),
      refused("attn_mask (2, 3, 5) may be for heads or for sequences, as there are 2 of each: reshape it to "
              "(1, 2, 3, 5) or (2, 1, 3, 5)",
              {2, 3, 4}, {2, 5, 4}, {2, 5, 4}, Mask(Shape{2, 3, 5}, true), {.num_heads = 2}),
      refused("attn_mask (2, 1, 5) may be for heads or for sequences, as there are 2 of each: reshape it to "
              "(1, 2, 1, 5) or (2, 1, 1, 5)",
              {2, 3, 4}, {2, 5, 4}, {2, 5, 4}, x(2, 1, 5), {.num_heads = 2}),
      refused("attn_mask must broadcast to the scores (3, 4), got (5)", {3, 2}, {4, 2}, {4, 2}, x(5))};
  return op;
}

/// Input i: nothing, a mask or numbers.
template <class T>
xgrad::AttentionMask<T> attention_mask(const Call<T>& c, std::size_t i) {
  if (!c.has(i)) return {};
  return c.is_mask(i) ? xgrad::AttentionMask<T>(c.mask(i)) : xgrad::AttentionMask<T>(c.x(i));
}

/// The attributes is_causal and scale, and perhaps num_heads, num_kv_heads, the window, first_query, num_keys
/// and softcap.
template <class T>
xgrad::AttentionOptions attention_options(const Call<T>& c) {
  xgrad::AttentionOptions options{.is_causal = c.flag("is_causal")};
  if (c.has_attr("scale")) options.scale = c.number("scale");
  if (c.has_attr("num_heads")) options.num_heads = c.count("num_heads");
  if (c.has_attr("num_kv_heads")) options.num_kv_heads = c.count("num_kv_heads");
  if (c.has_attr("window_left")) options.window_left = c.count("window_left");
  if (c.has_attr("window_right")) options.window_right = c.count("window_right");
  if (c.has_attr("first_query")) options.first_query = c.count("first_query");
  if (c.has_attr("num_keys")) options.num_keys = c.count("num_keys");
  if (c.has_attr("softcap")) options.softcap = c.number("softcap");
  return options;
}

/// Nothing, a mask or numbers that broadcast to the scores and are not taken for those of sequences.
inline Name draw_attention_mask(Drawing& d, const Shape& batch, std::size_t heads, std::size_t queries,
                                std::size_t keys) {
  const Shape scores = heads > 0 ? joined(batch, {heads, queries, keys}) : joined(batch, {queries, keys});
  const double kind = d.uniform(0, 1);
  if (kind < 0.4) return "";
  Shape shape = d.narrowed(scores);
  if (heads > 0 && batch.size() == 1 && shape.size() < scores.size() && shape.size() > 1)
    shape.insert(shape.begin(), 1);
  return kind < 0.7 ? d.mask(shape) : d.numbers(shape);
}

/// `keys` of the rows of k and v are given where these are more.
inline std::vector<Attr> draw_attention_attrs(Drawing& d, std::size_t heads, std::size_t kv_heads,
                                              std::optional<std::size_t> keys = {}) {
  const auto end_of_window = [&] {
    return d.chance(0.8) ? Attr::Value(nullptr) : static_cast<std::ptrdiff_t>(d.below(4));
  };
  return {{"num_heads", static_cast<std::ptrdiff_t>(heads)},
          {"num_kv_heads", static_cast<std::ptrdiff_t>(kv_heads)},
          {"is_causal", d.chance(0.3)},
          {"window_left", end_of_window()},
          {"window_right", end_of_window()},
          {"first_query", d.chance(0.7) ? Attr::Value(nullptr) : static_cast<std::ptrdiff_t>(d.below(5))},
          {"num_keys", keys ? Attr::Value(static_cast<std::ptrdiff_t>(*keys)) : Attr::Value(nullptr)},
          {"softcap", d.chance(0.7) ? Attr::Value(nullptr) : d.uniform(0.5, 3)},
          {"scale", d.chance(0.7) ? Attr::Value(nullptr) : d.uniform(0.2, 1)}};
}

/// q, k, v and a mask, and the attributes.
struct DrawnAttention {
  std::vector<Name> inputs;
  std::vector<Attr> attrs;
};

inline DrawnAttention draw_attention_operands(Drawing& d) {
  const std::size_t heads = d.below(5), parts = std::max<std::size_t>(heads, 1);
  const std::size_t kv_parts = heads > 0 && heads % 2 == 0 && d.chance(0.5) ? heads / 2 : parts;
  Name q = d.numbers(2);
  if (d.shape(q).back() % parts != 0 || d.shape(q).back() == 0) {
    const Shape& shape = d.shape(q);
    q = d.numbers(with(shape, shape.size() - 1, parts * (1 + d.below(3))));
  }
  const Shape shape = d.shape(q), batch(shape.begin(), shape.end() - 2);
  const std::size_t queries = shape[shape.size() - 2], rows = d.chance(0.5) ? queries : d.length();
  const std::size_t keys = d.chance(0.7) ? rows : d.below(rows + 1);
  const std::size_t width = shape.back() / parts * kv_parts;
  const Name k = d.numbers(joined(batch, {rows, width}));
  const Name v = d.numbers(joined(batch, {rows, d.chance(0.5) ? width : kv_parts * (1 + d.below(3))}));
  return {{q, k, v, draw_attention_mask(d, batch, heads, queries, keys)},
          draw_attention_attrs(d, heads, kv_parts == parts ? 0 : kv_parts,
                               keys == rows ? std::nullopt : std::optional(keys))};
}

}  // namespace xgrad_tests
