#include <cmath>
#include <map>
#include <sstream>

#include <gtest/gtest.h>

#include <xgrad/xgrad.hpp>

#include "../difference.hpp"
#include "expect_error.hpp"
#include "files.hpp"

namespace models_test {

using xgrad::Array, xgrad::Ids, xgrad::Mask, xgrad::Variable;
using xgrad_tests::largest_difference;
using Config = xgrad::ToyEncoderConfig;

Config toy_config() {
  return {.vocab_size = 7,
          .max_len = 5,
          .classes = 3,
          .encoder = {.d_model = 4, .heads = 2, .d_ff = 8, .layers = 2},
          .pad_id = 0};
}

const Ids sentences{{1, 2, 3, 0}, {4, 5, 6, 1}};

std::vector<std::string> names_of(const xgrad::Module<float>& module) {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : module.named_parameters()) {
    names.push_back(name + " " + xgrad::to_string(parameter.shape()));
  }
  return names;
}

TEST(ModelNamesTest, AreThoseOfPyTorch) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(names_of(xgrad::Linear<float>(3, 2)), (Names{"weight (2, 3)", "bias (2)"}));
  EXPECT_EQ(names_of(xgrad::Linear<float>(3, 2, false)), (Names{"weight (2, 3)"}));
  EXPECT_EQ(names_of(xgrad::Embedding<float>(6, 4)), (Names{"weight (6, 4)"}));
  EXPECT_EQ(names_of(xgrad::LayerNorm<float>(xgrad::Dims{2, 3})), (Names{"weight (2, 3)", "bias (2, 3)"}));
  EXPECT_EQ(names_of(xgrad::LearnedPositionalEncoding<float>(10, 4)),
            (Names{"pos_embedding.weight (10, 4)"}));
  EXPECT_EQ(names_of(xgrad::SinusoidalPositionalEncoding<float>(10, 4)), Names{});
  EXPECT_EQ(names_of(xgrad::Dropout<float>(0.5)), Names{});
  EXPECT_EQ(names_of(xgrad::SelfAttention<float>(2)),
            (Names{"W_q.weight (2, 2)", "W_k.weight (2, 2)", "W_v.weight (2, 2)"}));
  EXPECT_EQ(names_of(xgrad::MultiHeadAttention<float>(4, 2, {.bias = true})),
            (Names{"W_Q.weight (4, 4)", "W_Q.bias (4)", "W_K.weight (4, 4)", "W_K.bias (4)",
                   "W_V.weight (4, 4)", "W_V.bias (4)", "out_proj.weight (4, 4)", "out_proj.bias (4)"}));
  EXPECT_EQ(names_of(xgrad::FeedForward<float>(4, 8)), (Names{"linear1.weight (8, 4)", "linear1.bias (8)",
                                                              "linear2.weight (4, 8)", "linear2.bias (4)"}));
  const Names layer{"self_attn.W_Q.weight (4, 4)",
                    "self_attn.W_K.weight (4, 4)",
                    "self_attn.W_V.weight (4, 4)",
                    "self_attn.out_proj.weight (4, 4)",
                    "feed_forward.linear1.weight (8, 4)",
                    "feed_forward.linear1.bias (8)",
                    "feed_forward.linear2.weight (4, 8)",
                    "feed_forward.linear2.bias (4)",
                    "norm1.weight (4)",
                    "norm1.bias (4)",
                    "norm2.weight (4)",
                    "norm2.bias (4)"};
  const xgrad::EncoderConfig encoder{.d_model = 4, .heads = 2, .d_ff = 8, .layers = 2, .norm_first = true};
  EXPECT_EQ(names_of(xgrad::TransformerEncoderLayer<float>(encoder)), layer);
  Names stack;
  for (const char* prefix : {"layers.0.", "layers.1."}) {
    for (const std::string& name : layer) stack.push_back(prefix + name);
  }
  stack.insert(stack.end(), {"norm.weight (4)", "norm.bias (4)"});
  EXPECT_EQ(names_of(xgrad::TransformerEncoder<float>(encoder)), stack);
  Names toy{"token_embedding.weight (7, 4)", "position_embedding.pos_embedding.weight (5, 4)"};
  for (const std::string& name : stack) toy.push_back("encoder." + name);
  toy.insert(toy.end(), {"token_head.weight (7, 4)", "token_head.bias (7)", "class_head.weight (3, 4)",
                         "class_head.bias (3)"});
  Config config = toy_config();
  config.encoder = encoder;
  EXPECT_EQ(names_of(xgrad::ToyEncoder<float>(config)), toy);
  Names decoder;
  for (const char* const attention : {"self_attn.", "multihead_attn."}) {
    for (const char* const projection : {"W_Q", "W_K", "W_V", "out_proj"}) {
      decoder.push_back(std::string(attention) + projection + ".weight (4, 4)");
      decoder.push_back(std::string(attention) + projection + ".bias (4)");
    }
  }
  decoder.insert(decoder.end(), layer.begin() + 4, layer.end());
  decoder.insert(decoder.end(), {"norm3.weight (4)", "norm3.bias (4)"});
  EXPECT_EQ(names_of(xgrad::TransformerDecoderLayer<float>({.d_model = 4, .heads = 2, .d_ff = 8})), decoder);
  Names decoders;
  for (const std::string& name : decoder) decoders.push_back("layers.0." + name);
  EXPECT_EQ(names_of(xgrad::TransformerDecoder<float>({.d_model = 4, .heads = 2, .d_ff = 8})), decoders);
  const xgrad::Transformer<float> both({.d_model = 4, .heads = 2, .d_ff = 8, .decoder_layers = 1});
  const Names names = names_of(both);
  EXPECT_EQ(names.size(), 6 * 16 + 2 + decoders.size() + 2);
  EXPECT_EQ(names.back(), "decoder.norm.bias (4)");
  EXPECT_EQ(names_of(xgrad::ToyDecoder<float>({.vocab_size = 7, .max_len = 5, .layers = encoder}))[2],
            "layers." + stack.front());
}

TEST(ModuleTest, StateDictsGoRound) {
  const xgrad::ToyEncoder<double> a(toy_config()), b(toy_config());
  EXPECT_GT(largest_difference(a.class_logits(sentences).value(), b.class_logits(sentences).value()), 1e-3);
  b.load_state_dict(a.state_dict());
  EXPECT_EQ(a.class_logits(sentences).value(), b.class_logits(sentences).value());
  EXPECT_EQ(a.parameter_count(), 7 * 4 + 5 * 4 + 2 * (4 * 16 + 40 + 36 + 16) + 35 + 15u);
}

TEST(ModuleTest, RefusesAStateDictThatDoesNotFit) {
  const xgrad::MultiHeadAttention<float> model(4, 2);
  const xgrad::StateDict<float> before = model.state_dict();
  xgrad::StateDict<float> state = before;
  state["W_K.weight"] = xt::zeros<float>({4, 4});
  state["W_Q.weight"] = xt::zeros<float>({4, 8});
  EXPECT_EQ(xgrad_tests::message_of([&] { model.load_state_dict(state); }),
            "load_state_dict: 'W_Q.weight' must have shape (4, 4), got (4, 8)");
  state.erase("out_proj.weight");
  state["out.weight"] = xt::zeros<float>({4, 4});
  EXPECT_EQ(xgrad_tests::message_of([&] { model.load_state_dict(state); }),
            "load_state_dict: 'W_Q.weight' must have shape (4, 4), got (4, 8); 'out_proj.weight' is missing; "
            "'out.weight' is unexpected");
  EXPECT_EQ(model.state_dict(), before);
}

/// Declares what it is told to.
struct Custom : xgrad::Module<float> {
  Custom() : Module("Custom") {}
  using Module::buffer, Module::child, Module::parameter;
};

TEST(ModuleTest, RefusesNamesThatAreTaken) {
  Custom module;
  module.parameter("w", xt::zeros<float>({2}));
  module.child("c", xgrad::Linear<float>(1, 1));
  EXPECT_EQ(xgrad_tests::message_of([&] { module.parameter("c", xt::zeros<float>({2})); }),
            "Custom: the name 'c' must not be declared twice");
  EXPECT_EQ(xgrad_tests::message_of([&] { module.child("w", xgrad::Linear<float>(1, 1)); }),
            "Custom: the name 'w' must not be declared twice");
}

TEST(ModuleTest, RefusesNamesThatWouldBeThoseOfAChildsParameters) {
  Custom module, other;
  EXPECT_EQ(xgrad_tests::message_of([&] { module.parameter("", xgrad::zeros<float>({2})); }),
            "Custom: a name must not be empty");
  module.child("c", xgrad::Linear<float>(1, 1));
  EXPECT_EQ(xgrad_tests::message_of([&] { module.buffer("c.weight", xgrad::zeros<float>({2})); }),
            "Custom: the name 'c.weight' must not be below that of the child 'c'");
  other.parameter("c.weight", xgrad::zeros<float>({2}));
  EXPECT_EQ(xgrad_tests::message_of([&] { other.child("c", xgrad::Linear<float>(1, 1)); }),
            "Custom: the name 'c.weight' must not be below that of the child 'c'");
}

TEST(ModuleTest, RefusesToContainItself) {
  Custom inner, outer;
  outer.child("inner", inner);
  EXPECT_EQ(xgrad_tests::message_of([&] { inner.child("outer", outer); }),
            "Custom: the child 'outer' must not contain its parent");
}

TEST(ModuleTest, ASharedParameterIsTrainedOnceAndStoredUnderAllItsNames) {
  Custom module;
  const auto shared = module.child("a", xgrad::Linear<float>(2, 2, false));
  module.child("b", shared);
  EXPECT_EQ(module.parameters().size(), 1u);
  EXPECT_EQ(names_of(module), std::vector<std::string>{"a.weight (2, 2)"});
  EXPECT_EQ(module.parameter_count(), 4u);
  EXPECT_EQ(module.state_dict().size(), 2u);
}

TEST(ModuleTest, BuffersAreSavedAndLoadedButNotTrained) {
  Custom module, inner;
  const Variable<float> mean = inner.buffer("mean", xgrad::zeros<float>({2}));
  module.parameter("w", xgrad::ones<float>({2}));
  module.child("norm", inner);
  EXPECT_FALSE(mean.requires_grad());
  EXPECT_EQ(names_of(module), std::vector<std::string>{"w (2)"});
  ASSERT_EQ(module.named_buffers().size(), 1u);
  EXPECT_EQ(module.named_buffers()[0].first, "norm.mean");
  xgrad::StateDict<float> state = module.state_dict();
  EXPECT_EQ(state.size(), 2u);
  state.at("norm.mean") = Array<float>{3, 4};
  module.load_state_dict(state);
  EXPECT_EQ(mean.value(), (Array<float>{3, 4}));
  state.erase("norm.mean");
  EXPECT_EQ(xgrad_tests::message_of([&] { module.load_state_dict(state); }),
            "load_state_dict: 'norm.mean' is missing");
  EXPECT_EQ(xgrad_tests::message_of([&] { inner.buffer("mean", xgrad::zeros<float>({2})); }),
            "Custom: the name 'mean' must not be declared twice");
}

TEST(ModuleTest, FrozenPartsGetNoGradients) {
  const xgrad::ToyEncoder<double> model(toy_config());
  const auto loss = [&] { return sum(square(model.class_logits(sentences))); };
  const Variable<double> before = loss();
  before.backward({.retain_graph = true});
  std::map<std::string, Array<double>> whole;
  for (const auto& [name, parameter] : model.named_parameters())
    if (parameter.has_grad()) whole[name] = parameter.grad().value();

  const auto frozen = [](const std::string& name) {
    return name.starts_with("token_embedding.") || name.starts_with("encoder.layers.1.") ||
           name == "class_head.bias";
  };
  for (const char* part : {"token_embedding", "encoder.layers.1", "class_head.bias"})
    model.requires_grad(part, false);
  for (int graph = 0; graph < 2; ++graph) {  // one that was recorded before, and a new one
    graph == 0 ? before.backward() : loss().backward();
    for (const auto& [name, parameter] : model.named_parameters()) {
      SCOPED_TRACE(name);
      EXPECT_EQ(parameter.requires_grad(), !frozen(name));
      EXPECT_EQ(parameter.has_grad(), whole.contains(name) && !frozen(name));
    }
    for (const auto& [name, parameter] : model.named_parameters()) {
      if (graph == 1 && parameter.has_grad()) {
        EXPECT_EQ(parameter.grad().value(), whole[name]) << name;
      }
    }
    model.zero_grad();
  }

  xgrad::SGD<double> optimizer(model.parameters());
  const xgrad::StateDict<double> start = model.state_dict();
  loss().backward();
  optimizer.step();
  for (const auto& [name, array] : model.state_dict())
    EXPECT_EQ(array == start.at(name), frozen(name) || !whole.contains(name)) << name;

  model.requires_grad("encoder.layers", false);
  model.requires_grad({"token_head", "encoder.layers.0"}, true);
  EXPECT_TRUE(model.state()
                  .children[2]
                  .second->children[0]
                  .second->children[2]
                  .second->weights[0]
                  .second.variable()
                  .requires_grad());
  model.requires_grad(false);
  EXPECT_FALSE(loss().requires_grad());
  model.requires_grad(true);
  loss().backward();
  for (const auto& [name, parameter] : model.named_parameters())
    EXPECT_EQ(parameter.has_grad(), whole.contains(name)) << name;
  for (const char* name : {"encoder.layers.2", "encoder.layer", "layers.0", ""}) {
    EXPECT_EQ(xgrad_tests::message_of<xgrad::ValueError>([&] { model.requires_grad(name, false); }),
              std::string("ToyEncoder: requires_grad needs the name of a parameter or a submodule, got '") +
                  name + "'");
  }
}

TEST(ModuleTest, WhatIsFrozenIsLeftAlone) {
  using xgrad_tests::message_of;
  const xgrad::Linear<double> layer(3, 2);
  const Variable<double> x(Array<double>{{1, 2, 3}}, true), weight = layer.weight(), bias = layer.bias();
  const auto loss = [&] { return sum(square(layer(x) - 1)); };
  xgrad::SGD<double> sgd(layer.parameters(), {.lr = 0.1, .momentum = 0.9});
  xgrad::LBFGS<double> lbfgs(layer.parameters(), {.max_iter = 2});
  const auto closure = [&] {
    lbfgs.zero_grad();
    const Variable<double> y = loss();
    y.backward();
    return y;
  };
  loss().backward();
  sgd.step();
  lbfgs.step(closure);

  layer.requires_grad("weight", false);
  const Array<double> before = weight.value(), bias_before = bias.value();
  closure();
  sgd.step();
  lbfgs.step(closure);
  EXPECT_EQ(weight.value(), before);
  EXPECT_NE(bias.value(), bias_before);
  layer.zero_grad();
  xgrad::backward_mean(xgrad::WeightedLoss<double>{.sum = loss(), .weight = 1}, layer.parameters());
  EXPECT_FALSE(weight.has_grad());
  EXPECT_TRUE(bias.has_grad());

  const auto expected = grad(loss(), {x, bias});
  const Variable<double> again =
      sum(square(xgrad::checkpoint([&](const Variable<double>& in) { return layer(in); }, x) - 1));
  const auto found = grad(again, {x, bias});
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(found[i].value(), expected[i].value());
  EXPECT_EQ(message_of<xgrad::GraphError>([&] { weight.set_grad(weight); }),
            "set_grad: only a leaf that requires a gradient keeps one, this variable (2, 3) requires none");
  EXPECT_EQ(message_of<xgrad::GraphError>([&] { grad(loss(), {weight}); }),
            "grad: input 0 does not require a gradient, or is frozen");
  EXPECT_EQ(message_of<xgrad::GraphError>([&] { grad_each(loss(), {weight}, [](std::size_t, auto) {}); }),
            "grad_each: leaf 0 must be a leaf that requires a gradient, got one that does not require any, "
            "or is frozen");

  const Variable<double> recorded = sum(layer(x.detach()));
  layer.requires_grad(false);
  recorded.backward();
  EXPECT_FALSE(bias.has_grad());
  EXPECT_NE(message_of<xgrad::GraphError>([&] { recorded.backward(); }).find("was released"),
            std::string::npos);
}

TEST(ModuleTest, SecondDerivativesPassFrozenParameters) {
  const xgrad::Linear<double> layer(3, 2);
  layer.requires_grad(false);
  const Variable<double> x(Array<double>{{1, 2, 3}}, true);
  const Variable<double> dx = grad(sum(square(layer(x))), {x}, {.create_graph = true})[0];
  const Variable<double> d2x = grad(sum(square(dx)), {x})[0];
  const Array<double> w = layer.weight().value();
  const Variable<double> expected =
      4.0 * matmul(matmul(dx.detach(), Variable<double>(xt::transpose(w))), Variable<double>(w));
  EXPECT_LT(largest_difference(d2x.value(), expected.value()), 1e-12);
}

TEST(ModuleTest, CopiesAreHandlesToOneModule) {
  const xgrad::Linear<float> a(2, 2), b = a;
  a.weight().assign(xt::ones<float>({2, 2}));
  a.eval();
  EXPECT_EQ(b.weight().value(), (Array<float>{{1, 1}, {1, 1}}));
  EXPECT_FALSE(b.training());
}

TEST(ModuleTest, TrainAndEvalReachTheChildren) {
  Config config = toy_config();
  config.encoder.dropout = 0.5;
  const xgrad::ToyEncoder<float> model(config);
  const auto logits = [&] { return model.token_logits(sentences).value(); };
  EXPECT_TRUE(model.training());
  EXPECT_NE(logits(), logits());
  model.eval();
  EXPECT_EQ(logits(), logits());
  model.train();
  EXPECT_NE(logits(), logits());
}

TEST(ModuleTest, ZeroGradReachesTheChildren) {
  const xgrad::FeedForward<float> model(2, 3);
  sum(model(Variable<float>(Array<float>{{1, 2}}))).backward();
  for (const Variable<float>& parameter : model.parameters()) EXPECT_TRUE(parameter.has_grad());
  model.zero_grad();
  for (const Variable<float>& parameter : model.parameters()) EXPECT_FALSE(parameter.has_grad());
}

template <class Change>
std::string config_error(Change&& change) {
  Config config = toy_config();
  change(config);
  return xgrad_tests::message_of([&] { xgrad::ToyEncoder<float> model(config); });
}

TEST(ModuleTest, LayersTakeGivenNumbers) {
  const xgrad::Linear<double> drawn(3, 2);
  const xgrad::Linear<double> given(drawn.weight().value(), drawn.bias().value());
  const Variable<double> x(Array<double>{{1, -2, 3}});
  xgrad_tests::expect_same_bits(given(x).value(), drawn(x).value());
  EXPECT_FALSE(xgrad::Linear<double>(drawn.weight().value()).bias().defined());
  const xgrad::Embedding<double> table(Array<double>{{1, 2}, {3, 4}}, {.padding_idx = 1});
  const Variable<double> rows = table(xgrad::Ids{1, 0, 1});
  xgrad_tests::expect_same_bits(rows.value(), Array<double>{{3, 4}, {1, 2}, {3, 4}});
  sum(rows).backward();
  xgrad_tests::expect_same_bits(table.weight().grad().value(), Array<double>{{1, 1}, {0, 0}});
  const xgrad::LayerNorm<double> norm(Array<double>{2, 2}, Array<double>{1, 1}, 0);
  xgrad_tests::expect_same_bits(norm(Variable<double>(Array<double>{{-1, 1}})).value(),
                                Array<double>{{-1, 3}});
  const Variable<double> near(Array<double>{{-1e-3, 1e-3}});  // where eps counts
  const xgrad::LayerNorm<double> fresh(2), same(Array<double>{1, 1}, Array<double>{0, 0});
  xgrad_tests::expect_same_bits(same(near).value(), fresh(near).value());
}

TEST(ModelErrorsTest, NameTheShapeThatALayerNeeds) {
  const xgrad::TransformerEncoderLayer<float> encoder({.d_model = 4, .heads = 2, .d_ff = 8});
  const xgrad::TransformerDecoderLayer<float> decoder({.d_model = 4, .heads = 2, .d_ff = 8});
  const Variable<float> x(Array<float>(xgrad::Shape{1, 3, 4}, 1.0F)),
      flat(Array<float>(xgrad::Shape{3, 4}, 1.0F)), wide(Array<float>(xgrad::Shape{1, 3, 8}, 1.0F));
  const auto message = [](const auto& call) { return xgrad_tests::message_of<xgrad::ShapeError>(call); };
  EXPECT_EQ(message([&] { encoder(flat); }),
            "TransformerEncoderLayer: x must be (batch, length, 4), got (3, 4)");
  EXPECT_EQ(message([&] { encoder(wide); }),
            "TransformerEncoderLayer: x must be (batch, length, 4), got (1, 3, 8)");
  EXPECT_EQ(message([&] { decoder(flat, x); }),
            "TransformerDecoderLayer: x must be (batch, length, 4), got (3, 4)");
  EXPECT_EQ(message([&] { decoder(x, wide); }),
            "TransformerDecoderLayer: memory must be (batch, length, 4), got (1, 3, 8)");
  EXPECT_EQ(message([&] { decoder(x, {}); }),
            "TransformerDecoderLayer: memory must be (batch, length, 4), got an undefined Variable");
}

TEST(ModelErrorsTest, NameTheSizeThatCannotBe) {
  EXPECT_EQ(xgrad_tests::message_of([] { xgrad::MultiHeadAttention<float>(6, 4); }),
            "MultiHeadAttention: d_model must be divisible by heads, got 6 and 4");
  EXPECT_EQ(config_error([](Config& c) { c.encoder.heads = 3; }),
            "TransformerEncoderLayer: d_model must be divisible by heads, got 4 and 3");
  EXPECT_EQ(config_error([](Config& c) { c.encoder.heads = 0; }),
            "TransformerEncoderLayer: heads must be at least 1, got 0");
  EXPECT_EQ(config_error([](Config& c) { c.encoder.d_model = 0; }),
            "ToyEncoder: d_model must be at least 1, got 0");
  EXPECT_EQ(config_error([](Config& c) { c.encoder.d_ff = 0; }),
            "TransformerEncoderLayer: d_ff must be at least 1, got 0");
  EXPECT_EQ(config_error([](Config& c) { c.encoder.layers = 0; }),
            "TransformerEncoder: layers must be at least 1, got 0");
  EXPECT_EQ(config_error([](Config& c) { c.encoder.dropout = 1.5; }),
            "TransformerEncoderLayer: dropout must be in [0, 1], got 1.5");
  EXPECT_EQ(config_error([](Config& c) { c.encoder.dropout = std::nan(""); }),
            "TransformerEncoderLayer: dropout must be in [0, 1], got nan");
  EXPECT_EQ(config_error([](Config& c) { c.encoder.eps = -1; }), "LayerNorm: eps must be at least 0, got -1");
  EXPECT_EQ(config_error([](Config& c) { c.vocab_size = 0; }),
            "ToyEncoder: vocab_size must be at least 1, got 0");
  EXPECT_EQ(config_error([](Config& c) { c.max_len = 0; }), "ToyEncoder: max_len must be at least 1, got 0");
  EXPECT_EQ(config_error([](Config& c) { c.max_len = static_cast<std::size_t>(-1); }),
            "ToyEncoder: max_len must be at least 1, got -1");
  EXPECT_EQ(config_error([](Config& c) { c.max_len = 0x80000000; }),
            "ToyEncoder: max_len must be at most 2147483647, got 2147483648");
  EXPECT_EQ(config_error([](Config& c) { c.pad_id = 7; }), "ToyEncoder: pad_id must be in [0, 7), got 7");
  EXPECT_EQ(xgrad_tests::message_of([] { xgrad::Linear<float>(0, 2); }),
            "Linear: in_features must be at least 1, got 0");
  EXPECT_EQ(xgrad_tests::message_of([] { xgrad::Embedding<float>(3, 0); }),
            "Embedding: dim must be at least 1, got 0");
  EXPECT_EQ(xgrad_tests::message_of([] { xgrad::Embedding<float>(3, 2, {.padding_idx = 3}); }),
            "Embedding: padding_idx must be in [-3, 3), got 3");
  EXPECT_EQ(xgrad_tests::message_of([] { xgrad::LayerNorm<float>(0); }),
            "LayerNorm: lengths of normalized_shape must be at least 1, got 0");
  using Array = xgrad::Array<float>;
  EXPECT_EQ(xgrad_tests::message_of([] { xgrad::Linear<float>(Array::from_shape({3})); }),
            "Linear: weight must be (out, in), got (3)");
  EXPECT_EQ(xgrad_tests::message_of([] {
              xgrad::Linear<float>(Array::from_shape({3, 2}), Array::from_shape({2}));
            }),
            "Linear: bias must be (out), got (2) and weight (3, 2)");
  EXPECT_EQ(xgrad_tests::message_of([] { xgrad::Embedding<float>(Array::from_shape({3})); }),
            "Embedding: weight must be (vocabulary, dim), got (3)");
  EXPECT_EQ(xgrad_tests::message_of([] {
              xgrad::Embedding<float>(Array::from_shape({3, 2}), {.padding_idx = -4});
            }),
            "Embedding: padding_idx must be in [-3, 3), got -4");
  EXPECT_EQ(xgrad_tests::message_of(
                [] { xgrad::LayerNorm<float>(Array::from_shape({3}), Array::from_shape({2})); }),
            "LayerNorm: weight and bias must have the same shape, got (3) and (2)");
  EXPECT_EQ(xgrad_tests::message_of([] { xgrad::Dropout<float>(-0.5); }),
            "Dropout: p must be in [0, 1], got -0.5");
}

TEST(ModelErrorsTest, NameTheInputThatDoesNotFit) {
  const xgrad::ToyEncoder<float> model(toy_config());
  EXPECT_EQ(xgrad_tests::message_of([&] {
              model(Ids{{1, 2, 3, 4, 5, 6}});
            }),
            "ToyEncoder: ids must have at most max_len 5 positions, got (1, 6)");
  EXPECT_EQ(xgrad_tests::message_of([&] {
              model(Ids{1, 2});
            }),
            "ToyEncoder: ids must be (batch, seq), got (2)");
  EXPECT_EQ(xgrad_tests::message_of([&] {
              model(Ids{{1, 7}});
            }),
            "token_embedding: embedding: ids must be in [0, 7), got 7 (vocabulary size 7)");
  EXPECT_EQ(
      xgrad_tests::message_of([&] {
        model.class_logits(model(sentences), Ids{{1, 2}});
      }),
      "ToyEncoder: encoded (batch, seq, d_model) must match ids (batch, seq), got (2, 4, 4) and (1, 2)");
  EXPECT_EQ(
      xgrad_tests::message_of([&] {
        model.class_logits(model(sentences), Ids{{1, 2, 3}, {1, 2, 3}});
      }),
      "ToyEncoder: encoded (batch, seq, d_model) must match ids (batch, seq), got (2, 4, 4) and (2, 3)");
  Config config = toy_config();
  config.classes = 0;
  EXPECT_EQ(xgrad_tests::message_of([&] { xgrad::ToyEncoder<float>(config).class_logits(sentences); }),
            "ToyEncoder: class_logits needs a class head, but the config has 0 classes");
  const Variable<float> x(xt::zeros<float>({1, 12, 4}));
  EXPECT_EQ(xgrad_tests::message_of([&] { xgrad::LearnedPositionalEncoding<float>(10, 4)(x); }),
            "LearnedPositionalEncoding: x may have max_len 10 positions at most, got 12 in (1, 12, 4)");
  EXPECT_EQ(xgrad_tests::message_of([&] { xgrad::LearnedPositionalEncoding<float>(11, 4)(x); }),
            "LearnedPositionalEncoding: x may have max_len 11 positions at most, got 12 in (1, 12, 4)");
  EXPECT_EQ(xgrad_tests::message_of([&] { xgrad::SinusoidalPositionalEncoding<float>(20, 6)(x); }),
            "SinusoidalPositionalEncoding: x must be (..., seq, 6), got (1, 12, 4)");
  EXPECT_EQ(
      xgrad_tests::message_of([&] {
        xgrad::MultiHeadAttention<float>(4, 2)(Variable<float>(xt::zeros<float>({3, 4})));
      }),
      "MultiHeadAttention: q, k and v must be (batch, seq, d_model), got q (3, 4), k (3, 4) and v (3, 4)");
  EXPECT_EQ(xgrad_tests::message_of([&] { xgrad::SelfAttention<float>(4, 0, 1)(x); }),
            "SelfAttention: row_dim and col_dim must be the last two axes of x, got 0, 1 and x (1, 12, 4)");
  EXPECT_EQ(xgrad_tests::message_of([] {
              xgrad::padding_mask(Ids{1, 2}, 0);
            }),
            "padding_mask: ids must be (batch, seq), got (2)");
}

/// Passes on what a child of a child cannot take.
struct Inner : xgrad::Module<float> {
  Inner() : Module("Inner"), linear(child("linear1", xgrad::Linear<float>(3, 2))) {}
  Variable<float> operator()(const Variable<float>& x) const {
    const auto scope = this->scope();
    return linear(x);
  }
  xgrad::Linear<float> linear;
};

struct Outer : xgrad::Module<float> {
  Outer() : Module("Outer"), inner(child("layers.4", Inner())), alone(2, 2) {}
  Variable<float> operator()(const Variable<float>& x, bool with_child) const {
    const auto scope = this->scope();
    return with_child ? inner(x) : alone(x);
  }
  Inner inner;
  xgrad::Linear<float> alone;
};

/// The error of linear for x and a weight (out, in).
std::string message_of_linear(const Variable<float>& x, std::size_t out, std::size_t in) {
  return xgrad_tests::message_of<xgrad::ShapeError>([&] {
    linear(x, Variable<float>(xgrad::zeros<float>({out, in})), Variable<float>());
  });
}

TEST(ModelErrorsTest, NameThePlaceInTheModel) {
  const Outer model;
  const Variable<float> x(xgrad::zeros<float>({1, 4}));
  const std::string text = message_of_linear(x, 2, 3);
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ShapeError>([&] { model(x, true); }), "layers.4.linear1: " + text);
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ShapeError>([&] { model.inner(x); }), "linear1: " + text);
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ShapeError>([&] { model.inner.linear(x); }), text);
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ShapeError>([&] { model(x, false); }),
            "Linear: " + message_of_linear(x, 2, 2))
      << "no child of it: its type";
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ShapeError>([&] { model.inner.linear(x); }), text)
      << "nothing runs";
}

TEST(ModelErrorsTest, AnomaliesNameThePlaceInTheModel) {
  const Outer model;
  const xgrad::DetectAnomaly guard;
  const Variable<float> x(Array<float>{{1, 2, std::nanf("")}}), ones(xgrad::ones<float>({1, 3}));
  EXPECT_EQ(xgrad_tests::message_of<xgrad::AnomalyError>([&] { model(x, true); }),
            "layers.4.linear1: detect_anomaly: the result (1, 2) of 'linear' is nan at (0, 0); so was input "
            "0 (1, 3) "
            "at (0, 2)");
  const Variable<float> y = model(ones, true);
  EXPECT_EQ(
      xgrad_tests::message_of<xgrad::AnomalyError>([&] {
        y.backward(Variable<float>(xgrad::full<float>({1, 2}, std::nanf(""))));
      }),
      "layers.4.linear1: detect_anomaly: the gradient (2, 3) that 'linear' passes back to input 1 is nan at "
      "(0, 0)");
}

TEST(ModelErrorsTest, ErrorsOfABackwardNameThePlaceInTheModel) {
  const Outer model;
  const Variable<float> x(xgrad::ones<float>({1, 3}), true);
  const auto message = [](const Variable<float>& loss) {
    return xgrad_tests::message_of<xgrad::GraphError>([&] { loss.backward(); });
  };
  Variable<float> loss = sum(model(x, true));
  model.inner.linear.weight().assign(xgrad::ones<float>({2, 3}));
  EXPECT_TRUE(message(loss).starts_with("layers.4.linear1: backward: value 1 that 'linear' saved"))
      << message(loss);
  loss = sum(model.inner.linear(x));
  loss.backward();
  EXPECT_TRUE(message(loss).starts_with("backward: the graph through 'sum' was released")) << "in no module";
  {
    const Outer shorter_lived;
    loss = sum(shorter_lived(x, true));
    shorter_lived.inner.linear.weight().assign(xgrad::ones<float>({2, 3}));
  }
  EXPECT_TRUE(message(loss).starts_with("backward: value 1 that 'linear' saved")) << message(loss);
}

struct Checkpointed : xgrad::Module<float> {
  Checkpointed() : Module("Checkpointed"), outer(child("outer", Outer())) {}
  Variable<float> operator()(const Variable<float>& x) const {
    const auto scope = this->scope();
    return xgrad::checkpoint([this](const Variable<float>& at) { return outer(at, true); }, x);
  }
  Outer outer;
};

TEST(ModelErrorsTest, ModulesHaveTheSameNamesInTheSecondRunOfACheckpoint) {
  struct Names : xgrad::Watcher {
    void on_module_begin(const xgrad::RunningModule& module) noexcept override {
      list.push_back(module.name);
    }
    std::vector<std::string> list;
  };
  const Checkpointed model;
  const Variable<float> x(xgrad::ones<float>({1, 3}), true);
  Names first;
  const Variable<float> loss = sum(model(x));
  EXPECT_EQ(first.list, (std::vector<std::string>{"", "outer", "outer.layers.4", "outer.layers.4.linear1"}));
  Names second;
  loss.backward();
  EXPECT_EQ(second.list, (std::vector<std::string>{"outer", "outer.layers.4", "outer.layers.4.linear1"}));
  const Variable<float> of_part =
      sum(xgrad::checkpoint([&](const Variable<float>& at) { return model.outer(at, true); }, x));
  Names third;
  of_part.backward();
  EXPECT_EQ(third.list, (std::vector<std::string>{"", "layers.4", "layers.4.linear1"}));
}

TEST(ModelErrorsTest, AModuleWithTwoParentsIsNamedByTheOneThatCallsIt) {
  const Inner shared;
  struct Parent : xgrad::Module<float> {
    Parent(const char* name, const Inner& inner) : Module("Parent"), inner_(child(name, inner)) {}
    Variable<float> operator()(const Variable<float>& x) const {
      const auto scope = this->scope();
      return inner_(x);
    }

   private:
    Inner inner_;
  };
  const Parent encoder("encoder", shared), decoder("decoder", shared);
  const Variable<float> x(xgrad::zeros<float>({1, 4}));
  const std::string text = message_of_linear(x, 2, 3);
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ShapeError>([&] { encoder(x); }), "encoder.linear1: " + text);
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ShapeError>([&] { decoder(x); }), "decoder.linear1: " + text);
}

TEST(ModelErrorsTest, AMaskForEachSequenceIsNotTakenForOneOfQueries) {
  const xgrad::MultiHeadAttention<float> attention(4, 2);
  const Variable<float> x(xgrad::normal<float>({3, 3, 4}));
  const Mask mask{{true, false, false}, {true, true, false}, {true, true, true}};
  const std::string text =
      "attn_mask (3, 3) may be for queries or for sequences, as there are 3 of each: reshape it to (1, 3, 3) "
      "or (3, 1, 1, 3)";
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ShapeError>([&] { attention(x, mask); }),
            "self_attention: " + text);
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ShapeError>([&] { attention.with_weights(x, mask); }),
            "scaled_dot_product_attention: " + text);
  const auto of_queries = attention.with_weights(x, reshape(mask, {1, 3, 3})).weights.value();
  const auto of_sequences = attention.with_weights(x, reshape(mask, {3, 1, 1, 3})).weights.value();
  EXPECT_EQ(of_queries(2, 0, 0, 1), 0);
  EXPECT_NE(of_queries(0, 0, 2, 1), 0);
  EXPECT_NE(of_sequences(2, 0, 0, 1), 0);
  EXPECT_EQ(of_sequences(0, 0, 2, 1), 0);
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ShapeError>([&] {
              attention(Variable<float>(xgrad::normal<float>({2, 3, 4})), xgrad::full<bool>({2, 3}, true));
            }),
            "self_attention: attn_mask must broadcast to the scores (2, 2, 3, 3), got (2, 3), which for "
            "sequences is (2, 1, 1, 3)");
  const Variable<float> one(xgrad::normal<float>({1, 1, 4}));
  EXPECT_EQ(attention(one, xgrad::full<bool>({1, 1}, true)).value(), attention(one).value());
  const Variable<float> two(xgrad::normal<float>({2, 3, 4}));
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ShapeError>([&] {
              attention(two, xgrad::full<bool>({2, 3, 3}, true));
            }),
            "self_attention: attn_mask (2, 3, 3) may be for heads or for sequences, as there are 2 of each: "
            "reshape it to (1, 2, 3, 3) or (2, 1, 3, 3)");
  EXPECT_EQ(attention(two, mask).value(), attention(two, reshape(mask, {1, 3, 3})).value());
}

TEST(ModelsTest, WeightsOfBfloat16NumbersAreNoParameters) {
  const Array<float> numbers{{1.5F, -0.25F, 3}, {0.125F, 2, -1}};  // which bfloat16 has
  const auto weight = xgrad::Weight<float>::bfloat16(numbers);
  const xgrad::Linear<float> linear(weight, Array<float>{0.5F, 1}), plain(numbers, Array<float>{0.5F, 1});
  const Variable<float> x(Array<float>{{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(linear(x).value(), plain(x).value());
  EXPECT_EQ(names_of(linear), std::vector<std::string>{"bias (2)"});
  ASSERT_EQ(linear.named_weights().size(), 2u);
  EXPECT_EQ(linear.named_weights()[0].first, "weight");
  EXPECT_EQ(linear.stored_weight().values(), numbers);
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ValueError>([&] { static_cast<void>(linear.weight()); }),
            "Weight: dtype must be float32, got bfloat16");
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ValueError>([&] { linear.state_dict(); }),
            "state_dict: 'weight' must be of float numbers, got bfloat16");
  EXPECT_NE(summary(linear).find("weight  (2, 3)    bfloat16"), std::string::npos) << summary(linear);
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ShapeError>([&] {
              xgrad::Linear<float>(weight, Array<float>{1, 2, 3});
            }),
            "Linear: bias must be (out), got (3) and weight (2, 3)");

  const xgrad::Embedding<double> rows(xgrad::Weight<double>::bfloat16(numbers));
  const Ids ids{{1, 0, 1}};
  EXPECT_EQ(rows(ids).value(), xgrad::Embedding<double>(Array<double>(numbers))(ids).value());
  EXPECT_TRUE(rows.named_parameters().empty());
  EXPECT_EQ(rows.named_weights().size(), 1u);
  for (const std::int64_t wrong : {-1, 2}) {
    EXPECT_EQ(xgrad_tests::message_of<xgrad::IndexError>([&] { rows(Ids{wrong}); }),
              "embedding: ids must be in [0, 2), got " + std::to_string(wrong) + " (vocabulary size 2)");
  }
  Custom both;
  both.child("a", linear);
  both.child("b", linear);
  EXPECT_EQ(both.named_weights().size(), 2u) << "shared";
}

TEST(ModelsTest, WhatAWeightOfFewerBitsCannotDoNamesIt) {
  Custom model;
  model.child("a",
              xgrad::Linear<float>(xgrad::Weight<float>::bfloat16(Array<float>{{1, 2}}), Array<float>{1}));
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ValueError>([&] {
              model.load_state_dict({{"a.weight", Array<float>{{1, 2}}}});
            }),
            "load_state_dict: 'a.weight' must be of float numbers, got bfloat16; 'a.bias' is missing");
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ValueError>([&] { model.requires_grad("a.weight", true); }),
            "requires_grad: 'a.weight' must be of float numbers, got bfloat16");
  model.requires_grad("a.weight", false);
  model.requires_grad("a", false);
  EXPECT_FALSE(model.parameters()[0].requires_grad());
  model.requires_grad(true);
  EXPECT_TRUE(model.parameters()[0].requires_grad());
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ValueError>([] {
              xgrad::Linear<float>(xgrad::Weight<float>(Variable<float>(Array<float>{{1, 2}})));
            }),
            "Linear: the weight 'weight' must be a leaf that requires a gradient, got a constant");
}

TEST(ModelsTest, LayersMayShareAWeight) {
  const xgrad::Embedding<float> words(5, 3);
  const xgrad::Linear<float> head(words.stored_weight());
  Custom model;
  model.child("words", words);
  model.child("head", head);
  EXPECT_EQ(names_of(model), std::vector<std::string>{"words.weight (5, 3)"});
  EXPECT_EQ(model.named_weights().size(), 1u);
  EXPECT_EQ(model.state_dict().size(), 2u);
  sum(head(words(Ids{0, 1}))).backward();
  EXPECT_TRUE(head.weight().has_grad());
  EXPECT_EQ(head.weight().grad().value(), words.weight().grad().value());
}

TEST(ModelsTest, RMSNormIsMadeOfLengthsOrAWeight) {
  const Variable<float> x(Array<float>{{{1, 2}, {3, 4}}});
  const xgrad::RMSNorm<float> one(2, 1e-6), two(xgrad::Dims{2, 2}), given(Array<float>{1, 2});
  EXPECT_EQ(one(x).value(), rms_norm(x, 2, {}, {.eps = 1e-6}).value());
  EXPECT_EQ(two.weight().shape(), (xgrad::Shape{2, 2}));
  EXPECT_EQ(two(x).value(), rms_norm(x, {2, 2}).value());
  EXPECT_EQ(given(x).value(), rms_norm(x, 2, Variable<float>(Array<float>{1, 2})).value());
  const xgrad::RMSNorm<float> shifted(2, 1e-6, 0.25);
  EXPECT_EQ(shifted.weight().value(), (Array<float>{0.75, 0.75}));
  EXPECT_EQ(shifted(x).value(), one(x).value());
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ValueError>([] { xgrad::RMSNorm<float>(2, -1.0); }),
            "RMSNorm: eps must be at least 0, got -1");
}

TEST(ModelsTest, SinusoidalEncodingIsThatOfThePaper) {
  const Variable<double> x(xt::zeros<double>({1, 3, 4}));
  const Array<double> y = xgrad::SinusoidalPositionalEncoding<double>(8, 4)(x).value();
  for (std::size_t p = 0; p < 3; ++p) {
    const double position = static_cast<double>(p);
    EXPECT_DOUBLE_EQ(y(0, p, 0), std::sin(position));
    EXPECT_DOUBLE_EQ(y(0, p, 1), std::cos(position));
    EXPECT_DOUBLE_EQ(y(0, p, 2), std::sin(position / 100));
    EXPECT_DOUBLE_EQ(y(0, p, 3), std::cos(position / 100));
  }
}

TEST(ModelsTest, CrossAttentionTakesOtherKeysAndValues) {
  const xgrad::MultiHeadAttention<double> attention(4, 2, {.bias = true});
  const Variable<double> q(xgrad::normal<double>({2, 3, 4})), k(xgrad::normal<double>({2, 5, 4})),
      v(xgrad::normal<double>({2, 5, 4}));
  const Mask mask{{{{true, true, true, false, false}}}};
  const auto [output, weights] = attention.with_weights(q, k, v, mask);
  EXPECT_EQ(xgrad::to_string(output.shape()), "(2, 3, 4)");
  EXPECT_EQ(xgrad::to_string(weights.shape()), "(2, 2, 3, 5)");
  EXPECT_LT(largest_difference(output.value(), attention(q, k, v, mask).value()), 1e-14);
  EXPECT_EQ(weights.value()(1, 1, 2, 3), 0);
}

TEST(ModelsTest, AllHeadCountsTakeTheSameMasks) {
  for (const std::size_t heads : {1, 2, 4}) {
    Config config = toy_config();
    config.encoder.heads = heads;
    const xgrad::ToyEncoder<double> model(config);
    const auto [output, weights] = model.with_weights(sentences);
    EXPECT_LT(largest_difference(output.value(), model(sentences).value()), 1e-13);
    ASSERT_EQ(weights.size(), 2u);
    EXPECT_EQ(xgrad::to_string(weights[1].shape()), "(2, " + std::to_string(heads) + ", 4, 4)");
    for (std::size_t query = 0; query < 4; ++query) EXPECT_EQ(weights[1].value()(0, heads - 1, query, 3), 0);
    const xgrad::MultiHeadAttention<double> attention(4, heads);
    const Variable<double> x(xgrad::normal<double>({2, 3, 4})), bias(xgrad::normal<double>({2, 1, 3, 3}));
    EXPECT_LT(largest_difference(attention(x, bias).value(), attention.with_weights(x, bias).output.value()),
              1e-14);
  }
}

TEST(ModelsTest, PaddingChangesNothing) {
  for (const xgrad::Pooling pooling : {xgrad::Pooling::mean, xgrad::Pooling::first}) {
    Config config = toy_config();
    config.pooling = pooling;
    const xgrad::ToyEncoder<double> model(config);
    const Array<double> padded = model.class_logits(Ids{{1, 2, 3, 0, 0}}).value();
    EXPECT_LT(largest_difference(padded, model.class_logits(Ids{{1, 2, 3}}).value()), 1e-13);
    EXPECT_TRUE(std::isfinite(model.class_logits(Ids{{0, 0}}).value()(0, 0)));
  }
}

TEST(ModelsTest, WithoutPaddingTheMeanIsOverAllPositions) {
  Config config = toy_config();
  config.pad_id.reset();
  const xgrad::ToyEncoder<double> model(config);
  const Variable<double> encoded = model(sentences);
  const Variable<double> pooled = mean(encoded, 1);
  const Variable<double> expected = linear(pooled, model.parameters().rbegin()[1], model.parameters().back());
  EXPECT_LT(largest_difference(model.class_logits(sentences).value(), expected.value()), 1e-15);
}

TEST(ModelsTest, EveryParameterReceivesAGradient) {
  for (int variant = 0; variant < 64; ++variant) {
    const auto bit = [variant](int place) { return (variant >> place & 1) != 0; };
    Config config = toy_config();
    config.encoder.norm_first = bit(0);
    config.encoder.bias = bit(1);
    config.encoder.activation = bit(2) ? xgrad::Activation::gelu : xgrad::Activation::relu;
    config.positions = bit(3) ? xgrad::Positions::sinusoidal : xgrad::Positions::learned;
    config.pooling = bit(4) ? xgrad::Pooling::first : xgrad::Pooling::mean;
    config.encoder.heads = bit(5) ? 1 : 2;
    xgrad::manual_seed(static_cast<std::uint64_t>(variant));
    const xgrad::ToyEncoder<double> model(config);
    const Variable<double> encoded = model(sentences);
    const Variable<double> tokens = reshape(model.token_logits(encoded), {-1, 7});
    const Variable<double> loss = cross_entropy(tokens, Ids{1, 2, 3, -100, 4, 5, 6, 1}) +
                                  cross_entropy(model.class_logits(encoded, sentences), Ids{0, 2});
    loss.backward();
    for (const auto& [name, parameter] : model.named_parameters()) {
      ASSERT_TRUE(parameter.has_grad()) << name << ", variant " << variant;
      // a bias of the keys moves all scores of a query alike, which softmax does not see
      if (name.find("W_K.bias") != std::string::npos) continue;
      const Array<double> size = xt::abs(parameter.grad().value());
      EXPECT_GT(xt::amax(size)(), 1e-12) << name << ", variant " << variant;
    }
  }
}

TEST(ModelsTest, GradientsAreThoseOfDifferences) {
  for (const bool norm_first : {false, true}) {
    Config config = toy_config();
    config.encoder.norm_first = norm_first;
    config.encoder.activation = xgrad::Activation::gelu;
    xgrad::manual_seed(1);
    const xgrad::ToyEncoder<double> model(config);
    const auto loss = [&](const std::vector<Variable<double>>&) {
      const Variable<double> encoded = model(sentences);
      return cross_entropy(model.class_logits(encoded, sentences), Ids{0, 2}) +
             mean(model.token_logits(encoded));
    };
    // the row of the padding id is held fixed: it has a gradient of zero by definition
    std::vector<Variable<double>> checked = model.parameters();
    checked.erase(checked.begin());
    const xgrad::GradcheckReport report = xgrad::gradcheck(loss, checked, {.projections = 20});
    EXPECT_TRUE(report.ok) << report.worst;
  }
}

/// With keys and pairs that may not be attended to, of all parameters and the input.
TEST(ModelsTest, DerivativesOfAnEncoderLayerAreThoseOfDifferences) {
  const Mask keys{{true, true, false}, {true, true, true}};
  const Mask earlier{{true, false, false}, {true, true, false}, {true, true, true}};
  Mask allowed = keys;
  allowed.reshape({2, 1, 1, 3});
  allowed = allowed && earlier;
  for (const bool norm_first : {false, true}) {
    xgrad::manual_seed(5);
    const xgrad::TransformerEncoderLayer<double> layer({.d_model = 4,
                                                        .heads = 2,
                                                        .d_ff = 6,
                                                        .activation = xgrad::Activation::gelu,
                                                        .norm_first = norm_first,
                                                        .bias = true});
    std::vector<Variable<double>> checked = layer.parameters();
    for (const Variable<double>& parameter : checked)
      parameter.assign(xgrad::normal<double>(parameter.shape()));
    const Variable<double> x(xgrad::normal<double>({2, 3, 4}), true);
    checked.push_back(x);
    const auto forward = [&](const std::vector<Variable<double>>&) { return layer(x, allowed); };
    const xgrad::GradcheckReport first = xgrad::gradcheck(forward, checked);
    EXPECT_TRUE(first.ok) << first.worst;
    const xgrad::GradcheckReport second = xgrad::gradgradcheck(forward, checked, {.projections = 3});
    EXPECT_TRUE(second.ok) << second.worst;
  }
}

TEST(SummaryTest, ListsLayersParametersShapesAndCounts) {
  EXPECT_EQ(summary(xgrad::TransformerEncoderLayer<float>({.d_model = 4, .heads = 2, .d_ff = 8})),
            "TransformerEncoderLayer          shape   parameters\n"
            "  self_attn: MultiHeadAttention\n"
            "    W_Q: Linear\n"
            "      weight                     (4, 4)          16\n"
            "    W_K: Linear\n"
            "      weight                     (4, 4)          16\n"
            "    W_V: Linear\n"
            "      weight                     (4, 4)          16\n"
            "    out_proj: Linear\n"
            "      weight                     (4, 4)          16\n"
            "  feed_forward: FeedForward\n"
            "    linear1: Linear\n"
            "      weight                     (8, 4)          32\n"
            "      bias                       (8)              8\n"
            "    linear2: Linear\n"
            "      weight                     (4, 8)          32\n"
            "      bias                       (4)              4\n"
            "  norm1: LayerNorm\n"
            "    weight                       (4)              4\n"
            "    bias                         (4)              4\n"
            "  norm2: LayerNorm\n"
            "    weight                       (4)              4\n"
            "    bias                         (4)              4\n"
            "total                                           156\n");
}

}  // namespace models_test
