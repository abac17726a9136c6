// PyTorch's encoder layer as functions of packed weights, against the modules and finite differences.

#include <functional>

#include <gtest/gtest.h>
#include <xtensor/xbuilder.hpp>

#include <xgrad/xgrad.hpp>

#include "expect_error.hpp"

namespace {

using xgrad::Activation, xgrad::Array, xgrad::Mask, xgrad::Variable;
using Variables = std::vector<Variable<double>>;

constexpr std::size_t batch = 2, length = 3, features = 4, inner = 6;
const Mask padding{{false, false, true}, {false, false, false}};
const Mask later{{false, true, true}, {false, false, true}, {false, false, false}};

double largest_difference(const Variable<double>& a, const Variable<double>& b) {
  EXPECT_EQ(a.shape(), b.shape());
  const Array<double> difference = xt::abs(a.value() - b.value());
  return xt::amax(difference)();
}

/// The weights of an encoder layer that are named like this one, with those of q, k and v in one array.
xgrad::TransformerEncoderLayerWeights<double> packed(const xgrad::EncoderLayer<double>& layer) {
  std::map<std::string, Variable<double>> w;
  for (const auto& [name, parameter] : layer.named_parameters()) w[name] = parameter;
  const auto in_proj = [&](const std::string& kind) {
    return xgrad::cat(
        {w.at("self_attn.W_Q." + kind), w.at("self_attn.W_K." + kind), w.at("self_attn.W_V." + kind)});
  };
  return {.self_attn = {.in_proj_weight = in_proj("weight"),
                        .in_proj_bias = in_proj("bias"),
                        .out_proj_weight = w.at("self_attn.out_proj.weight"),
                        .out_proj_bias = w.at("self_attn.out_proj.bias")},
          .linear1_weight = w.at("feed_forward.linear1.weight"),
          .linear1_bias = w.at("feed_forward.linear1.bias"),
          .linear2_weight = w.at("feed_forward.linear2.weight"),
          .linear2_bias = w.at("feed_forward.linear2.bias"),
          .norm1_weight = w.at("norm1.weight"),
          .norm1_bias = w.at("norm1.bias"),
          .norm2_weight = w.at("norm2.weight"),
          .norm2_bias = w.at("norm2.bias")};
}

TEST(TransformerTest, IsTheModuleWithPackedWeights) {
  xgrad::manual_seed(4);
  for (const bool norm_first : {false, true}) {
    for (const Activation activation : {Activation::relu, Activation::gelu}) {
      const xgrad::EncoderLayer<double> layer({.d_model = features,
                                               .heads = 2,
                                               .d_ff = inner,
                                               .activation = activation,
                                               .norm_first = norm_first,
                                               .bias = true,
                                               .eps = 1e-3});
      const Variable<double> x(xgrad::normal<double>({batch, length, features}));
      const auto forward = [&](const xgrad::AttentionPadding& masks) {
        return transformer_encoder_layer(
            x, packed(layer),
            {.num_heads = 2, .activation = activation, .norm_first = norm_first, .eps = 1e-3}, masks);
      };
      EXPECT_LT(largest_difference(forward({}), layer(x)), 1e-13);
      Mask keys = !padding, causal = !later;
      keys.reshape({batch, std::size_t{1}, std::size_t{1}, length});
      EXPECT_LT(largest_difference(forward({.key_padding_mask = padding}), layer(x, keys)), 1e-13);
      EXPECT_LT(largest_difference(forward({.attn_mask = later}), layer(x, causal)), 1e-13);
      EXPECT_LT(largest_difference(forward({padding, later}), layer(x, Mask(keys && causal))), 1e-13);
    }
  }
}

TEST(TransformerTest, FirstAndSecondDerivativesAreRight) {
  xgrad::manual_seed(5);
  const auto leaf = [](const xgrad::Shape& shape) {
    return Variable<double>(xgrad::normal<double>(shape), true);
  };
  const Variables inputs = {leaf({batch, length, features}),
                            leaf({3 * features, features}),
                            leaf({3 * features}),
                            leaf({features, features}),
                            leaf({features}),
                            leaf({inner, features}),
                            leaf({inner}),
                            leaf({features, inner}),
                            leaf({features}),
                            leaf({features}),
                            leaf({features}),
                            leaf({features}),
                            leaf({features})};
  for (const bool norm_first : {false, true}) {
    const auto forward = [norm_first](const Variables& v) {
      return transformer_encoder_layer(
          v[0], {{v[1], v[2], v[3], v[4]}, v[5], v[6], v[7], v[8], v[9], v[10], v[11], v[12]},
          {.num_heads = 2, .activation = Activation::gelu, .norm_first = norm_first}, {padding, later});
    };
    EXPECT_TRUE(xgrad::gradcheck(forward, inputs));
    EXPECT_TRUE(xgrad::gradgradcheck(forward, inputs, {.projections = 3}));
  }
}

TEST(TransformerTest, QueriesMayAttendToAnotherSequence) {
  xgrad::manual_seed(6);
  const xgrad::MultiHeadAttention<double> module(features, 2, {.bias = true});
  const Variables w = module.parameters();
  const xgrad::MultiheadAttentionWeights<double> weights{xgrad::cat({w[0], w[2], w[4]}),
                                                         xgrad::cat({w[1], w[3], w[5]}), w[6], w[7]};
  const Variable<double> q(xgrad::normal<double>({batch, 5, features})),
      k(xgrad::normal<double>({batch, length, features})),
      v(xgrad::normal<double>({batch, length, features}));
  EXPECT_LT(largest_difference(multi_head_attention(q, k, v, weights, 2), module(q, k, v)), 1e-14);
}

TEST(TransformerTest, RefusesWhatDoesNotFit) {
  const auto zeros = [](const xgrad::Shape& shape) { return Variable<float>(Array<float>(shape, 0)); };
  const xgrad::MultiheadAttentionWeights<float> weights{zeros({12, 4}), zeros({12}), zeros({4, 4}),
                                                        zeros({4})};
  const auto message = [&](const Variable<float>& q, const Variable<float>& k, std::size_t heads,
                           const xgrad::AttentionPadding& masks = {}) {
    return xgrad_tests::message_of([&] { multi_head_attention(q, k, k, weights, heads, masks); });
  };
  const Variable<float> x = zeros({2, 3, 4});
  EXPECT_EQ(
      message(zeros({3, 4}), x, 2),
      "multi_head_attention: query must be (N, L, E), key and value (N, S, E), got query (3, 4), key (2, "
      "3, 4) and value (2, 3, 4)");
  EXPECT_EQ(message(zeros({2, 3, 6}), zeros({2, 3, 6}), 2),
            "multi_head_attention: in_proj_weight must be (18, 6), got (12, 4)");
  EXPECT_EQ(message(x, x, 3), "multi_head_attention: num_heads must divide the features, got 3 and 4");
  EXPECT_EQ(message(x, x, 0), "multi_head_attention: num_heads must divide the features, got 0 and 4");
  EXPECT_EQ(message(x, x, 2, {.key_padding_mask = later}),
            "multi_head_attention: key_padding_mask must be (2, 3), got (3, 3)");
  EXPECT_EQ(message(x, x, 2, {.attn_mask = padding}),
            "multi_head_attention: attn_mask must be (3, 3), got (2, 3)");
}

TEST(TransformerTest, RefusesEachParameterByItsName) {
  using V = Variable<float>;
  using Weights = xgrad::TransformerEncoderLayerWeights<float>;
  const auto zeros = [](const xgrad::Shape& shape) { return V(Array<float>(shape, 0)); };
  const V x = zeros({2, 3, 4});
  const Weights good{{zeros({12, 4}), zeros({12}), zeros({4, 4}), zeros({4})},
                     zeros({5, 4}),
                     zeros({5}),
                     zeros({4, 5}),
                     zeros({4}),
                     zeros({4}),
                     zeros({4}),
                     zeros({4}),
                     zeros({4})};
  struct Parameter {
    std::string name, shape;
    std::function<V&(Weights&)> of;
  };
  const std::vector<Parameter> parameters = {
      {"multi_head_attention: in_proj_weight", "(12, 4)",
       [](Weights& w) -> V& { return w.self_attn.in_proj_weight; }},
      {"multi_head_attention: in_proj_bias", "(12)",
       [](Weights& w) -> V& { return w.self_attn.in_proj_bias; }},
      {"multi_head_attention: out_proj_weight", "(4, 4)",
       [](Weights& w) -> V& { return w.self_attn.out_proj_weight; }},
      {"multi_head_attention: out_proj_bias", "(4)",
       [](Weights& w) -> V& { return w.self_attn.out_proj_bias; }},
      {"transformer_encoder_layer: linear1_weight", "(21, 4)",
       [](Weights& w) -> V& { return w.linear1_weight; }},
      {"transformer_encoder_layer: linear1_bias", "(5)", [](Weights& w) -> V& { return w.linear1_bias; }},
      {"transformer_encoder_layer: linear2_weight", "(4, 5)",
       [](Weights& w) -> V& { return w.linear2_weight; }},
      {"transformer_encoder_layer: linear2_bias", "(4)", [](Weights& w) -> V& { return w.linear2_bias; }},
      {"transformer_encoder_layer: norm1_weight", "(4)", [](Weights& w) -> V& { return w.norm1_weight; }},
      {"transformer_encoder_layer: norm1_bias", "(4)", [](Weights& w) -> V& { return w.norm1_bias; }},
      {"transformer_encoder_layer: norm2_weight", "(4)", [](Weights& w) -> V& { return w.norm2_weight; }},
      {"transformer_encoder_layer: norm2_bias", "(4)", [](Weights& w) -> V& { return w.norm2_bias; }}};
  for (const bool norm_first : {false, true}) {
    const auto call = [&](const Weights& w) {
      transformer_encoder_layer(x, w, {.num_heads = 2, .norm_first = norm_first});
    };
    for (const auto& [name, shape, of] : parameters) {
      Weights bad = good;
      of(bad) = zeros({3, 7, 6});
      EXPECT_EQ(xgrad_tests::message_of<xgrad::ShapeError>([&] { call(bad); }),
                name + " must be " + shape + ", got (3, 7, 6)");
      of(bad) = V();
      EXPECT_EQ(xgrad_tests::message_of<xgrad::GraphError>([&] { call(bad); }), name + " is undefined");
    }
  }
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ShapeError>([&] {
              transformer_encoder_layer(zeros({3, 4}), good);
            }),
            "transformer_encoder_layer: src must be (N, L, E), got (3, 4)");
}

}  // namespace
