// Modules against the same formulas composed of ops, in both modes: every place of dropout, every order of
// norms.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/xgrad.hpp>

#include "expect_error.hpp"

namespace composed_models_test {

using xgrad::Array, xgrad::Ids, xgrad::Mask, xgrad::Module, xgrad::StateDict, xgrad::Variable;
using V = Variable<double>;
using State = StateDict<double>;

constexpr double p = 0.3;  // of dropout

V normal(const xgrad::Shape& shape, std::uint64_t seed) {
  xgrad::Generator generator(seed);
  return V(xgrad::normal<double>(shape, 0, 1, generator));
}

/// Gives every parameter values of its own, those of the norms and the biases, too.
void scramble(const Module<double>& model) {
  std::uint64_t seed = 100;
  for (const V& parameter : model.parameters()) parameter.assign(normal(parameter.shape(), ++seed).value());
}

/// The entries under a prefix, without it.
State below(const State& state, const std::string& prefix) {
  State found;
  for (const auto& [name, array] : state)
    if (name.starts_with(prefix)) found[name.substr(prefix.size())] = array;
  return found;
}

void expect_close(const V& got, const V& want, const std::string& what) {
  ASSERT_EQ(got.shape(), want.shape()) << what;
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got.value().data()[i], want.value().data()[i], 1e-12) << what << ", element " << i;
}

/// What call() returns when the default generator starts from a seed.
template <class Call>
auto seeded(std::uint64_t seed, const Call& call) {
  xgrad::manual_seed(seed);
  return call();
}

// ---- Dropout ----

TEST(DropoutModuleTest, ScalesWhatItKeepsAndDrawsOnlyInTraining) {
  const xgrad::Dropout<double> layer(p);
  const V x(Array<double>({4, 50}, 2.0));
  const Array<double> kept = seeded(8, [] { return xgrad::bernoulli<double>({4, 50}, 1 - p); });
  const Array<double> y = seeded(8, [&] { return layer(x).value(); });
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_DOUBLE_EQ(y.data()[i], 2 * kept.data()[i] / (1 - p)) << i;
  EXPECT_NE(layer(x).value(), y) << "another call draws other elements";

  layer.eval();
  const std::string state = xgrad::get_rng_state();
  EXPECT_EQ(layer(x).value(), x.value());
  EXPECT_EQ(xgrad::get_rng_state(), state);
}

TEST(DropoutModuleTest, DropsHalfByDefaultAndAllOrNothingAtTheEnds) {
  const V x(Array<double>({50, 20}, 1.0));
  EXPECT_EQ(seeded(9, [&] { return xgrad::Dropout<double>()(x).value(); }), seeded(9, [] {
              return Array<double>(2 * xgrad::bernoulli<double>({50, 20}, 0.5));
            }));
  EXPECT_EQ(xgrad::Dropout<double>(1)(x).value(), Array<double>({50, 20}, 0.0));
  EXPECT_EQ(xgrad::Dropout<double>(0)(x).value(), x.value());
}

TEST(DropoutModuleTest, EachModuleRefusesAProbabilityByItsName) {
  const auto wrong = [](auto make) { return xgrad_tests::message_of<xgrad::ValueError>(make); };
  EXPECT_EQ(wrong([] { xgrad::Dropout<float>(1.25); }), "Dropout: p must be in [0, 1], got 1.25");
  EXPECT_EQ(wrong([] { xgrad::FeedForward<float>(2, 3, xgrad::Activation::relu, -0.5); }),
            "FeedForward: dropout must be in [0, 1], got -0.5");
  EXPECT_EQ(wrong([] { xgrad::MultiHeadAttention<float>(2, 1, {.dropout = 2}); }),
            "MultiHeadAttention: dropout must be in [0, 1], got 2");
}

// ---- Layers ----

V composed_linear(const V& x, const State& state, const std::string& name) {
  const auto bias = state.find(name + ".bias");
  return linear(x, V(state.at(name + ".weight")), bias == state.end() ? V() : V(bias->second));
}

V composed_norm(const V& x, const State& state, const std::string& name, double eps) {
  const Array<double>& weight = state.at(name + ".weight");
  return layer_norm(x, {static_cast<std::ptrdiff_t>(weight.size())}, V(weight), V(state.at(name + ".bias")),
                    eps);
}

V composed_feed_forward(const V& x, const State& state, xgrad::Activation activation, double dropped) {
  const V inner = composed_linear(x, state, "linear1");
  const V active = activation == xgrad::Activation::relu ? relu(inner) : gelu(inner);
  return composed_linear(dropout(active, dropped), state, "linear2");
}

/// With the attention weights.
xgrad::AttentionResult<double> composed_attention(const V& q, const V& k, const V& v, const State& state,
                                                  const xgrad::AttentionMask<double>& mask, std::size_t heads,
                                                  double dropped) {
  auto result = attention_with_weights(composed_linear(q, state, "W_Q"), composed_linear(k, state, "W_K"),
                                       composed_linear(v, state, "W_V"), mask,
                                       {.dropout_p = dropped, .num_heads = heads});
  result.output = composed_linear(result.output, state, "out_proj");
  return result;
}

xgrad::AttentionResult<double> composed_layer(const V& x, const State& state,
                                              const xgrad::EncoderConfig& config,
                                              const xgrad::AttentionMask<double>& mask, double dropped) {
  V weights;
  const auto attend = [&](const V& input) {
    auto result =
        composed_attention(input, input, input, below(state, "self_attn."), mask, config.heads, dropped);
    weights = result.weights;
    return dropout(result.output, dropped);
  };
  const auto feed = [&](const V& input) {
    return dropout(composed_feed_forward(input, below(state, "feed_forward."), config.activation, dropped),
                   dropped);
  };
  const auto norm = [&](const V& input, const char* name) {
    return composed_norm(input, state, name, config.eps);
  };
  if (config.norm_first) {
    const V y = x + attend(norm(x, "norm1"));
    return {y + feed(norm(y, "norm2")), weights};
  }
  const V y = norm(x + attend(x), "norm1");
  return {norm(y + feed(y), "norm2"), weights};
}

TEST(ComposedModelsTest, FeedForward) {
  const V x = normal({2, 3, 4}, 1);
  for (const xgrad::Activation activation : {xgrad::Activation::relu, xgrad::Activation::gelu}) {
    const xgrad::FeedForward<double> model(4, 6, activation, p);
    scramble(model);
    for (const bool training : {true, false}) {
      model.train(training);
      const V want = seeded(
          2, [&] { return composed_feed_forward(x, model.state_dict(), activation, training ? p : 0); });
      expect_close(seeded(2, [&] { return model(x); }), want, training ? "training" : "evaluation");
    }
  }
  const xgrad::FeedForward<double> plain(4, 6);
  expect_close(plain(x), composed_feed_forward(x, plain.state_dict(), xgrad::Activation::relu, 0),
               "the defaults");
}

TEST(ComposedModelsTest, MultiHeadAttention) {
  const V q = normal({2, 3, 4}, 1), k = normal({2, 5, 4}, 2), v = normal({2, 5, 4}, 3);
  const xgrad::MultiHeadAttention<double> model(4, 2, {.bias = true, .dropout = p});
  scramble(model);
  const Mask others{{{{true, true, false, true, true}}}}, own{{{{true, false, true}}}};
  for (const bool training : {true, false}) {
    model.train(training);
    const auto want = seeded(
        4, [&] { return composed_attention(q, k, v, model.state_dict(), others, 2, training ? p : 0); });
    expect_close(seeded(4, [&] { return model(q, k, v, others); }), want.output, "cross attention");
    const auto got = seeded(4, [&] { return model.with_weights(q, k, v, others); });
    expect_close(got.output, want.output, "with weights");
    expect_close(got.weights, want.weights, "weights");

    const auto itself =
        seeded(4, [&] { return composed_attention(q, q, q, model.state_dict(), own, 2, training ? p : 0); });
    expect_close(seeded(4, [&] { return model(q, own); }), itself.output, "self attention");
    expect_close(seeded(4, [&] { return model.with_weights(q, own); }).output, itself.output, "with weights");
  }
}

TEST(ComposedModelsTest, SelfAttentionIsOneHeadOverTheLastTwoAxes) {
  const V x = normal({2, 3, 4}, 1);
  for (const auto& [row, col] : {std::pair{1, 2}, {-2, -1}, {1, -1}}) {
    const xgrad::SelfAttention<double> model(4, row, col);
    const State state = model.state_dict();
    const auto want = attention_with_weights(
        composed_linear(x, state, "W_q"), composed_linear(x, state, "W_k"), composed_linear(x, state, "W_v"));
    expect_close(model(x), want.output, "output");
    expect_close(model.with_weights(x).output, want.output, "output with weights");
    expect_close(model.with_weights(x).weights, want.weights, "weights");
  }
  for (const auto& [row, col] : {std::pair{0, 2}, {1, 1}, {2, 1}}) {
    EXPECT_EQ(xgrad_tests::message_of<xgrad::ShapeError>(
                  [&, row = row, col = col] { xgrad::SelfAttention<double>(4, row, col)(x); }),
              "SelfAttention: row_dim and col_dim must be the last two axes of x, got " +
                  std::to_string(row) + ", " + std::to_string(col) + " and x (2, 3, 4)");
  }
}

std::vector<xgrad::EncoderConfig> encoder_configs() {
  std::vector<xgrad::EncoderConfig> configs;
  for (const bool norm_first : {false, true}) {
    configs.push_back({.d_model = 4, .heads = 2, .d_ff = 6, .layers = 2, .norm_first = norm_first});
    configs.push_back({.d_model = 4,
                       .heads = 2,
                       .d_ff = 6,
                       .layers = 2,
                       .dropout = p,
                       .activation = xgrad::Activation::gelu,
                       .norm_first = norm_first,
                       .bias = true,
                       .eps = 0.1});
  }
  return configs;
}

TEST(ComposedModelsTest, TransformerEncoderLayer) {
  const V x = normal({2, 3, 4}, 1);
  const Mask mask{{{{true, true, false}}}, {{{true, true, true}}}};
  for (const xgrad::EncoderConfig& config : encoder_configs()) {
    const xgrad::TransformerEncoderLayer<double> model(config);
    scramble(model);
    for (const bool training : {true, false}) {
      model.train(training);
      const auto want = seeded(6, [&] {
        return composed_layer(x, model.state_dict(), config, mask, training ? config.dropout : 0);
      });
      const std::string what = std::string(config.norm_first ? "pre-norm" : "post-norm") +
                               (training ? ", training" : ", evaluation");
      expect_close(seeded(6, [&] { return model(x, mask); }), want.output, what);
      const auto got = seeded(6, [&] { return model.with_weights(x, mask); });
      expect_close(got.output, want.output, what + ", with weights");
      expect_close(got.weights, want.weights, what + ", weights");
    }
  }
}

xgrad::EncoderResult<double> composed_encoder(const V& x, const State& state,
                                              const xgrad::EncoderConfig& config,
                                              const xgrad::AttentionMask<double>& mask, double dropped) {
  xgrad::EncoderResult<double> result{x, {}};
  for (std::size_t i = 0; i < config.layers; ++i) {
    const auto step = composed_layer(result.output, below(state, "layers." + std::to_string(i) + "."), config,
                                     mask, dropped);
    result.output = step.output;
    result.weights.push_back(step.weights);
  }
  if (config.norm_first) result.output = composed_norm(result.output, state, "norm", config.eps);
  return result;
}

void expect_same_result(const xgrad::EncoderResult<double>& got, const xgrad::EncoderResult<double>& want,
                        const std::string& what) {
  expect_close(got.output, want.output, what + ", output");
  ASSERT_EQ(got.weights.size(), want.weights.size()) << what;
  for (std::size_t i = 0; i < got.weights.size(); ++i)
    expect_close(got.weights[i], want.weights[i], what + ", weights of layer " + std::to_string(i));
}

TEST(ComposedModelsTest, Encoder) {
  const V x = normal({2, 3, 4}, 1);
  const Mask mask{{{{true, true, false}}}, {{{true, true, true}}}};
  for (const xgrad::EncoderConfig& config : encoder_configs()) {
    const xgrad::TransformerEncoder<double> model(config);
    scramble(model);
    for (const bool training : {true, false}) {
      model.train(training);
      const auto want = seeded(7, [&] {
        return composed_encoder(x, model.state_dict(), config, mask, training ? config.dropout : 0);
      });
      const std::string what = std::string(config.norm_first ? "pre-norm" : "post-norm") +
                               (training ? ", training" : ", evaluation");
      expect_close(seeded(7, [&] { return model(x, mask); }), want.output, what);
      expect_same_result(seeded(7, [&] { return model.with_weights(x, mask); }), want, what);
    }
  }
  EXPECT_EQ(xgrad::TransformerEncoder<double>({.d_model = 4, .heads = 2, .d_ff = 6}).parameters().size(), 12u)
      << "one layer by default, without biases and a last norm";
}

// ---- Decoders ----

/// (1, 1, n, n), true for the keys up to each query.
Mask causal_mask(std::size_t n) {
  Mask mask({1, 1, n, n}, false);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j <= i; ++j) mask(0, 0, i, j) = true;
  return mask;
}

TEST(ComposedModelsTest, CausalAttentionSeesNoLaterKey) {
  const V x = normal({2, 3, 4}, 1);
  const xgrad::MultiHeadAttention<double> model(4, 2, {.dropout = p, .is_causal = true});
  const Mask padding{{{{true, true, false}}}, {{{true, true, true}}}};
  for (const bool training : {true, false}) {
    model.train(training);
    const auto want = seeded(4, [&] {
      return composed_attention(x, x, x, model.state_dict(), Mask(causal_mask(3) && padding), 2,
                                training ? p : 0);
    });
    expect_close(seeded(4, [&] { return model(x, padding); }), want.output, "self attention");
    expect_close(seeded(4, [&] { return model(x, x, x, padding); }), want.output, "of three inputs");
    expect_close(seeded(4, [&] { return model.with_weights(x, padding); }).weights, want.weights, "weights");
  }
  const xgrad::EncoderConfig config{.d_model = 4, .heads = 2, .d_ff = 6, .layers = 2, .is_causal = true};
  const xgrad::TransformerEncoder<double> encoder(config);
  expect_same_result(encoder.with_weights(x),
                     composed_encoder(x, encoder.state_dict(), config, causal_mask(3), 0), "encoder");
}

xgrad::DecoderLayerResult<double> composed_decoder_layer(const V& x, const V& memory, const State& state,
                                                         const xgrad::DecoderConfig& config, const Mask& mask,
                                                         const Mask& memory_mask, double dropped) {
  xgrad::DecoderLayerResult<double> result;
  const auto attend = [&](const V& q, const V& k, const char* name, const Mask& of, V& weights) {
    const auto attended = composed_attention(q, k, k, below(state, name), of, config.heads, dropped);
    weights = attended.weights;
    return dropout(attended.output, dropped);
  };
  const auto to_itself = [&](const V& q) { return attend(q, q, "self_attn.", mask, result.weights); };
  const auto to_memory = [&](const V& q) {
    return attend(q, memory, "multihead_attn.", memory_mask, result.memory_weights);
  };
  const auto feed = [&](const V& input) {
    return dropout(composed_feed_forward(input, below(state, "feed_forward."), config.activation, dropped),
                   dropped);
  };
  const auto norm = [&](const V& input, const char* name) {
    return composed_norm(input, state, name, config.eps);
  };
  if (config.norm_first) {
    const V u = x + to_itself(norm(x, "norm1"));
    const V y = u + to_memory(norm(u, "norm2"));
    result.output = y + feed(norm(y, "norm3"));
  } else {
    const V u = norm(x + to_itself(x), "norm1");
    const V y = norm(u + to_memory(u), "norm2");
    result.output = norm(y + feed(y), "norm3");
  }
  return result;
}

TEST(ComposedModelsTest, Decoder) {
  const V x = normal({2, 3, 4}, 1), memory = normal({2, 5, 4}, 2);
  const Mask padding{{{{true, true, false}}}, {{{true, true, true}}}},
      of_memory{{{{true, true, false, true, true}}}};
  for (int variant = 0; variant < 8; ++variant) {
    const auto bit = [variant](int place) { return (variant >> place & 1) != 0; };
    xgrad::DecoderConfig config{.d_model = 4, .heads = 2, .d_ff = 6, .layers = 2, .norm_first = bit(0)};
    if (bit(1)) {
      config.dropout = p;
      config.activation = xgrad::Activation::gelu;
      config.bias = false;
      config.eps = 0.1;
    }
    if (bit(2)) {
      config.is_causal = false;
      config.last_norm = !config.norm_first;
    }
    const xgrad::TransformerDecoder<double> model(config);
    scramble(model);
    const State state = model.state_dict();
    const Mask mask = config.is_causal ? Mask(causal_mask(3) && padding) : padding;
    for (const bool training : {true, false}) {
      model.train(training);
      const auto want = seeded(7, [&] {
        xgrad::DecoderResult<double> result{x, {}, {}};
        for (const char* const layer : {"layers.0.", "layers.1."}) {
          const auto step = composed_decoder_layer(result.output, memory, below(state, layer), config, mask,
                                                   of_memory, training ? config.dropout : 0);
          result.output = step.output;
          result.weights.push_back(step.weights);
          result.memory_weights.push_back(step.memory_weights);
        }
        if (config.norm_first != bit(2))
          result.output = composed_norm(result.output, state, "norm", config.eps);
        return result;
      });
      const std::string what = "variant " + std::to_string(variant) + (training ? ", training" : "");
      expect_close(seeded(7, [&] { return model(x, memory, padding, of_memory); }), want.output, what);
      const auto got = seeded(7, [&] { return model.with_weights(x, memory, padding, of_memory); });
      expect_close(got.output, want.output, what + ", with weights");
      for (std::size_t i = 0; i < 2; ++i) {
        expect_close(got.weights[i], want.weights[i], what + ", weights");
        expect_close(got.memory_weights[i], want.memory_weights[i], what + ", weights of the memory");
      }
    }
  }
}

/// cos(first), cos(first + 1), ...
V cosines(const xgrad::Shape& shape, double first) {
  Array<double> numbers(shape);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers.data()[i] = std::cos(static_cast<double>(i) + first);
  return V(numbers);
}

void expect_numbers(const V& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got.value().data()[i], want[i], 1e-14) << i;
}

TEST(PyTorchWeightsTest, OfTransformersAreThoseOfTheSeed) {
  const V source = cosines({2, 3, 4}, 0), target = cosines({2, 2, 4}, 0.5);
  xgrad::TransformerConfig config{
      .d_model = 4, .heads = 2, .d_ff = 6, .encoder_layers = 2, .decoder_layers = 2};
  expect_numbers(seeded(3, [&] { return xgrad::Transformer<double>(config)(source, target); }),
                 {0.8425680642974296, 0.6019686698627807, -1.6929201041727184, 0.2483833700125078,
                  -0.8988918048994674, 1.6927723633736889, -0.4722797727844333, -0.32160078568978817,
                  -0.8503004797884417, 0.8628133469903739, -1.131517278180176, 1.1190044109782438,
                  0.05727445928297612, 1.2306202575571106, -1.5530449927217533, 0.26515027588166645});
  EXPECT_EQ(xgrad::uniform<double>({1})(0), 0.15174551470907705) << "it draws as much";
  config.norm_first = true;
  const xgrad::Transformer<double> model = seeded(3, [&] { return xgrad::Transformer<double>(config); });
  expect_numbers(model(source, target),
                 {0.5857994309196465, 0.913412006097445, -1.6711980744977128, 0.17198663748062126,
                  -0.8859097877169536, 1.562041808674741, -0.860847146352589, 0.18471512539480162,
                  -0.6566018905624946, 0.7736980693175419, -1.2757994862304476, 1.1587033074754005,
                  0.12943671659038194, 0.9979573814996354, -1.648086464458925, 0.5206923663689076});
  const Mask mask{{{{true, false, true}}}};
  EXPECT_EQ(model(source, target, {.source = mask, .memory = mask}).value(),
            model.decoder()(target, model.encoder()(source, mask), {}, mask).value());
  expect_numbers(seeded(4,
                        [&] {
                          return xgrad::TransformerDecoder<double>({.d_model = 4,
                                                                    .heads = 2,
                                                                    .d_ff = 6,
                                                                    .layers = 2,
                                                                    .activation = xgrad::Activation::gelu,
                                                                    .is_causal = false})(target, source);
                        }),
                 {1.42856311795532, 0.3657757485505668, -0.5688748581279219, -1.2254640083779647,
                  -1.5871099670787632, 0.21591844612666228, 1.1827628575745521, 0.1884286633775487,
                  -1.1556258489652065, -0.54506420887325, 0.17165656793782127, 1.529033489900635,
                  1.027959597418205, 0.9602863896846612, -0.8448693633995924, -1.143376623703274});
  EXPECT_EQ(xgrad::uniform<double>({1})(0), 0.5476871467738905);
}

TEST(ComposedModelsTest, ToyDecoder) {
  const xgrad::ToyDecoderConfig config{.vocab_size = 7, .max_len = 5, .layers = encoder_configs()[3]};
  const xgrad::ToyDecoder<double> model(config);
  scramble(model);
  const State state = model.state_dict();
  const Ids ids{{1, 2, 3, 0}, {4, 5, 6, 1}};
  for (const bool training : {true, false}) {
    model.train(training);
    const auto want = seeded(8, [&] {
      const V embedded = embedding(ids, V(state.at("token_embedding.weight"))) +
                         narrow(V(state.at("position_embedding.pos_embedding.weight")), 0, 0, 4);
      return composed_encoder(embedded, below(state, "layers."), config.layers, causal_mask(4),
                              training ? p : 0);
    });
    expect_close(seeded(8, [&] { return model(ids); }), want.output, "hidden states");
    expect_same_result(seeded(8, [&] { return model.with_weights(ids); }), want, "with weights");
    expect_close(seeded(8, [&] { return model.token_logits(ids); }),
                 composed_linear(want.output, state, "token_head"), "logits");
  }
  EXPECT_TRUE(model.config().layers.is_causal);
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ShapeError>([&] {
              model(Ids{{1, 2, 3, 4, 5, 6}});
            }),
            "ToyDecoder: ids must have at most max_len 5 positions, got (1, 6)");
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ValueError>(
                [&] { xgrad::ToyDecoder<double>({.vocab_size = 7, .layers = config.layers}); }),
            "ToyDecoder: max_len must be at least 1, got 0");
}

// ---- The toy encoder ----

const Ids sentences{{1, 2, 3, 0}, {4, 5, 6, 1}, {0, 0, 0, 0}, {2, 0, 5, 0}};

/// The mean over the positions that are not padding, or the first one.
V composed_pooling(const V& encoded, const xgrad::ToyEncoderConfig& config) {
  const std::size_t batch = encoded.shape(0), seq = encoded.shape(1), width = encoded.shape(2);
  Array<double> pooled({batch, width}, 0.0);
  for (std::size_t row = 0; row < batch; ++row) {
    std::size_t real = 0;
    for (std::size_t i = 0; i < seq; ++i) {
      const bool counted = config.pooling == xgrad::Pooling::first
                               ? i == 0
                               : !config.pad_id || sentences(row, i) != *config.pad_id;
      if (!counted) continue;
      ++real;
      for (std::size_t column = 0; column < width; ++column)
        pooled(row, column) += encoded.value()(row, i, column);
    }
    for (std::size_t column = 0; column < width && real > 0; ++column)
      pooled(row, column) /= static_cast<double>(real);
  }
  return V(pooled);
}

TEST(ComposedModelsTest, ToyEncoder) {
  for (int variant = 0; variant < 16; ++variant) {
    const auto bit = [variant](int place) { return (variant >> place & 1) != 0; };
    xgrad::ToyEncoderConfig config{
        .vocab_size = 7,
        .max_len = 5,
        .classes = 3,
        .encoder = encoder_configs()[bit(0) ? 3 : 1],
        .positions = bit(1) ? xgrad::Positions::sinusoidal : xgrad::Positions::learned,
        .pooling = bit(2) ? xgrad::Pooling::first : xgrad::Pooling::mean};
    if (bit(3)) config.pad_id = 0;
    const xgrad::ToyEncoder<double> model(config);
    scramble(model);
    const State state = model.state_dict();
    Array<double> table = xt::zeros<double>({5, 4});
    if (bit(1)) {
      const V nothing(Array<double>({5, 4}, 0.0));
      table = xgrad::SinusoidalPositionalEncoding<double>(5, 4)(nothing).value();
    } else {
      table = state.at("position_embedding.pos_embedding.weight");
    }
    for (const bool training : {true, false}) {
      model.train(training);
      const auto want = seeded(8, [&] {
        const V embedded =
            embedding(sentences, V(state.at("token_embedding.weight"))) + narrow(V(table), 0, 0, 4);
        xgrad::AttentionMask<double> mask;
        if (config.pad_id) mask = xgrad::padding_mask(sentences, 0);
        return composed_encoder(embedded, below(state, "encoder."), config.encoder, mask, training ? p : 0);
      });
      const std::string what = "variant " + std::to_string(variant) + (training ? ", training" : "");
      expect_close(seeded(8, [&] { return model(sentences); }), want.output, what);
      expect_same_result(seeded(8, [&] { return model.with_weights(sentences); }), want, what);
      expect_close(seeded(8, [&] { return model.token_logits(sentences); }),
                   composed_linear(want.output, state, "token_head"), what + ", token logits");
      expect_close(seeded(8, [&] { return model.class_logits(sentences); }),
                   composed_linear(composed_pooling(want.output, config), state, "class_head"),
                   what + ", class logits");
    }
  }
}

TEST(ComposedModelsTest, PaddingMasksAllowWhatIsNoPadding) {
  const Mask mask = xgrad::padding_mask(Ids{{3, 9, 9}, {9, 2, 1}}, 9);
  EXPECT_EQ(xgrad::to_string(mask.shape()), "(2, 1, 1, 3)");
  EXPECT_EQ(mask, (Mask{{{{true, false, false}}}, {{{false, true, true}}}}));
}

// ---- Embeddings, positions and norms ----

TEST(EmbeddingModuleTest, ThePaddingRowStartsAsZerosAndStaysSo) {
  for (const std::int64_t row : {-1, 1}) {
    const xgrad::Embedding<double> model(3, 2, {.padding_idx = row});
    const std::size_t padding = row < 0 ? 2 : 1;
    sum(model(Ids{0, 1, 2, 2})).backward();
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t column = 0; column < 2; ++column) {
        EXPECT_EQ(model.weight().value()(i, column) == 0, i == padding) << i;
        EXPECT_EQ(model.weight().grad().value()(i, column), i == padding ? 0 : i == 2 ? 2 : 1) << i;
      }
    }
  }
  const xgrad::Embedding<double> plain(3, 2);
  EXPECT_EQ(seeded(5, [] { return xgrad::Embedding<double>(3, 2).weight().value(); }), seeded(5, [] {
              return xgrad::normal<double>({3, 2});
            }));
  EXPECT_EQ(xgrad_tests::message_of([] { xgrad::Embedding<float>(3, 2, {.padding_idx = -4}); }),
            "Embedding: padding_idx must be in [-3, 3), got -4");
}

TEST(LinearModuleTest, StartsUniformBelowOneOverTheRootOfItsInputs) {
  xgrad::manual_seed(3);
  const xgrad::Linear<double> model(16, 500);
  for (const V& parameter : model.parameters()) {
    const auto [least, most] = xt::minmax(parameter.value())();
    EXPECT_GE(least, -0.25);
    EXPECT_LE(most, 0.25);
    EXPECT_LT(least, -0.24);
    EXPECT_GT(most, 0.24);
  }
  EXPECT_FALSE(xgrad::Linear<double>(2, 2, false).bias().defined());
}

TEST(PositionsTest, AreAddedFromTheFirstOn) {
  const xgrad::LearnedPositionalEncoding<double> learned(3, 2);
  const Array<double> table = learned.parameters()[0].value();
  const V full = normal({2, 3, 2}, 1), part = normal({2, 2}, 2), single = normal({1, 2}, 3);
  EXPECT_EQ(learned(full).value(), Array<double>(full.value() + table));
  EXPECT_EQ(learned(part).value(), (part + narrow(V(table), 0, 0, 2)).value());
  EXPECT_EQ(learned(single).value(), (single + narrow(V(table), 0, 0, 1)).value());
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ShapeError>([&] { learned(normal({2}, 4)); }),
            "LearnedPositionalEncoding: x must be (..., seq, 2), got (2)");
  // An odd width ends with a sine.
  const Array<double> waves =
      xgrad::SinusoidalPositionalEncoding<double>(9, 5)(V(Array<double>({9, 5}, 0.0))).value();
  EXPECT_DOUBLE_EQ(waves(7, 4), std::sin(7 / std::pow(10000.0, 4.0 / 5)));
  EXPECT_DOUBLE_EQ(waves(7, 3), std::cos(7 / std::pow(10000.0, 2.0 / 5)));
}

TEST(LayerNormModuleTest, NormalisesWithItsEps) {
  const V x(normal({3, 2, 2}, 1).value() * 1e-3), residual(normal({3, 2, 2}, 2).value() * 1e-3);
  for (const double eps : {1e-5, 1e-3}) {
    const xgrad::LayerNorm<double> model = eps == 1e-5 ? xgrad::LayerNorm<double>(xgrad::Dims{2, 2})
                                                       : xgrad::LayerNorm<double>(xgrad::Dims{2, 2}, eps);
    scramble(model);
    expect_close(model(x), layer_norm(x, {2, 2}, model.weight(), model.bias(), eps), "one input");
    expect_close(model(x, residual), layer_norm(x + residual, {2, 2}, model.weight(), model.bias(), eps),
                 "with a residual");
  }
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ValueError>([] { xgrad::LayerNorm<double>(xgrad::Shape{}); }),
            "LayerNorm: normalized_shape must have a length, got ()");
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ValueError>([] { xgrad::LayerNorm<double>(2, std::nan("")); }),
            "LayerNorm: eps must be at least 0, got nan");
}

// ---- Modes ----

/// Passes its input through dropout at three depths.
struct Nested : Module<double> {
  struct Inner : Module<double> {
    Inner() : Module("Inner") {}
    xgrad::Dropout<double> a = child("a", xgrad::Dropout<double>(p)),
                           b = child("b", xgrad::Dropout<double>(p));
  };
  Nested() : Module("Nested") {}
  Inner first = child("first", Inner()), second = child("second", Inner());
};

std::vector<bool> modes(const Nested& model) {
  return {model.training(),         model.first.training(),  model.first.a.training(),
          model.first.b.training(), model.second.training(), model.second.a.training(),
          model.second.b.training()};
}

TEST(ModesTest, TrainAndEvalSetAllThatIsBelowAndNothingElse) {
  const Nested model;
  EXPECT_EQ(modes(model), std::vector<bool>(7, true));
  model.eval();
  EXPECT_EQ(modes(model), std::vector<bool>(7, false));
  model.first.train();
  EXPECT_EQ(modes(model), (std::vector<bool>{false, true, true, true, false, false, false}));
  model.train();
  model.second.b.train(false);
  EXPECT_EQ(modes(model), (std::vector<bool>{true, true, true, true, true, true, false}));
}

TEST(ModesTest, EvalModePutsEveryModuleBackIntoItsOwn) {
  const Nested model;
  for (unsigned set = 0; set < 128; ++set) {
    const auto bit = [set](unsigned place) { return (set >> place & 1) != 0; };
    model.train(bit(0));
    model.first.train(bit(1));
    model.first.a.train(bit(2));
    model.first.b.train(bit(3));
    model.second.train(bit(4));
    model.second.a.train(bit(5));
    model.second.b.train(bit(6));
    const std::vector<bool> before = modes(model);
    {
      const xgrad::EvalMode guard(model);
      EXPECT_EQ(modes(model), std::vector<bool>(7, false));
    }
    EXPECT_EQ(modes(model), before);
  }
}

}  // namespace composed_models_test
