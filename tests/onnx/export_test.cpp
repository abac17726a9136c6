// ONNX files of models of xgrad's ops: what they compute, and what cannot be exported.

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/onnx.hpp>
#include <xgrad/pretrained.hpp>
#include <xgrad/xgrad.hpp>

#include "../difference.hpp"
#include "../expect_error.hpp"
#include "../files.hpp"

namespace export_test {

using xgrad::Array, xgrad::FileError, xgrad::Ids, xgrad::Mask, xgrad::Module, xgrad::ValueError,
    xgrad::Variable;
using xgrad::onnx::Forward, xgrad::onnx::Graph, xgrad::onnx::Input, xgrad::onnx::Value, xgrad::onnx::Values;
using xgrad_tests::largest_difference, xgrad_tests::largest_element, xgrad_tests::message_of,
    xgrad_tests::relative_difference, xgrad_tests::TemporaryFolder;

template <class T>
xgrad::ToyEncoder<T> toy(xgrad::ToyEncoderConfig config) {
  config.vocab_size = 30;
  config.max_len = 16;
  config.classes = 3;
  config.encoder = {
      .d_model = 16, .heads = 2, .d_ff = 32, .layers = 2, .norm_first = config.encoder.norm_first};
  xgrad::manual_seed(3);
  const xgrad::ToyEncoder<T> model(config);
  model.eval();
  return model;
}

template <class T>
Forward<T> both_heads(const xgrad::ToyEncoder<T>& model) {
  return [model](const Values<T>& in) {
    const Ids& ids = std::get<Ids>(in.at("input_ids"));
    return Values<T>{{"classes", model.class_logits(ids)}, {"tokens", model.token_logits(ids)}};
  };
}

/// Of the toy encoder, whose padding may be 4.
const std::vector<Input> token_ids{{"input_ids", {"batch", "sequence"}, 0, 30, 4}};

template <class T>
class OnnxExportTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
  const std::string path_ = folder_.path("model.onnx");
};

using Floats = testing::Types<float, double>;
TYPED_TEST_SUITE(OnnxExportTest, Floats);

/// Every gradient of the model is there in the graph, too, under the same name. Differences are in parts of
/// the largest element of all: some gradients, of biases of keys, are nothing but rounding.
template <class T>
void expect_same_gradients(const Module<T>& model, const Graph<T>& graph, double tolerance) {
  std::map<std::string, Variable<T>> parameters;
  for (const auto& [name, parameter] : graph.named_parameters()) parameters.emplace(name, parameter);
  double worst = 0, largest = 0;
  std::size_t compared = 0;
  for (const auto& [name, original] : model.named_parameters()) {
    if (!original.has_grad()) continue;
    ASSERT_TRUE(parameters.contains(name)) << name;
    const Array<T>&expected = original.grad().value(), &got = parameters.at(name).grad().value();
    worst = std::max(worst, largest_difference(got, expected));
    largest = std::max(largest, largest_element(expected));
    ++compared;
  }
  EXPECT_TRUE(std::isfinite(largest));
  EXPECT_LE(worst, tolerance * largest);
  EXPECT_GT(compared, 10U);
}

TYPED_TEST(OnnxExportTest, EncodersComputeTheSameForEveryLength) {
  using T = TypeParam;
  constexpr double tolerance = std::is_same_v<T, float> ? 2e-6 : 1e-13;
  for (const auto pooling : {xgrad::Pooling::mean, xgrad::Pooling::first}) {
    for (const auto positions : {xgrad::Positions::learned, xgrad::Positions::sinusoidal}) {
      for (const std::optional<std::int64_t> pad :
           {std::optional<std::int64_t>(), std::optional<std::int64_t>(4)}) {
        xgrad::ToyEncoderConfig config;
        config.pooling = pooling;
        config.positions = positions;
        config.pad_id = pad;
        config.encoder.norm_first = pad.has_value();
        const xgrad::ToyEncoder<T> model = toy<T>(config);
        save<T>(model, this->path_, token_ids, both_heads(model));
        const Graph<T> graph(this->path_);
        for (const auto& [batch, length] : {std::pair<std::size_t, std::size_t>{1, 1}, {5, 16}, {2, 9}}) {
          const Values<T> given{{"input_ids", xgrad::randint(0, 30, {batch, length})}};
          const Values<T> got = graph(given), expected = both_heads(model)(given);
          for (const char* name : {"classes", "tokens"}) {
            EXPECT_LE(relative_difference(std::get<Variable<T>>(got.at(name)).value(),
                                          std::get<Variable<T>>(expected.at(name)).value()),
                      tolerance)
                << name << " " << batch << " x " << length;
          }
        }
        if (!pad || pooling != xgrad::Pooling::mean) continue;
        const Values<T> padding{{"input_ids", Ids(xgrad::Shape{2, 3}, *pad)}};
        EXPECT_LE(
            relative_difference(std::get<Variable<T>>(graph(padding).at("classes")).value(),
                                std::get<Variable<T>>(both_heads(model)(padding).at("classes")).value()),
            tolerance);
      }
    }
  }
}

TYPED_TEST(OnnxExportTest, ParametersKeepTheirNamesAndGetTheSameGradients) {
  using T = TypeParam;
  const xgrad::ToyEncoder<T> model = toy<T>({});
  save<T>(model, this->path_, token_ids, both_heads(model));
  const Graph<T> graph(this->path_);
  const Values<T> given{{"input_ids", xgrad::randint(0, 30, {3, 7})}};
  const auto loss = [&](const Values<T>& outputs) {
    return sum(square(std::get<Variable<T>>(outputs.at("classes")))) +
           sum(square(std::get<Variable<T>>(outputs.at("tokens"))));
  };
  loss(both_heads(model)(given)).backward();
  loss(graph(given)).backward();
  for (const auto& [name, parameter] : model.named_parameters()) EXPECT_TRUE(parameter.has_grad()) << name;
  expect_same_gradients(model, graph, std::is_same_v<T, float> ? 2e-5 : 1e-12);
}

TYPED_TEST(OnnxExportTest, WeightsOfLargeFilesLieBesideThem) {
  using T = TypeParam;
  const xgrad::ToyEncoder<T> model = toy<T>({});
  save<T>(model, this->path_, token_ids, both_heads(model));
  const std::size_t whole = xgrad_tests::read_bytes(this->path_).size();
  EXPECT_EQ(this->folder_.file_count(), 1U);
  save<T>(model, this->path_, token_ids, both_heads(model), {.largest_file = whole - 1});
  EXPECT_EQ(this->folder_.file_count(), 2U);
  EXPECT_LT(xgrad_tests::read_bytes(this->path_).size(), whole);
  const Graph<T> graph(this->path_);
  std::size_t weights = 0, beside = 0;
  std::map<std::string, Variable<T>> parameters;
  for (const auto& [name, parameter] : graph.named_parameters()) parameters.emplace(name, parameter);
  for (const auto& [name, parameter] : model.named_parameters()) {
    xgrad_tests::expect_same_bits(parameters.at(name).value(), parameter.value());
    if (parameter.size() * sizeof(T) >= 1024) ++beside;
    ++weights;
  }
  EXPECT_GT(weights, beside);
  const std::size_t data = xgrad_tests::read_bytes(this->path_ + "_data").size();
  EXPECT_EQ(data / 65536 + 1, beside) << "each begins at a multiple of 64 KiB";
}

using xgrad::pretrained::Family;

class OnnxPretrainedTest : public testing::TestWithParam<Family> {};

TEST_P(OnnxPretrainedTest, EncodersOfEveryFamilyGetTheSameGradients) {
  xgrad::pretrained::Config config = xgrad::pretrained::Config::of(GetParam());
  config.vocab_size = 40;
  config.hidden_size = 16;
  config.embedding_size = GetParam() == Family::electra || GetParam() == Family::albert ? 8 : 16;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.intermediate_size = 24;
  config.max_position_embeddings = 20;
  config.initializer_range = 0.2;
  if (config.pad_token_id.value_or(0) >= 40) config.pad_token_id = 0;
  xgrad::manual_seed(4);
  const xgrad::pretrained::Encoder<double> model(config);
  model.eval();
  const bool has_types = config.type_vocab_size > 1;
  std::vector<Input> inputs{{"input_ids", {"batch", "sequence"}, 0, 40, config.pad_token_id},
                            {"attention_mask", {"batch", "sequence"}, 0, 2}};
  if (has_types) inputs.push_back({"token_type_ids", {"batch", "sequence"}, 0, 2});
  const Forward<double> forward = [&](const Values<double>& in) {
    xgrad::pretrained::Input input{
        std::get<Ids>(in.at("input_ids")), std::get<Ids>(in.at("attention_mask")), {}};
    if (has_types) input.token_type_ids = std::get<Ids>(in.at("token_type_ids"));
    return Values<double>{{"last_hidden_state", model(input).last_hidden_state}};
  };
  const TemporaryFolder folder;
  xgrad::onnx::save<double>(model, folder.path("model.onnx"), inputs, forward);
  const Graph<double> graph(folder.path("model.onnx"));

  Ids ids = xgrad::randint(2, 40, {3, 7}), mask(ids.shape(), 1);
  Array<double> seed = xgrad::normal<double>({3, 7, 16});
  for (std::size_t i = 4; i < 7; ++i) {
    for (std::size_t j = 0; j < 16; ++j) seed(1, i, j) = 0;  // as a loss ignores padding
    ids(1, i) = config.pad_token_id.value_or(0);
    mask(1, i) = 0;
  }
  Values<double> given{{"input_ids", ids}, {"attention_mask", mask}};
  if (has_types) given.emplace("token_type_ids", xgrad::randint(0, 2, {3, 7}));
  const auto output = [](const Values<double>& all) {
    return std::get<Variable<double>>(all.at("last_hidden_state"));
  };
  const Variable<double> expected = output(forward(given)), got = output(graph(given));
  EXPECT_LE(relative_difference(got.value(), expected.value()), 1e-13);
  sum(expected * Variable<double>(seed)).backward();
  sum(got * Variable<double>(seed)).backward();
  expect_same_gradients<double>(model, graph, 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Families, OnnxPretrainedTest,
                         testing::Values(Family::bert, Family::distilbert, Family::roberta, Family::electra,
                                         Family::xlm_roberta, Family::albert, Family::modernbert,
                                         Family::eurobert, Family::nomic_bert, Family::gte,
                                         Family::jina_embeddings_v3, Family::mpnet, Family::t5));

/// A module with one parameter w (4), and what a test makes of it.
struct Small : Module<float> {
  Small() : Module<float>("Small"), w(this->parameter("w", Array<float>{0.5F, -1, 2, 3})) {}
  Variable<float> w;
};

class OnnxRefusalTest : public testing::Test {
 protected:
  using F = std::function<Variable<float>(const Variable<float>&)>;

  void save(const F& f) {
    xgrad::onnx::save<float>(model_, path_, {{"x", {"batch", 4U}}}, [&](const Values<float>& in) {
      return Values<float>{{"y", f(std::get<Variable<float>>(in.at("x")))}};
    });
  }
  std::string error(const F& f) {
    return message_of<ValueError>([&] { save(f); });
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.path("model.onnx");
  const Small model_;
};

TEST_F(OnnxRefusalTest, WhatCanBeExportedIs) {
  const auto f = [&](const Variable<float>& x) {
    const Variable<float> pair = xgrad::stack({tanh(x * model_.w), gelu(x - 2)}, 1);
    const Variable<float> zeros(xt::zeros<float>({std::size_t{1}, std::size_t{8}}));
    const Variable<float> rows = reshape(pair, {-1, 8});
    const Variable<float> before =
        xgrad::cat({zeros, narrow(rows, 0, 0, static_cast<std::ptrdiff_t>(x.shape(0)) - 1)});
    const Variable<float> ones(Array<float>(xgrad::Shape{x.shape(0), 1}, 1.0F));
    return xgrad::cat({rows + slice(before, 0, 0), mean(square(x), 1, {.keepdim = true}) + ones}, 1);
  };
  save(f);
  const Graph<float> graph(path_);
  const Variable<float> x(Array<float>{{1, 2, 3, 4}});
  const Array<float> y = std::get<Variable<float>>(graph({{"x", x}}).at("y")).value();
  EXPECT_LE(relative_difference(y, f(x).value()), 1e-6);
  EXPECT_EQ((*graph.inputs()[0].shape)[0].name, "batch");
  EXPECT_EQ((*graph.outputs()[0].shape)[1].fixed, 9U);
  EXPECT_EQ((*graph.outputs()[0].shape)[0].name, "batch");
}

TEST_F(OnnxRefusalTest, AxesOfOutputsHaveTheNamesOfTheirLengths) {
  save([](const Variable<float>& x) { return xgrad::cat({x, x}); });
  EXPECT_EQ((*Graph<float>(path_).outputs()[0].shape)[0].name, "") << "twice the batch";
}

/// What encoders of today are made of.
TEST_F(OnnxRefusalTest, RotatedHeadsInAWindowNormsAndGatesAreExported) {
  const xgrad::RotaryTables<float> tables = xgrad::rotary_tables<float>({.dim = 2}, 40);
  const Variable<float> scale(Array<float>{0.5F, -1, 2, 3});
  for (const bool interleaved : {false, true}) {
    for (const xgrad::Gate gate : {xgrad::Gate::sigmoid, xgrad::Gate::relu, xgrad::Gate::silu,
                                   xgrad::Gate::gelu, xgrad::Gate::gelu_tanh}) {
      const auto f = [&](const Variable<float>& x) {
        const auto first = [&](const Variable<float>& table) { return narrow(table, 0, 0, x.shape(0)); };
        const Variable<float> cos = first(tables.cos), sin = first(tables.sin);
        const Variable<float> q =
            rotary(x, cos, sin, {.num_heads = interleaved ? std::size_t{1} : 2, .interleaved = interleaved});
        const Variable<float> key = narrow(x, 1, 1, 2);
        const Variable<float> y = scaled_dot_product_attention(
            q, key, key, {}, {.num_heads = 2, .num_kv_heads = 1, .window_left = 2, .window_right = 1});
        return gated(rms_norm(y, 4, scale, {.offset = interleaved ? 1.0 : 0.0}), x, gate);
      };
      save(f);
      const Graph<float> graph(path_);
      for (const std::size_t rows : {2, 7}) {
        const Variable<float> x(xgrad::normal<float>({rows, 4}));
        const Array<float> y = std::get<Variable<float>>(graph({{"x", x}}).at("y")).value();
        EXPECT_LE(relative_difference(y, f(x).value()), 1e-6) << rows;
      }
    }
  }
}

/// What decoders of today are made of.
TEST_F(OnnxRefusalTest, CappedAttentionBehindEarlierKeysIsExported) {
  for (const std::size_t heads : {0, 2}) {
    const auto f = [&](const Variable<float>& x) {
      const xgrad::AttentionOptions options{.num_heads = heads,
                                            .window_left = 7,
                                            .window_right = 1,
                                            .first_query = 2,
                                            .num_keys = 2,
                                            .softcap = 0.5};
      const Variable<float> half = narrow(x, 1, 1, 2);
      return scaled_dot_product_attention(x, x, x, {}, options) +
             scaled_dot_product_attention(x, half, half, {}, {.num_heads = 4, .num_kv_heads = 2}) +
             xgrad::qkv_attention(xgrad::cat({x, x, x}, -1), {},
                                  {.is_causal = true, .num_heads = heads, .softcap = 2});
    };
    save(f);
    const Graph<float> graph(path_);
    for (const std::size_t rows : {2, 7}) {
      const Variable<float> x(xgrad::normal<float>({rows, 4}));
      const Array<float> y = std::get<Variable<float>>(graph({{"x", x}}).at("y")).value();
      EXPECT_LE(relative_difference(y, f(x).value()), 1e-6) << rows;
    }
  }
}

TEST_F(OnnxRefusalTest, NormsOfGroupsAreExported) {
  const Variable<float> weight(Array<float>{0.5F, -1, 2, 3}), bias(Array<float>{1, 2, -3, 0});
  const auto f = [&](const Variable<float>& x) {
    return xgrad::group_norm(x, 2, weight, bias, 0.25) + xgrad::group_norm(x, 1);
  };
  save(f);
  const Graph<float> graph(path_);
  for (const std::size_t rows : {2, 7}) {
    const Variable<float> x(xgrad::normal<float>({rows, 4}));
    const Array<float> y = std::get<Variable<float>>(graph({{"x", x}}).at("y")).value();
    EXPECT_LE(relative_difference(y, f(x).value()), 1e-5) << rows;
  }
}

TEST_F(OnnxRefusalTest, PartsHaveTheBoundsThatWereAskedFor) {
  const auto f = [](const Variable<float>& x) {
    const auto rows = static_cast<std::ptrdiff_t>(x.shape(0));
    return xgrad::cat({slice(x, 0, 0, 6), slice(x, 0, -4, -1), slice(x, 0, 1, rows - 1, 2),
                       narrow(x, 0, -2, 2), slice(x, 0, rows - 1, 100), slice(x, 0, 1 - rows),
                       reshape(select(x, 0, -1), {1, 4})});
  };
  save(f);
  const Graph<float> graph(path_);
  for (const std::size_t rows : {2, 3, 5, 8, 40}) {
    const Variable<float> x(xgrad::normal<float>({rows, 4}));
    EXPECT_EQ(std::get<Variable<float>>(graph({{"x", x}}).at("y")).value(), f(x).value()) << rows;
  }
}

/// Which of its inputs, by their number, a condition is made of.
class OnnxMaskTest : public testing::TestWithParam<std::size_t> {};

TEST_P(OnnxMaskTest, ComesFromTheInputThatItIsMadeOfAlsoForFixedLengths) {
  const TemporaryFolder folder;
  const std::string path = folder.path("model.onnx");
  const Small model;
  const std::string names[] = {"a", "b"};
  const std::string& of = names[GetParam()];
  const auto f = [&](const Values<float>& in) {
    const Ids& ids = std::get<Ids>(in.at(of));
    const xgrad::Mask hidden = xt::equal(ids, std::int64_t{0});
    const Variable<float> ones(Array<float>(ids.shape(), 1.0F));
    return Values<float>{{"y", masked_fill(ones * 2, hidden, -INFINITY)}};
  };
  xgrad::onnx::save<float>(model, path, {{"a", {1U, 6U}, 0, 50}, {"b", {1U, 6U}, 0, 50}}, f);
  const Values<float> given{{"a", Ids{{1, 0, 3, 0, 5, 6}}}, {"b", Ids{{0, 2, 0, 4, 0, 6}}}};
  const Values<float> got = Graph<float>(path)(given), expected = f(given);
  EXPECT_EQ(std::get<Variable<float>>(got.at("y")).value(),
            std::get<Variable<float>>(expected.at("y")).value());
}

INSTANTIATE_TEST_SUITE_P(Inputs, OnnxMaskTest, testing::Values(0, 1));

TEST_F(OnnxRefusalTest, NamesOfInputsOutputsAndParametersDiffer) {
  EXPECT_EQ(message_of<ValueError>([&] {
              xgrad::onnx::save<float>(model_, path_, {{"x", {"batch", 4U}}}, [&](const Values<float>& in) {
                return Values<float>{{"x", std::get<Variable<float>>(in.at("x")) * 2}};
              });
            }),
            "onnx::save: inputs, outputs and parameters must have different names, the output \"x\" has that "
            "of another");
}

TEST_F(OnnxRefusalTest, AllOpsWithoutAnOperatorAreNamedAtOnce) {
  EXPECT_EQ(error([&](const Variable<float>& x) { return cumprod(lgamma(x) + lgamma(x * 2), 0); }),
            "onnx::save: cannot export 'lgamma', which has no ONNX operator; 'cumprod', which has no ONNX "
            "operator");
}

TEST_F(OnnxRefusalTest, LengthsThatAreBakedInAreNamed) {
  EXPECT_EQ(error([&](const Variable<float>& x) { return x * (1.0F / static_cast<float>(x.shape(0))); }),
            "onnx::save: cannot export 'mul', whose other depends on lengths");
  EXPECT_EQ(error([&](const Variable<float>& x) {
              Array<float> numbers = xt::ones<float>({x.shape(0), std::size_t{4}});
              numbers(0, 1) = 0.3F;
              return x + Variable<float>(numbers);
            }),
            "onnx::save: cannot export 'add', a constant (2, 4) that changes with the lengths");
  EXPECT_EQ(error([&](const Variable<float>& x) {
              return slice(x, 0, static_cast<std::ptrdiff_t>(x.shape(0)) / 2);
            }),
            "onnx::save: cannot export 'slice', whose start is 1 and 2");
}

TEST_F(OnnxRefusalTest, ConstantsOfOneCallOnlyAreNoOnes) {
  EXPECT_EQ(error([&](const Variable<float>& x) {
              Array<float> numbers = xt::ones<float>({x.shape(0), std::size_t{4}});
              if (x.shape(0) == 5) numbers(0, 1) = 0.3F;
              return x + Variable<float>(numbers);
            }),
            "onnx::save: cannot export 'add', a constant (2, 4) that changes with the lengths");
}

TEST_F(OnnxRefusalTest, LengthsAreTheSameMultiplesInAllCalls) {
  EXPECT_EQ(error([](const Variable<float>& x) {
              const std::size_t count = x.shape(0) * (x.shape(0) == 2 ? 2 : 3);
              return x * sum(Variable<float>(Array<float>(xgrad::Shape{count}, 1.0F)));
            }),
            "onnx::save: cannot export 'sum', a shape (4) that became (15)");
}

TEST_F(OnnxRefusalTest, TheSameOpsAreComputedForAllLengths) {
  EXPECT_EQ(error([](const Variable<float>& x) {
              Variable<float> y = x;
              for (std::size_t i = 0; i < x.shape(0); ++i) y = y * 2;
              return y;
            }),
            "onnx::save: the model must compute the same ops for all lengths, it called 2 and 5");
  EXPECT_EQ(error([](const Variable<float>& x) { return x.shape(0) == 2 ? exp(x) : tanh(x); }),
            "onnx::save: cannot export 'exp', which becomes another op for other lengths: tanh");
  EXPECT_EQ(
      error([](const Variable<float>& x) {
        return x.shape(0) == 2 ? reshape(x, {-1}) : reshape(x, {1, -1});
      }),
      "onnx::save: cannot export 'reshape', a shape (8) that became (1, 20); the output \"y\", which has "
      "another number of axes for other lengths");
}

TEST_F(OnnxRefusalTest, WhatOperatorsLackIsNamed) {
  const std::string begin = "onnx::save: cannot export '";
  EXPECT_EQ(error([](const Variable<float>& x) { return adaptive_avg_pool1d(x, 3); }),
            begin + "adaptive_avg_pool1d', whose windows of 4 elements differ");
  EXPECT_EQ(error([](const Variable<float>& x) { return avg_pool1d(x, 2, {.ceil_mode = true}); }),
            begin + "avg_pool1d', with ceil_mode");
  EXPECT_EQ(error([](const Variable<float>& x) { return xgrad::norm(x, 0, xgrad::Dims{1}); }),
            begin + "norm', whose ord is 0");
  EXPECT_EQ(error([](const Variable<float>& x) { return roll(x, 1, 0); }),
            begin + "roll', along an axis of a variable length");
  EXPECT_EQ(error([](const Variable<float>& x) {
              const Variable<float> weight(Array<float>{{1, 2}, {3, 4}});
              const Variable<float> none;
              return rnn(reshape(x, {-1, 2, 2}), none, {{weight, weight, none, none}},
                         xgrad::Nonlinearity::tanh, {.lengths = Ids{2, 1}})
                  .h;
            }),
            begin + "rnn', of sequences of different lengths; 'index_add', which has no ONNX operator");
}

TEST_F(OnnxRefusalTest, OutputsMustBeMadeOfOps) {
  EXPECT_EQ(error([&](const Variable<float>& x) { return Variable<float>(2 * x.value()); }),
            "onnx::save: cannot export the output \"y\", which no op of the model computed");
}

TEST_F(OnnxRefusalTest, WhatDependsOnValuesIsFoundByTheThirdCall) {
  int calls = 0;
  const std::string text = error([&](const Variable<float>& x) { return ++calls > 2 ? x * 2 : x * 3; });
  EXPECT_TRUE(text.starts_with("onnx::save: the output \"y\" of the file differs from the model's by "))
      << text;
  EXPECT_FALSE(std::filesystem::exists(path_));
  calls = 0;
  const std::string of_nan = error([&](const Variable<float>& x) { return ++calls > 2 ? x * NAN : x * 3; });
  EXPECT_TRUE(of_nan.starts_with("onnx::save: the output \"y\" of the file differs from the model's by inf"))
      << of_nan;
  const std::string of_length =
      error([](const Variable<float>& x) { return x.shape(0) == 2 || x.shape(0) == 5 ? x * 2 : x * 3; });
  EXPECT_TRUE(of_length.starts_with("onnx::save: the output \"y\" of the file differs from the model's by "))
      << of_length;
}

TEST_F(OnnxRefusalTest, PackedSequencesAreNotExported) {
  xgrad::pretrained::Config config = xgrad::pretrained::Config::of(Family::bert);
  config.vocab_size = 40;
  config.hidden_size = config.embedding_size = config.intermediate_size = 8;
  config.num_hidden_layers = config.num_attention_heads = 1;
  const xgrad::pretrained::Encoder<float> model(config);
  model.eval();
  model.skip_padding();
  const std::string text = message_of<ValueError>([&] {
    xgrad::onnx::save<float>(model, path_,
                             {{"input_ids", {"batch", "sequence"}, 0, 40, config.pad_token_id},
                              {"attention_mask", {"batch", "sequence"}, 0, 2}},
                             [&](const Values<float>& in) {
                               const xgrad::pretrained::Input input{std::get<Ids>(in.at("input_ids")),
                                                                    std::get<Ids>(in.at("attention_mask")),
                                                                    {}};
                               return Values<float>{{"last_hidden_state", model(input).last_hidden_state}};
                             });
  });
  EXPECT_NE(text.find("'self_attention' in encoder.layer.0, of packed sequences: switch skip_padding off"),
            text.npos)
      << text;
}

TEST_F(OnnxRefusalTest, AFileThatIsThereStaysWhenASaveFails) {
  folder_.write("model.onnx", "before");
  error([&](const Variable<float>& x) { return lgamma(x); });
  EXPECT_EQ(xgrad_tests::read_bytes(path_), "before");
  EXPECT_EQ(folder_.file_count(), 1U);
}

TEST_F(OnnxRefusalTest, AxesAreChecked) {
  const auto forward = [](const Values<float>& in) { return in; };
  const auto saved = [&](const std::vector<Input>& inputs, const xgrad::onnx::Lengths& lengths) {
    return message_of<ValueError>(
        [&] { xgrad::onnx::save<float>(model_, path_, inputs, forward, {.lengths = lengths}); });
  };
  EXPECT_EQ(saved({{"x", {"batch"}}, {"x", {"batch"}}}, {}), "onnx::save: there are two inputs \"x\"");
  EXPECT_EQ(saved({{"x", {"batch"}}}, {{"time", {2, 3, 4}}}), "onnx::save: no input has an axis \"time\"");
  for (const auto& lengths : {std::array<std::size_t, 3>{2, 2, 4}, {2, 4, 4}, {4, 2, 4}, {1, 2, 4}}) {
    EXPECT_EQ(saved({{"x", {"batch"}}}, {{"batch", lengths}}),
              "onnx::save: the three lengths of axis batch must be above 1 and differ, got " +
                  std::to_string(lengths[0]) + ", " + std::to_string(lengths[1]) + " and " +
                  std::to_string(lengths[2]));
  }
}

}  // namespace export_test
