// A block is the formula of its options, written with other ops, and passes gradients on to all it has.

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/models/attention/rotary_tables.hpp>
#include <xgrad/models/transformer_block.hpp>
#include <xgrad/xgrad.hpp>

#include "../difference.hpp"
#include "expect_error.hpp"

namespace transformer_block_test {

using xgrad::Activation, xgrad::Array, xgrad::BlockPart, xgrad::ForwardContext, xgrad::NormKind;
using xgrad::QueryKeyNorm, xgrad::Residual, xgrad::Shape, xgrad::TransformerBlockOptions, xgrad::Variable;
using Block = xgrad::TransformerBlock<double>;
using xgrad_tests::message_of, xgrad_tests::relative_difference;

constexpr xgrad::NamedPart names[]{{BlockPart::query, "q"},
                                   {BlockPart::key, "k"},
                                   {BlockPart::value, "v"},
                                   {BlockPart::query_norm, "q_norm"},
                                   {BlockPart::key_norm, "k_norm"},
                                   {BlockPart::out, "out"},
                                   {BlockPart::attention_norm, "norm1"},
                                   {BlockPart::attention_output_norm, "norm2"},
                                   {BlockPart::gate, "gate"},
                                   {BlockPart::up, "up"},
                                   {BlockPart::down, "down"},
                                   {BlockPart::feed_forward_norm, "norm3"},
                                   {BlockPart::feed_forward_output_norm, "norm4"}};

/// With all parameters drawn, those of norms, too.
Block new_block(const TransformerBlockOptions& options) {
  xgrad::InitialLayers<double> layers;
  const Block block(options, names, layers);
  for (auto& [name, parameter] : block.named_parameters())
    Variable<double>(parameter).assign(xgrad::normal<double>(parameter.shape()) * 0.4 + 0.3);
  return block;
}

/// The block's formula, without its fused ops.
class Reference {
 public:
  Reference(const Block& block, const ForwardContext<double>& context)
      : options_(block.options()), context_(context) {
    for (const auto& [name, parameter] : block.named_parameters()) parameters_.emplace(name, parameter);
  }

  Variable<double> operator()(const Variable<double>& x) const {
    const Variable<double> y =
        residual(x, "norm1", "norm2", [&](const auto& input) { return attention(input); });
    return residual(y, "norm3", "norm4", [&](const auto& input) { return feed_forward(input); });
  }

 private:
  template <class F>
  Variable<double> residual(const Variable<double>& x, const char* first, const char* second,
                            const F& f) const {
    switch (options_.residual) {
      case Residual::none:
        return norm(first, f(x));
      case Residual::post_norm:
        return norm(first, x + f(x));
      case Residual::pre_norm:
        return x + f(norm(first, x));
      case Residual::output_norm:
        return x + norm(second, f(x));
      case Residual::both_norms:
        break;
    }
    return x + norm(second, f(norm(first, x)));
  }

  Variable<double> norm(const std::string& name, const Variable<double>& x) const {
    if (!parameters_.contains(name + ".weight")) return x;
    const Variable<double>& weight = parameters_.at(name + ".weight");
    const bool is_rms = options_.norm == NormKind::rms || name == "q_norm" || name == "k_norm";
    const Variable<double> centered = is_rms ? x : x - mean(x, -1, {.keepdim = true});
    const Variable<double> scaled = centered /
                                    sqrt(mean(centered * centered, -1, {.keepdim = true}) + options_.eps) *
                                    (weight + (is_rms ? options_.norm_offset : 0.0));
    return parameters_.contains(name + ".bias") ? scaled + parameters_.at(name + ".bias") : scaled;
  }

  Variable<double> linear(const std::string& name, const Variable<double>& x) const {
    const Variable<double> y = matmul(x, mT(parameters_.at(name + ".weight")));
    return parameters_.contains(name + ".bias") ? y + parameters_.at(name + ".bias") : y;
  }

  /// Of each head by itself, or of all.
  Variable<double> projected(const std::string& name, const Variable<double>& x, std::size_t heads) const {
    const Variable<double> y = linear(name, x);
    if (options_.query_key_norm == QueryKeyNorm::all) return norm(name + "_norm", y);
    if (options_.query_key_norm == QueryKeyNorm::none) return y;
    std::vector<Variable<double>> normalized;
    for (std::size_t head = 0; head < heads; ++head)
      normalized.push_back(norm(name + "_norm", narrow(y, -1, head * head_dim(), head_dim())));
    return cat(normalized, -1);
  }

  Variable<double> attention(const Variable<double>& x) const {
    const std::size_t heads = options_.num_heads, length = x.shape(1);
    const std::size_t kv_heads = options_.num_kv_heads > 0 ? options_.num_kv_heads : heads;
    Variable<double> q = projected("q", x, heads), k = projected("k", x, kv_heads);
    const Variable<double> v = linear("v", x);
    if (options_.rotary) {
      const auto& [cos, sin] = context_.rotary.at(*options_.rotary);
      q = rotary(q, cos, sin, {.num_heads = heads});
      k = rotary(k, cos, sin, {.num_heads = kv_heads});
    }
    Array<double> hidden = xt::zeros<double>({length, length});
    for (std::size_t i = 0; i < length; ++i) {
      for (std::size_t j = 0; j < length; ++j) {
        const std::size_t window = options_.window.value_or(length);
        if (j > i ? options_.is_causal || j - i > window : i - j > window) hidden(i, j) = -INFINITY;
      }
    }
    std::vector<Variable<double>> results;
    for (std::size_t head = 0; head < heads; ++head) {
      const auto of_head = [&](const Variable<double>& all, std::size_t number) {
        return narrow(all, -1, number * head_dim(), head_dim());
      };
      const std::size_t kv_head = head / (heads / kv_heads);
      Variable<double> scores = matmul(of_head(q, head), mT(of_head(k, kv_head))) *
                                options_.scale.value_or(1 / std::sqrt(static_cast<double>(head_dim())));
      if (options_.softcap) scores = tanh(scores / *options_.softcap) * *options_.softcap;
      results.push_back(matmul(softmax(scores + Variable<double>(hidden), -1), of_head(v, kv_head)));
    }
    return linear("out", cat(results, -1));
  }

  Variable<double> feed_forward(const Variable<double>& x) const {
    const Variable<double> up = linear("up", x);
    return linear("down", options_.is_gated ? activate(options_.activation, linear("gate", x)) * up
                                            : activate(options_.activation, up));
  }

  std::size_t head_dim() const {
    return options_.head_dim > 0 ? options_.head_dim : options_.d_model / options_.num_heads;
  }

  TransformerBlockOptions options_;
  ForwardContext<double> context_;
  std::map<std::string, Variable<double>> parameters_;
};

const TransformerBlockOptions plain{.d_model = 8, .num_heads = 2, .d_ff = 6, .activation = Activation::gelu};

/// Each option by itself, and many together.
std::vector<TransformerBlockOptions> all_options() {
  std::vector<TransformerBlockOptions> all;
  for (const Residual residual : {Residual::none, Residual::post_norm, Residual::pre_norm,
                                  Residual::output_norm, Residual::both_norms}) {
    for (const NormKind norm : {NormKind::layer, NormKind::rms}) {
      all.push_back(plain);
      all.back().residual = residual;
      all.back().norm = norm;
      all.back().eps = 1e-3;
    }
  }
  const auto with = [&](auto change) {
    TransformerBlockOptions options = plain;
    change(options);
    all.push_back(options);
  };
  with([](auto& o) { o.norm_bias = false; });
  with([](auto& o) { o.norm = NormKind::rms, o.norm_offset = 1; });
  with([](auto& o) { o.residual = Residual::pre_norm, o.attention_norm = false; });
  with([](auto& o) { o.qkv_bias = false, o.down_bias = false; });
  with([](auto& o) { o.out_bias = false, o.up_bias = false; });
  with([](auto& o) { o.head_dim = 6; });
  with([](auto& o) { o.num_heads = 4, o.num_kv_heads = 2; });
  with([](auto& o) { o.query_key_norm = QueryKeyNorm::head; });
  with([](auto& o) { o.query_key_norm = QueryKeyNorm::all, o.num_heads = 4, o.num_kv_heads = 1; });
  with([](auto& o) { o.scale = 0.9; });
  with([](auto& o) { o.softcap = 0.7; });
  with([](auto& o) { o.window = 1; });
  with([](auto& o) { o.is_causal = true; });
  with([](auto& o) { o.window = 2, o.is_causal = true; });
  with([](auto& o) { o.rotary = 1; });
  for (const Activation activation : {Activation::relu, Activation::gelu, Activation::silu}) {
    with([&](auto& o) { o.activation = activation; });
    with([&](auto& o) { o.activation = activation, o.is_gated = true; });
  }
  with([](auto& o) {
    o.residual = Residual::both_norms, o.norm = NormKind::rms, o.norm_offset = 1;
    o.num_heads = 4, o.num_kv_heads = 2;
    o.head_dim = 4, o.query_key_norm = QueryKeyNorm::head, o.softcap = 2.0, o.scale = 0.4, o.window = 2;
    o.is_causal = true, o.rotary = 0, o.activation = Activation::gelu_tanh, o.is_gated = true;
    o.qkv_bias = o.out_bias = o.up_bias = o.down_bias = false;
  });
  return all;
}

ForwardContext<double> context_for(const TransformerBlockOptions& options, std::size_t length) {
  const std::size_t dim = options.head_dim > 0 ? options.head_dim : options.d_model / options.num_heads;
  return {.rotary = {xgrad::rotary_tables<double>({.dim = dim, .theta = 100}, length),
                     xgrad::rotary_tables<double>({.dim = dim, .theta = 10}, length)}};
}

TEST(TransformerBlockTest, EachOptionIsItsFormula) {
  xgrad::manual_seed(11);
  for (const TransformerBlockOptions& options : all_options()) {
    const Block block = new_block(options);
    const ForwardContext<double> context = context_for(options, 5);
    const Variable<double> x(xgrad::normal<double>({2, 5, options.d_model}));
    EXPECT_LT(relative_difference(block(context, x).value(), Reference(block, context)(x).value()), 1e-12);
  }
}

TEST(TransformerBlockTest, OffsetsAreThoseOfRmsNorms) {
  TransformerBlockOptions options{.d_model = 4, .num_heads = 2, .d_ff = 8, .norm_offset = 1};
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ValueError>([&] { new_block(options); }),
            "TransformerBlock: norm_offset must be 0 unless norm is NormKind::rms, got 1");
}

TEST(TransformerBlockTest, GradientsAreThoseOfDifferences) {
  xgrad::manual_seed(12);
  for (const TransformerBlockOptions& options : all_options()) {
    if (options.activation == Activation::relu) continue;  // a kink may lie between two points
    const Block block = new_block(options);
    const ForwardContext<double> context = context_for(options, 3);
    std::vector<Variable<double>> inputs{
        Variable<double>(xgrad::normal<double>({1, 3, options.d_model}), true)};
    for (const auto& parameter : block.parameters()) inputs.push_back(parameter);
    const auto report = xgrad::gradcheck([&](const auto& x) { return block(context, x[0]); }, inputs);
    EXPECT_TRUE(report.ok) << report.worst;
  }
}

TEST(TransformerBlockTest, PackedRowsAreThoseOfTheirSequences) {
  xgrad::manual_seed(13);
  for (const TransformerBlockOptions& options : all_options()) {
    if (options.rotary || options.query_key_norm != QueryKeyNorm::none) continue;  // attention is not fused
    const Block block = new_block(options);
    const Variable<double> x(xgrad::normal<double>({7, options.d_model}));
    const Variable<double> packed = block({.packed_lengths = {3, 4}}, x);
    for (const auto& [first, length] : {std::pair<std::size_t, std::size_t>{0, 3}, {3, 4}}) {
      const Variable<double> alone = block({}, reshape(narrow(x, 0, first, length), {1, -1, 8}));
      EXPECT_LT(relative_difference(narrow(packed, 0, first, length).value(), flatten(alone, 0, 1).value()),
                1e-14);
    }
  }
}

TEST(TransformerBlockTest, KeepsTheWeightsOfAttention) {
  xgrad::manual_seed(14);
  const Block block = new_block(plain);
  const Variable<double> x(xgrad::normal<double>({2, 3, plain.d_model}));
  std::vector<Variable<double>> weights;
  const Variable<double> y = block({.attentions = &weights}, x);
  EXPECT_LT(relative_difference(y.value(), block({}, x).value()), 1e-14);
  ASSERT_EQ(weights.size(), 1u);
  EXPECT_EQ(weights[0].shape(), (Shape{2, 2, 3, 3}));
  EXPECT_LT(relative_difference(sum(weights[0], -1).value(), Array<double>(Shape{2, 2, 3}, 1.0)), 1e-14);
}

TEST(TransformerBlockTest, WhatContradictsItselfIsRefused) {
  xgrad::InitialLayers<double> layers;
  const auto message = [&](TransformerBlockOptions options, xgrad::BlockNames parts = names) {
    return message_of<xgrad::ValueError>([&] { Block(options, parts, layers); });
  };
  EXPECT_EQ(message({.d_model = 8, .num_heads = 3, .d_ff = 6}),
            "TransformerBlock: d_model must be divisible by num_heads, got 8 and 3");
  EXPECT_EQ(message({.d_model = 8, .num_heads = 4, .num_kv_heads = 3, .d_ff = 6}),
            "TransformerBlock: num_kv_heads must divide num_heads, got 3 and 4");
  EXPECT_EQ(message({.d_model = 8, .num_heads = 2}), "TransformerBlock: d_ff must be at least 1, got 0");
  EXPECT_EQ(message({.d_model = 8, .num_heads = 2, .d_ff = 6, .inner_dropout = 2}),
            "TransformerBlock: inner_dropout must be in [0, 1], got 2");
  TransformerBlockOptions gated = plain;
  gated.is_gated = true;
  const auto message_without = [&](const TransformerBlockOptions& options, BlockPart absent) {
    std::vector<xgrad::NamedPart> others;
    for (const xgrad::NamedPart& one : names)
      if (one.part != absent) others.push_back(one);
    return message(options, others);
  };
  const std::string projections =
      "TransformerBlock: either query, key and value must have names, or query_key_value";
  EXPECT_EQ(message_without(plain, BlockPart::key), projections);
  EXPECT_EQ(message_without(plain, BlockPart::up), "TransformerBlock: up must have a name");
  EXPECT_EQ(message_without(gated, BlockPart::gate),
            "TransformerBlock: either gate and up must have names, or gate_up");
  EXPECT_EQ(message_without(plain, BlockPart::down), "TransformerBlock: down must have a name");
  EXPECT_EQ(message_without(plain, BlockPart::attention_norm),
            "TransformerBlock: attention_norm must have a name");
  EXPECT_EQ(message_without(plain, BlockPart::gate), "no exception");
  EXPECT_EQ(message_without(plain, BlockPart::feed_forward_output_norm), "no exception");
  std::vector<xgrad::NamedPart> twice(std::begin(names), std::end(names));
  twice.push_back({BlockPart::query_key_value, "qkv"});
  EXPECT_EQ(message(plain, twice), projections);
}

TEST(TransformerBlockTest, AContextThatDoesNotFitIsRefused) {
  xgrad::manual_seed(15);
  const Block block = new_block(plain);
  TransformerBlockOptions turned = plain;
  turned.rotary = 1;
  const Block rotary_block = new_block(turned);
  const Variable<double> rows(xgrad::normal<double>({5, 8})), x(xgrad::normal<double>({1, 5, 8}));
  const auto message = [](const Block& of, const ForwardContext<double>& context,
                          const Variable<double>& input) {
    return message_of<std::exception>([&] { of(context, input); });
  };
  EXPECT_EQ(message(rotary_block, {}, x),
            "TransformerBlock: the context must have the rotary table 1, got 0 tables");
  EXPECT_EQ(message(block, {.packed_lengths = {2, 4}}, rows),
            "TransformerBlock: packed_lengths must add up to the rows of x (5, 8)");
  const std::string unfused =
      "TransformerBlock: packed rows need fused attention, without a mask, a memory, caches, positions in "
      "attention and kept weights";
  std::vector<Variable<double>> weights;
  EXPECT_EQ(message(block, {.packed_lengths = {2, 3}, .attentions = &weights}, rows), unfused);
  EXPECT_EQ(message(block, {.mask = xgrad::Mask(Shape{1, 1}, true), .packed_lengths = {2, 3}}, rows),
            unfused);
  ForwardContext<double> with_tables = context_for(turned, 5);
  with_tables.packed_lengths = {2, 3};
  EXPECT_EQ(message(rotary_block, with_tables, rows), unfused);
  const xgrad::NoGrad guard;
  std::vector<xgrad::KeyValueCache<double>> caches(1, xgrad::KeyValueCache<double>(1));
  const std::size_t counts[]{2, 3}, count[]{4};
  for (const std::span<const std::size_t> new_tokens :
       {std::span<const std::size_t>(counts), std::span<const std::size_t>(count)})
    EXPECT_EQ(message(block, {.caches = caches, .new_tokens = new_tokens}, x),
              "TransformerBlock: new_tokens must be one number for each of the 1 caches, and add up to the "
              "rows of x "
              "(1, 5, 8)");
  EXPECT_EQ(
      message(block, {.new_tokens = counts}, x),
      "TransformerBlock: new_tokens must be one number for each of the 0 caches, and add up to the rows of x "
      "(1, 5, 8)");
  EXPECT_EQ(message(block, {.caches = caches, .new_tokens = counts, .attentions = &weights}, x),
            "TransformerBlock: caches need attention without a mask and kept weights");
}

}  // namespace transformer_block_test
