// Models whose linear layers have weights of 8-bit integers: made, saved, loaded, and refused.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/pretrained.hpp>
#include <xgrad/xgrad.hpp>

#include "../expect_error.hpp"
#include "folder.hpp"

namespace quantization_test {

using namespace xgrad::pretrained;
using xgrad::Array, xgrad::DType, xgrad::FileError, xgrad::Ids, xgrad::Shape, xgrad::TensorView,
    xgrad::ValueError;
using xgrad_tests::FolderCopy, xgrad_tests::message_of, xgrad_tests::model_folder, xgrad_tests::read_bytes;

LoadOptions with(Precision precision) {
  return {.precision = precision, .note = [](const std::string&) {}};
}
const LoadOptions quietly{.labels = {}, .note = [](const std::string&) {}};

Input some_input() {
  return {Ids{{2, 7, 9, 20, 3}, {2, 11, 3, 0, 0}}, Ids{{1, 1, 1, 1, 1}, {1, 1, 1, 0, 0}}};
}

/// The weights of integers.
template <class T>
std::vector<std::string> integers_of(const Encoder<T>& encoder) {
  std::vector<std::string> names;
  for (const auto& [name, weight] : encoder.named_weights())
    if (weight.dtype() == DType::I8) names.push_back(name);
  return names;
}

double cosine(const Array<float>& a, const Array<float>& b) {
  EXPECT_EQ(a.shape(), b.shape());
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = a.data()[i], y = b.data()[i];
    ab += x * y;
    aa += x * x;
    bb += y * y;
  }
  return ab / std::sqrt(aa * bb);
}

Array<float> hidden(const std::string& folder, const LoadOptions& options = quietly) {
  return Encoder<float>::from_folder(folder, options)(some_input()).last_hidden_state.value();
}

TEST(QuantizationTest, EveryFamilyIsNearItsFloatModelAndComesBackFromFiles) {
  const xgrad_tests::TemporaryFolder temporary;
  for (const std::string name : {"albert_groups", "bert_sentence", "deberta_cls", "deberta_v2_mlm",
                                 "distilbert_qa", "electra_discriminator", "eurobert_mlm", "gte_mlm",
                                 "modernbert_cls", "mpnet_mlm", "roberta_mlm", "t5_gated"}) {
    const Array<float> exact = hidden(model_folder(name));
    const auto encoder = Encoder<float>::from_folder(model_folder(name), with(Precision::int8));
    EXPECT_FALSE(integers_of(encoder).empty());
    for (const std::string& weight : integers_of(encoder)) {
      for (const auto& [parameter, values] : encoder.named_parameters()) EXPECT_NE(parameter, weight) << name;
    }
    const Array<float> rounded = encoder(some_input()).last_hidden_state.value();
    EXPECT_GT(cosine(rounded, exact), 0.99) << name;
    const std::string saved = temporary.path(name), again = temporary.path(name + "_again");
    save_folder(encoder, saved);
    const auto loaded = Encoder<float>::from_folder(saved, quietly);
    EXPECT_EQ(integers_of(loaded), integers_of(encoder)) << name;
    EXPECT_EQ(loaded(some_input()).last_hidden_state.value(), rounded) << name;
    save_folder(loaded, again);
    for (const char* const file : {"/config.json", "/model.safetensors"})
      EXPECT_EQ(read_bytes(again + file), read_bytes(saved + file)) << name << file;
    // as float numbers, which are those of the integers
    EXPECT_GT(cosine(hidden(saved, with(Precision::float32)), rounded), 0.99) << name;
    EXPECT_GT(cosine(hidden(saved, with(Precision::float32)), exact), 0.99) << name;
  }
}

TEST(QuantizationTest, ManyTokensHaveTheBitsOfFew) {
  const auto encoder = Encoder<float>::from_folder(model_folder("bert_sentence"), with(Precision::int8));
  const Array<float> both = encoder({Ids{{2, 7, 9, 3}, {2, 11, 5, 3}}}).last_hidden_state.value();
  const Array<float> second = encoder({Ids{{2, 11, 5, 3}}}).last_hidden_state.value();
  for (std::size_t i = 0; i < second.size(); ++i)
    EXPECT_EQ(second.data()[i], both.data()[second.size() + i]) << i;
}

TEST(QuantizationTest, FilesHaveTheNamesOfCompressedTensors) {
  const xgrad_tests::TemporaryFolder temporary;
  const std::string saved = temporary.path("saved");
  save_folder(SequenceClassifier<float>::from_folder(model_folder("bert_classifier"), with(Precision::int8)),
              saved);
  const nlohmann::json config = nlohmann::json::parse(read_bytes(saved + "/config.json"));
  const nlohmann::json& quantization = config.at("quantization_config");
  EXPECT_EQ(quantization.at("quant_method"), "compressed-tensors");
  EXPECT_EQ(quantization.at("format"), "int-quantized");
  EXPECT_EQ(quantization.at("ignore"),
            (nlohmann::json{"bert.pooler.dense", "classifier", "cls.predictions.decoder", "pooler.dense"}));
  const xgrad::SafetensorsFile file(saved + "/model.safetensors");
  std::map<std::string, const TensorView*> tensors;
  for (const TensorView& tensor : file.tensors()) tensors[tensor.name] = &tensor;
  const std::string query = "bert.encoder.layer.0.attention.self.query.";
  ASSERT_TRUE(tensors.contains(query + "weight") && tensors.contains(query + "weight_scale"));
  const TensorView &weight = *tensors[query + "weight"], &scale = *tensors[query + "weight_scale"];
  EXPECT_EQ(weight.dtype, DType::I8);
  EXPECT_EQ(scale.dtype, DType::F32);
  EXPECT_EQ(scale.shape, (Shape{weight.shape[0], 1}));
  EXPECT_EQ(tensors.at("classifier.weight")->dtype, DType::F32);
  EXPECT_EQ(tensors.at("bert.pooler.dense.weight")->dtype, DType::F32);
  // rounded to the nearest of 127 steps
  const auto original =
      xgrad::load_safetensors<float>(model_folder("bert_classifier") + "/model.safetensors");
  const Array<float>& before = original.at(query + "weight");
  const auto* const integers = reinterpret_cast<const std::int8_t*>(weight.bytes.data());
  const Array<float> scales = xgrad::to_array<float>(scale);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const float step = scales.data()[i / before.shape(1)];
    EXPECT_NEAR(static_cast<float>(integers[i]) * step, before.data()[i], 0.501F * step);
  }
}

TEST(QuantizationTest, FloatFoldersLoseTheDescription) {
  const xgrad_tests::TemporaryFolder temporary;
  const std::string saved = temporary.path("int8"), plain = temporary.path("float");
  save_folder(Encoder<float>::from_folder(model_folder("bert_sentence"), with(Precision::int8)), saved);
  const auto encoder = Encoder<float>::from_folder(saved, with(Precision::float32));
  EXPECT_TRUE(integers_of(encoder).empty());
  save_folder(encoder, plain);
  EXPECT_FALSE(nlohmann::json::parse(read_bytes(plain + "/config.json")).contains("quantization_config"));
  EXPECT_EQ(hidden(plain), encoder(some_input()).last_hidden_state.value());
  // double takes the values of the integers, too
  const auto in_double = Encoder<double>::from_folder(saved, quietly);
  const Array<double> exact = in_double(some_input()).last_hidden_state.value();
  EXPECT_GT(cosine(Array<float>(xt::cast<float>(exact)), hidden(plain)), 0.999999);
}

TEST(QuantizationTest, TheEncoderIsFrozenAndTheHeadIsNot) {
  const auto model =
      SequenceClassifier<float>::from_folder(model_folder("bert_classifier"), with(Precision::int8));
  model.loss(some_input(), Ids{0, 1}).backward();
  for (const auto& [name, parameter] : model.named_parameters())
    EXPECT_EQ(parameter.has_grad(), name.starts_with("classifier")) << name;
  model.encoder().freeze(0);
  EXPECT_EQ(
      message_of<ValueError>([&] {
        model.loss(some_input(), Ids{0, 1});
      }),
      "bert.encoder.layer.0: int8_self_attention: 8-bit weights have no gradient: freeze all parameters in "
      "front of them, or "
      "compute with NoGrad");
}

TEST(QuantizationTest, TrainingDropsAsWithFloatWeights) {
  const FolderCopy copy("bert_sentence");
  copy.configure([](nlohmann::json& config) {
    config.update({{"hidden_dropout_prob", 1}, {"attention_probs_dropout_prob", 0}});
  });
  const xgrad::NoGrad no_grad;
  const auto states = [&](Precision precision) {
    const auto encoder = Encoder<float>::from_folder(copy.path(), with(precision));
    encoder.train();
    return encoder(some_input()).last_hidden_state.value();
  };
  EXPECT_EQ(states(Precision::int8), states(Precision::float32)) << "all that is rounded is dropped";
}

TEST(QuantizationTest, PrecisionsOfDoubleAreRefused) {
  for (const Precision precision : {Precision::int8, Precision::bfloat16}) {
    EXPECT_EQ(message_of<ValueError>(
                  [&] { Encoder<double>::from_folder(model_folder("bert_sentence"), with(precision)); }),
              "Encoder: the precision of a model of double must be float32");
  }
  EXPECT_EQ(precision_named("bfloat16"), Precision::bfloat16);
  EXPECT_EQ(message_of<ValueError>([] { precision_named("int4"); }),
            "precision_named: expected float32, bfloat16 or int8, got 'int4'");
}

TEST(QuantizationTest, Bfloat16IsInUseOrToldOf) {
  std::vector<std::string> notes;
  const LoadOptions options{.precision = Precision::bfloat16,
                            .note = [&](const std::string& note) { notes.push_back(note); }};
  const Array<float> rounded = hidden(model_folder("bert_sentence"), options);
  EXPECT_GT(cosine(rounded, hidden(model_folder("bert_sentence"))), 0.9995);
  const xgrad::MatmulPrecisionGuard guard(xgrad::MatmulPrecision::medium);
  const bool is_told =
      std::ranges::any_of(notes, [](const std::string& note) { return note.find("bfloat16") != note.npos; });
  EXPECT_EQ(is_told, xgrad::matmul_precision_in_use() != xgrad::MatmulPrecision::medium);
}

TEST(QuantizationTest, Bfloat16IsThatOfProducts) {
  const auto states = [](const LoadOptions& options) {  // of as many tokens as it pays to round
    const auto encoder = Encoder<float>::from_folder(model_folder("bert_sentence"), options);
    return encoder({Ids(Shape{64, 16}, 7)}).last_hidden_state.value();
  };
  const Array<float> exact = states(quietly);
  const Array<float> rounded = states(with(Precision::bfloat16));
  {
    const xgrad::MatmulPrecisionGuard guard(xgrad::MatmulPrecision::medium);
    EXPECT_EQ(states(quietly), rounded);
    EXPECT_EQ(rounded != exact, xgrad::matmul_precision_in_use() == xgrad::MatmulPrecision::medium);
  }
}

/// A quantised copy of a model, which a test damages.
class QuantizedCopy : public FolderCopy {
 public:
  QuantizedCopy() : FolderCopy("bert_sentence") {
    std::filesystem::remove(path("modules.json"));  // which is not of the encoder alone
    save_folder(Encoder<float>::from_folder(model_folder("bert_sentence"), with(Precision::int8)), path());
  }

  std::string error() const {
    std::string message = message_of<FileError>([&] { Encoder<float>::from_folder(path(), quietly); });
    const std::string folder = path() + "/";
    if (message.starts_with(folder)) message.erase(0, folder.size());
    return message;
  }

  /// Changes one tensor.
  void change_tensor(const std::string& name, const std::function<void(TensorView&)>& with) const {
    change([&](std::vector<TensorView>& tensors) {
      const auto found = std::ranges::find(tensors, name, &TensorView::name);
      ASSERT_NE(found, tensors.end()) << name;
      with(*found);
    });
  }
};

const std::string layer = "encoder.layer.0.attention.self.query.";

TEST(QuantizationTest, DamagedWeightsAreRefused) {
  const auto scaled = [](std::vector<float> scales) {
    const QuantizedCopy copy;
    copy.change_tensor(layer + "weight_scale", [&](TensorView& tensor) {
      scales.resize(tensor.shape[0], 1);
      tensor.bytes = std::as_bytes(std::span(scales));
    });
    return copy.error();
  };
  const std::string beginning = "model.safetensors: tensor \"" + layer;
  EXPECT_EQ(scaled({std::nanf("")}),
            beginning + "weight_scale\" must hold finite numbers, got nan at place 0");
  EXPECT_EQ(scaled({-0.5F}), beginning + "weight_scale\" must hold numbers from 0 on");
  {
    const QuantizedCopy copy;
    copy.rename([](const std::string& name) { return name == layer + "weight_scale" ? "" : name; });
    EXPECT_EQ(copy.error(),
              beginning + "weight_scale\" is missing, as \"" + layer + "weight\" is of integers");
  }
  {
    const QuantizedCopy copy;
    copy.change_tensor(layer + "weight_scale", [](TensorView& tensor) { tensor.shape = {tensor.shape[0]}; });
    EXPECT_TRUE(copy.error().starts_with(beginning + "weight_scale\": shape must be (")) << copy.error();
  }
  {
    const QuantizedCopy copy;
    copy.change_tensor(layer + "weight", [](TensorView& tensor) { tensor.dtype = DType::U8; });
    EXPECT_EQ(copy.error(), beginning + "weight\": dtype must be I8, as there are scales, got U8");
  }
  {
    const QuantizedCopy copy;
    copy.change_tensor(layer + "weight", [](TensorView& tensor) {
      tensor.shape = {tensor.shape[0] * 2, tensor.shape[1] / 2};
    });
    EXPECT_TRUE(copy.error().starts_with(beginning + "weight\": shape must be (")) << copy.error();
  }
  {
    const QuantizedCopy copy;
    copy.rename(
        [](const std::string& name) { return name == layer + "bias" ? layer + "weight_zero_point" : name; });
    EXPECT_EQ(copy.error(),
              beginning +
                  "weight_zero_point\" must not be there, as config.json says that integers are "
                  "symmetric");
  }
  {
    const QuantizedCopy copy;  // integers that config.json does not tell of
    copy.configure([](nlohmann::json& config) { config.erase("quantization_config"); });
    EXPECT_NE(copy.error().find("dtype must be"), std::string::npos) << copy.error();
  }
}

TEST(QuantizationTest, FloatWeightsThatAreNotFiniteAreRefused) {
  const FolderCopy copy("bert_sentence");
  std::vector<float> broken;
  copy.change([&](std::vector<TensorView>& tensors) {
    const auto found = std::ranges::find(tensors, layer + "weight", &TensorView::name);
    ASSERT_NE(found, tensors.end());
    broken.assign(xgrad::element_count(found->shape), std::nanf(""));
    found->dtype = DType::F32;
    found->bytes = std::as_bytes(std::span(broken));
  });
  EXPECT_EQ(message_of<FileError>([&] { Encoder<float>::from_folder(copy.path(), with(Precision::int8)); }),
            copy.path("model.safetensors") + ": tensor \"" + layer +
                "weight\" must hold finite numbers, got nan at place 0");
}

TEST(QuantizationTest, OtherMethodsAreRefusedByName) {
  const std::string place = "config.json: quantization_config.";
  const auto error = [](const std::function<void(nlohmann::json&)>& change) {
    const QuantizedCopy copy;
    copy.configure([&](nlohmann::json& config) { change(config.at("quantization_config")); });
    return copy.error();
  };
  for (const char* const method : {"gptq", "awq", "bitsandbytes", "fp8"}) {
    EXPECT_EQ(error([&](nlohmann::json& all) {
                all = {{"quant_method", method}, {"bits", 4}};
              }),
              place + "quant_method must be \"compressed-tensors\", got \"" + method + "\"");
  }
  EXPECT_EQ(error([](nlohmann::json& all) { all["format"] = "pack-quantized"; }),
            place + "format must be \"int-quantized\", got \"pack-quantized\"");
  EXPECT_EQ(error([](nlohmann::json& all) { all.erase("config_groups"); }),
            "config.json: quantization_config: config_groups is missing");
  EXPECT_EQ(error([](nlohmann::json& all) { all["config_groups"] = nlohmann::json::object(); }),
            place + "config_groups must be one or more groups, got an object");
  const std::string group = place + "config_groups.group_0.";
  const auto in_group = [&](const char* part, const char* name, const nlohmann::json& value) {
    return error([&](nlohmann::json& all) { all["config_groups"]["group_0"][part][name] = value; });
  };
  EXPECT_EQ(in_group("weights", "num_bits", 4),
            group + "weights.num_bits must be a whole number from 8 to 8, got 4");
  EXPECT_EQ(in_group("weights", "strategy", "group"),
            group + "weights.strategy must be \"channel\", got \"group\"");
  EXPECT_EQ(in_group("weights", "symmetric", false), group + "weights.symmetric must be true, got false");
  EXPECT_EQ(in_group("weights", "type", "float"), group + "weights.type must be \"int\", got \"float\"");
  EXPECT_EQ(in_group("input_activations", "dynamic", false),
            group + "input_activations.dynamic must be true, got false");
  EXPECT_EQ(in_group("weights", "group_size", 128),
            "config.json: quantization_config.config_groups.group_0.weights: the field \"group_size\" is not "
            "known, and may change what is computed; remove it if it does not");
  EXPECT_EQ(in_group("weights", "group_size", nullptr), "no exception") << "as compressed-tensors writes it";
}

}  // namespace quantization_test
