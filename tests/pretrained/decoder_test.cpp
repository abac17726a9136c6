// Folders of decoders: their configs, what is refused, what is saved, heads and caches.

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>

#include <xgrad/pretrained.hpp>
#include <xgrad/pretrained/detail/weights/halves.hpp>
#include <xgrad/pretrained/detail/weights/stored_as.hpp>
#include <xgrad/xgrad.hpp>

#include "../difference.hpp"
#include "../expect_error.hpp"
#include "../pool.hpp"
#include "folder.hpp"

namespace decoder_test {

using namespace xgrad::pretrained;
using xgrad::Activation, xgrad::Array, xgrad::FileError, xgrad::Ids, xgrad::Shape, xgrad::TensorView,
    xgrad::ValueError, xgrad::Variable;
using xgrad_tests::FolderCopy, xgrad_tests::message_of, xgrad_tests::read_bytes,
    xgrad_tests::relative_difference;

constexpr Family families[]{Family::gpt2, Family::llama, Family::mistral, Family::qwen2, Family::qwen3};

Config small(Family family) {
  Config config = Config::of(family);
  config.vocab_size = 20;
  config.hidden_size = 8;
  config.intermediate_size = 12;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 2;
  if (family != Family::gpt2) config.num_key_value_heads = 1;
  config.max_position_embeddings = 12;
  config.bos_token_id = 1;
  config.pad_token_id = 0;
  config.eos_token_ids = {2};
  return config;
}

/// A folder of a new model, whose files a test may change.
class NewFolder {
 public:
  explicit NewFolder(Family family) {
    xgrad::manual_seed(1);
    save_folder(CausalLM<float>(small(family)), path());
  }

  std::string path(const std::string& file = "") const {
    return temporary_.path(file.empty() ? "model" : "model/" + file);
  }

  /// Changes config.json.
  void configure(const std::function<void(nlohmann::json&)>& change) const {
    nlohmann::json config = nlohmann::json::parse(read_bytes(path("config.json")));
    change(config);
    temporary_.write("model/config.json", config.dump());
  }

  /// Changes the tensors of model.safetensors.
  void change(const std::function<void(std::vector<TensorView>&)>& change) const {
    const xgrad::SafetensorsFile file(path("model.safetensors"));
    std::vector<TensorView> tensors = file.tensors();
    change(tensors);
    xgrad::write_safetensors(tensors, path("model.safetensors"));
  }

 private:
  xgrad_tests::TemporaryFolder temporary_;
};

LoadOptions quietly() {
  return {.note = [](const std::string&) {}};
}

Array<float> logits(const std::string& folder) {
  return CausalLM<float>::from_folder(folder, quietly())({Ids{{4, 7, 2, 9}, {1, 1, 3, 5}}}).value();
}

std::string refusal(Family family, const std::function<void(nlohmann::json&)>& change) {
  const NewFolder folder(family);
  folder.configure(change);
  const std::string message = message_of<FileError>([&] { logits(folder.path()); });
  const std::string begin = folder.path("config.json") + ": ";
  return message.starts_with(begin) ? message.substr(begin.size()) : message;
}

TEST(DecoderFolderTest, WhatIsSavedIsLoadedAgain) {
  for (const Family family : families) {
    const NewFolder folder(family);
    const auto model = CausalLM<float>::from_folder(folder.path());
    const xgrad_tests::TemporaryFolder other;
    save_folder(model, other.path("again"));
    for (const char* const file : {"config.json", "model.safetensors"})
      EXPECT_TRUE(read_bytes(folder.path(file)) == read_bytes(other.path(std::string("again/") + file)))
          << model.architecture();
    xgrad::manual_seed(1);
    const CausalLM<float> fresh(small(family));
    EXPECT_EQ(logits(folder.path()), fresh({Ids{{4, 7, 2, 9}, {1, 1, 3, 5}}}).value());
  }
}

TEST(DecoderFolderTest, ConfigsOfMemoryAreWrittenWhole) {
  Config config = small(Family::qwen2);
  config.rotary->theta = 500;
  config.sliding_window = 3;
  config.slides = {false, true};
  config.hidden_act = Activation::gelu;
  config.eos_token_ids = {2, 5};
  config.pad_token_id.reset();
  const xgrad::RotaryConfig scalings[]{
      {.theta = 500, .scaling = xgrad::LinearScaling{3}},
      {.theta = 500, .scaling = xgrad::DynamicScaling{.factor = 2, .max_positions = 12}},
      {.theta = 500,
       .scaling =
           xgrad::Llama3Scaling{
               .factor = 4, .low_freq_factor = 1.5, .high_freq_factor = 3, .original_max_positions = 6}},
      {.theta = 500,
       .scaling = xgrad::YarnScaling{.factor = 4,
                                     .original_max_positions = 6,
                                     .beta_fast = 20,
                                     .beta_slow = 2,
                                     .truncate = false,
                                     .mscale = 0.7,
                                     .mscale_all_dim = 0.3}},
      {.theta = 500,
       .scaling = xgrad::YarnScaling{.factor = 4, .original_max_positions = 6, .attention_factor = 1.5}},
      {.theta = 500,
       .scaling = xgrad::LongScaling{.short_factors = {1, 2},
                                     .long_factors = {3, 4},
                                     .factor = 2,
                                     .original_max_positions = 3,
                                     .attention_factor = 1.25}}};
  for (const xgrad::RotaryConfig& rotary : scalings) {
    config.rotary = rotary;
    xgrad::manual_seed(1);
    const CausalLM<float> model(config);
    const xgrad_tests::TemporaryFolder folder;
    save_folder(model, folder.path("model"));
    EXPECT_EQ(logits(folder.path("model")), model({Ids{{4, 7, 2, 9}, {1, 1, 3, 5}}}).value());
    const Config read = Config::from_folder(folder.path("model"));
    if (const auto* const llama3 = std::get_if<xgrad::Llama3Scaling>(&read.rotary->scaling)) {
      EXPECT_EQ(llama3->high_freq_factor, 3);
    }
    EXPECT_EQ(read.eos_token_ids, config.eos_token_ids);
    EXPECT_FALSE(read.pad_token_id);
  }
}

TEST(DecoderFolderTest, BothSpellingsOfThetaHaveTheSameLimit) {
  for (const double theta : {1e11, 1e12, 2e12}) {
    const NewFolder folder(Family::llama);
    const auto read = [&] { return Config::from_folder(folder.path()); };
    const auto check = [&] {
      if (theta <= 1e12) {
        EXPECT_EQ(read().rotary->theta, theta);
        EXPECT_NO_THROW(read().json("LlamaForCausalLM", "float32"));
      } else {
        EXPECT_TRUE(message_of<FileError>(read).ends_with(
            "rope_theta must be a number from 0 to 1e+12, got 2000000000000.0"));
      }
    };
    folder.configure([&](nlohmann::json& config) { config["rope_parameters"]["rope_theta"] = theta; });
    check();
    folder.configure([&](nlohmann::json& config) {
      config.erase("rope_parameters");
      config["rope_theta"] = theta;
    });
    check();
  }
}

TEST(DecoderFolderTest, ScalingsAreOfAllPositionsUnlessTheFileSaysOtherwise) {
  const NewFolder folder(Family::llama);
  const auto read = [&](const nlohmann::json& more) {
    folder.configure([&](nlohmann::json& config) {
      config.erase("rope_scaling");
      config["rope_parameters"] = {{"rope_type", "yarn"}, {"rope_theta", 500}};
      config["rope_parameters"].update(more);
    });
    return std::get<xgrad::YarnScaling>(Config::from_folder(folder.path()).rotary->scaling);
  };
  EXPECT_EQ(read({{"factor", 4}}).original_max_positions, 12U);
  const xgrad::YarnScaling half = read({{"original_max_position_embeddings", 6}});
  EXPECT_EQ(half.original_max_positions, 6U);
  EXPECT_EQ(half.factor, 2) << "12 positions of 6";
}

TEST(DecoderFolderTest, HeadsOfTheirOwnSizeNeedNotDivideTheHiddenSize) {
  Config config = small(Family::qwen3);
  config.num_attention_heads = 3;
  config.head_dim = 6;
  const CausalLM<float> model(config);
  const xgrad_tests::TemporaryFolder folder;
  save_folder(model, folder.path("model"));
  EXPECT_EQ(logits(folder.path("model")), model({Ids{{4, 7, 2, 9}, {1, 1, 3, 5}}}).value());
}

TEST(DecoderFolderTest, AWindowThatIsNotUsedIsNone) {  // as files of Qwen2.5 have it
  const NewFolder folder(Family::qwen2);
  folder.configure([](nlohmann::json& config) {
    config.erase("layer_types");
    config.update({{"use_sliding_window", false}, {"sliding_window", 3}, {"max_window_layers", 0}});
  });
  EXPECT_FALSE(Config::from_folder(folder.path()).window(1));
}

TEST(DecoderFolderTest, LargeMatricesAreReadWhole) {
  Config config = small(Family::gpt2);
  config.num_hidden_layers = 1;
  config.intermediate_size = 12000;  // more numbers than are read at once
  const CausalLM<float> model(config);
  const xgrad_tests::TemporaryFolder folder;
  save_folder(model, folder.path("model"));
  EXPECT_TRUE(CausalLM<float>::from_folder(folder.path("model")).state_dict() == model.state_dict());
}

TEST(DecoderFolderTest, WhatAProgramChangesIsWrittenAndTheRestStays) {
  const NewFolder folder(Family::gpt2);
  folder.configure([](nlohmann::json& config) { config["summary_type"] = "mean"; });
  Config config = Config::from_folder(folder.path());
  const auto written = [&] { return nlohmann::json::parse(config.json("GPT2LMHeadModel", "float32")); };
  nlohmann::json expected = written();
  EXPECT_EQ(expected.at("summary_type"), "mean");
  config.hidden_dropout_prob = 0.3;
  expected["resid_pdrop"] = 0.3;
  EXPECT_EQ(written(), expected);
}

/// The message of saving a small model with a change; the file's name of what is refused comes first.
std::string refused_to_save(Family family, const std::function<void(Config&)>& change) {
  Config config = small(family);
  change(config);
  const CausalLM<float> model(config);
  const xgrad_tests::TemporaryFolder folder;
  const std::string message = message_of<ValueError>([&] { save_folder(model, folder.path("model")); });
  EXPECT_FALSE(std::filesystem::exists(folder.path("model"))) << message;
  return message;
}

TEST(DecoderFolderTest, WhatConfigJsonCannotSayIsNotSaved) {
  using C = Config;
  const auto llama = [](const std::function<void(C&)>& change) {
    const std::string message = refused_to_save(Family::llama, change);
    return message.substr(0, message.find(", as"));
  };
  EXPECT_EQ(
      refused_to_save(Family::llama, [](C& c) { c.sliding_window = 3; }),
      "config.json: sliding_window must be null, as a file of a llama model can say nothing else, got 3");
  EXPECT_EQ(llama([](C& c) { c.scale_attention = false; }), "config.json: scale_attention must be true");
  EXPECT_EQ(llama([](C& c) { c.scale_attention_by_layer = true; }),
            "config.json: scale_attention_by_layer must be false");
  EXPECT_EQ(llama([](C& c) { c.query_key_norm = xgrad::QueryKeyNorm::head; }),
            "config.json: query_key_norm must be \"none\"");
  EXPECT_EQ(llama([](C& c) { c.norm_offset = 1; }), "config.json: norm_offset must be 0.0");
  EXPECT_EQ(llama([](C& c) { c.query_pre_attn_scalar = 7; }),
            "config.json: query_pre_attn_scalar must be null");
  EXPECT_EQ(llama([](C& c) { c.attn_logit_softcapping = 7; }),
            "config.json: attn_logit_softcapping must be null");
  EXPECT_EQ(llama([](C& c) { c.scale_embeddings = true; }), "config.json: scale_embeddings must be false");
  EXPECT_EQ(llama([](C& c) { c.rms_norm = false; }), "config.json: rms_norm must be true");
  EXPECT_EQ(llama([](C& c) { c.gated_mlp = false; }), "config.json: gated_mlp must be true");
  EXPECT_EQ(llama([](C& c) { c.output_bias = true; }), "config.json: output_bias must be false");
  EXPECT_EQ(llama([](C& c) { c.hidden_dropout_prob = 0.1; }), "config.json: hidden_dropout_prob must be 0.0");
  EXPECT_EQ(llama([](C& c) { c.embedding_dropout = 0.1; }), "config.json: embedding_dropout must be 0.0");
  EXPECT_EQ(llama([](C& c) { c.padding_row = false; }), "config.json: padding_row must be true");
  EXPECT_EQ(llama([](C& c) { c.rotary->scaling = xgrad::DynamicScaling{.factor = 2, .max_positions = 6}; }),
            "config.json: rotary must be "
            R"({"factor":2.0,"max_positions":12,"rope_theta":10000.0,"rope_type":"dynamic"})");
  EXPECT_EQ(llama([](C& c) { c.layer_norm_eps = INFINITY; }),
            "config.json: rms_norm_eps must be a number from 0 to 1e+09, got inf");
  EXPECT_EQ(refused_to_save(Family::mistral,
                            [](C& c) {
                              c.slides = {true, false};
                            }),
            "config.json: slides must be [], as a file of a mistral model can say nothing else, got "
            "[true,false]");
  EXPECT_EQ(refused_to_save(Family::qwen2, [](C& c) { c.mlp_bias = true; }),
            "config.json: mlp_bias must be false, as a file of a qwen2 model can say nothing else, got true");
  const auto gpt2 = [](const std::function<void(C&)>& change) {
    const std::string message = refused_to_save(Family::gpt2, change);
    return message.substr(0, message.find(", as"));
  };
  EXPECT_EQ(gpt2([](C& c) { c.num_key_value_heads = 1; }), "config.json: num_key_value_heads must be 2");
  EXPECT_EQ(gpt2([](C& c) { c.head_dim = 2; }), "config.json: head_dim must be 4");
  EXPECT_EQ(gpt2([](C& c) { c.sliding_window = 3; }), "config.json: sliding_window must be null");
  EXPECT_EQ(gpt2([](C& c) { c.rotary.emplace(); }), "config.json: rotary must be null");
}

TEST(DecoderFolderTest, ModelsWithPartsThatTheFamilyHasNotAreNotMade) {
  const auto refusal = [](Family family, const std::function<void(Config&)>& change) {
    Config config = small(family);
    change(config);
    return message_of<ValueError>([&] { const CausalLM<float> model(config); });
  };
  EXPECT_EQ(refusal(Family::llama, [](Config& c) { c.rotary.reset(); }),
            "Config: rotary must be there in llama, which has no name for learned positions, got none");
  EXPECT_EQ(refusal(Family::gpt2, [](Config& c) { c.gated_mlp = true; }),
            "Config: gated_mlp must be false in gpt2, which has no name for gates, got true");
  EXPECT_EQ(refusal(Family::gpt2, [](Config& c) { c.query_key_norm = xgrad::QueryKeyNorm::all; }),
            "Config: query_key_norm must be none in gpt2, which has no name for these norms, got all");
  EXPECT_EQ(
      refusal(Family::llama, [](Config& c) { c.num_hidden_groups = 1; }),
      "Config: num_hidden_groups must be 0 and inner_group_num 1 in llama, which has no name for groups "
      "of layers, got 1 and 1");
  EXPECT_EQ(refusal(Family::llama, [](Config& c) { c.query_pre_attn_scalar = 0; }),
            "Config: query_pre_attn_scalar must be above 0, got 0");
  EXPECT_EQ(refusal(Family::llama, [](Config& c) { c.attn_logit_softcapping = -1; }),
            "Config: attn_logit_softcapping must be above 0, got -1");
  EXPECT_EQ(refusal(Family::gpt2, [](Config& c) { c.bos_token_id = 20; }),
            "Config: bos_token_id must be below vocab_size, got 20 and 20");
  EXPECT_EQ(refusal(Family::qwen2,
                    [](Config& c) {
                      c.eos_token_ids = {2, 21};
                    }),
            "Config: eos_token_ids must be below vocab_size, got 21 and 20");
}

TEST(StoredAsTest, PartsOfOtherLengthsAreJoinedWhole) {
  constexpr detail::StoredAs both[]{{"qk", {"q", "k"}}};
  const auto stored = detail::as_stored<float>(
      both, "", {{"q.weight", Array<float>{{1, 2}, {3, 4}, {5, 6}}}, {"k.weight", Array<float>{{7, 8}}}});
  EXPECT_EQ(stored.at("qk.weight"), (Array<float>{{1, 2}, {3, 4}, {5, 6}, {7, 8}}));
}

TEST(DecoderFolderTest, MasksOfOlderFilesAreNoWeights) {
  const NewFolder folder(Family::gpt2);
  static const float number = 1;
  folder.change([](std::vector<TensorView>& tensors) {
    for (const char* const name : {"transformer.h.0.attn.bias", "transformer.h.0.attn.masked_bias"})
      tensors.push_back({name, xgrad::DType::F32, {1}, std::as_bytes(std::span(&number, 1))});
  });
  LoadOptions options;
  options.note = [](const std::string& note) { ADD_FAILURE() << note; };
  CausalLM<float>::from_folder(folder.path(), options);
}

TEST(DecoderFolderTest, FieldsChangeTheirMembers) {
  const NewFolder mistral(Family::mistral), qwen3(Family::qwen3), gpt2(Family::gpt2);
  mistral.configure([](nlohmann::json& config) {
    config["num_key_value_heads"] = nullptr;
    config["sliding_window"] = nullptr;
  });
  const Config without = Config::from_folder(mistral.path());
  EXPECT_EQ(without.key_value_heads(), 2U) << "as many as of queries";
  EXPECT_FALSE(without.sliding_window);
  qwen3.configure([](nlohmann::json& config) { config["head_dim"] = nullptr; });
  EXPECT_EQ(Config::from_folder(qwen3.path()).head_size(), 4U) << "hidden_size / num_attention_heads";
  gpt2.configure([](nlohmann::json& config) {
    config["layer_norm_epsilon"] = 0.01;
    config["n_special"] = 0;
  });
  const Config config = Config::from_folder(gpt2.path());
  EXPECT_EQ(config.layer_norm_eps, 0.01);
  EXPECT_EQ(config.initializer_range, 0.02);
}

TEST(DecoderFolderTest, FieldsThatAreNotBuiltAreRefusedByName) {
  using Json = nlohmann::json;
  EXPECT_EQ(refusal(Family::gpt2, [](Json& c) { c["n_special"] = 1; }),
            "n_special must be 0.0, as tokens beside the vocabulary are not supported, got 1");
  EXPECT_EQ(refusal(Family::llama, [](Json& c) { c["pretraining_tp"] = 2; }),
            "pretraining_tp must be 1.0, as layers in parts are not supported, got 2");
  EXPECT_EQ(refusal(Family::gpt2, [](Json& c) { c["add_cross_attention"] = true; }),
            "add_cross_attention must be false, as only decoders alone are supported, got true");
  EXPECT_EQ(
      refusal(Family::llama,
              [](Json& c) {
                c["quantization_config"] = {{"bits", 4}};
              }),
      "quantization_config must be null, as quantised weights of decoders are not supported, got an object");
  EXPECT_EQ(
      refusal(Family::qwen3, [](Json& c) { c["layer_scale"] = 2; }),
      "the field \"layer_scale\" of a qwen3 model is not known, and may change what it computes; remove "
      "it if it does not");
  EXPECT_EQ(refusal(Family::llama, [](Json& c) { c["rope_scaling"]["rope_type"] = "proportional"; }),
            "rope_scaling.rope_type must be default, linear, dynamic, llama3, yarn or longrope, got "
            "\"proportional\"");
  EXPECT_EQ(refusal(Family::llama, [](Json& c) { c["rope_parameters"]["partial_rotary_factor"] = 0.5; }),
            "rope_parameters.partial_rotary_factor must be 1, as all of a head is rotated, got 0.5");
  EXPECT_EQ(refusal(Family::llama, [](Json& c) { c["num_key_value_heads"] = 3; }),
            "num_key_value_heads must divide num_attention_heads, got 3 and 2");
  EXPECT_EQ(refusal(Family::qwen2, [](Json& c) { c["layer_types"] = {"sliding_attention"}; }),
            "layer_types[0] must be full_attention, as there is no sliding_window or use_sliding_window is "
            "false, got \"sliding_attention\"");
  EXPECT_EQ(refusal(Family::qwen2, [](Json& c) { c["layer_types"] = {"full_attention"}; })
                .find("layer_types must be 2 types, as num_hidden_layers says, got "),
            0u);
  EXPECT_EQ(refusal(Family::llama, [](Json& c) { c["head_dim"] = 3; }),
            "head_dim, or hidden_size / num_attention_heads, must be an even number up to 65536, got 3");
  EXPECT_EQ(refusal(Family::gpt2,
                    [](Json& c) {
                      c["eos_token_id"] = {3, 20};
                    }),
            "eos_token_id[1] must be a whole number from 0 to 19, got 20");
  EXPECT_EQ(refusal(Family::gpt2, [](Json& c) { c["eos_token_id"] = std::vector<int>(1001, 3); }),
            "eos_token_id must be at most 1000 ids, got an array");
  EXPECT_EQ(refusal(Family::gpt2, [](Json& c) { c["model_type"] = "gpt_neox"; }),
            "model_type must be gpt2, llama, mistral, qwen2 or qwen3 (the supported decoders), got "
            "\"gpt_neox\"");
  const NewFolder decoder(Family::llama);
  EXPECT_NE(message_of<FileError>([&] {
              Encoder<float>::from_folder(decoder.path());
            }).find("as it is a decoder, which CausalLM loads, got \"llama\""),
            std::string::npos);
}

TEST(DecoderFolderTest, BiasesOfAttentionAreThoseOfAllItsLayers) {
  for (const Family family : {Family::llama, Family::qwen3}) {
    const NewFolder folder(family);
    folder.configure([](nlohmann::json& config) { config["attention_bias"] = true; });
    const Config config = Config::from_folder(folder.path());
    EXPECT_TRUE(config.query_bias);
    EXPECT_TRUE(config.output_bias);
  }
}

TEST(DecoderFolderTest, MatricesThatDoNotFitAreRefused) {
  const NewFolder folder(Family::gpt2);
  folder.configure([](nlohmann::json& config) { config["n_inner"] = 13; });
  EXPECT_EQ(message_of<FileError>([&] { logits(folder.path()); }),
            folder.path("model.safetensors") +
                ": tensor \"transformer.h.0.mlp.c_fc.weight\": shape must be (8, 13) as config.json says, "
                "got (8, 12)");
}

TEST(DecoderFolderTest, PrecisionsThatAreNotBuiltAreRefused) {
  const NewFolder folder(Family::llama);
  LoadOptions options = quietly();
  options.precision = Precision::int8;
  EXPECT_EQ(message_of<ValueError>([&] { CausalLM<float>::from_folder(folder.path(), options); }),
            "Decoder: the precision must be float32 or bfloat16, got int8");
}

TEST(DecoderFolderTest, ConfigsThatCannotBeAreRefused) {
  Config config = small(Family::qwen2);
  config.slides = {true};
  EXPECT_EQ(message_of<ValueError>([&] { config.check(); }),
            "Config: layer_types must have num_hidden_layers types, got 1 and 2");
  config.slides.clear();
  config.sliding_window = 0;
  EXPECT_EQ(message_of<ValueError>([&] { config.check(); }),
            "Config: sliding_window must be at least 1, got 0");
}

TEST(DecoderFolderTest, TheFamilyIsToldByTheClass) {
  const NewFolder folder(Family::gpt2);
  const Array<float> expected = logits(folder.path());
  folder.configure([](nlohmann::json& config) { config.erase("model_type"); });
  EXPECT_EQ(logits(folder.path()), expected);
  folder.configure([](nlohmann::json& config) {
    for (const auto& [name, other] : {std::pair{"n_embd", "hidden_size"},
                                      {"n_layer", "num_hidden_layers"},
                                      {"n_head", "num_attention_heads"},
                                      {"n_positions", "max_position_embeddings"}}) {
      config[other] = config[name];
      config.erase(name);
    }
  });
  EXPECT_EQ(logits(folder.path()), expected) << "with the names of other families";
}

TEST(DecoderFolderTest, OutputsAreTiedUnlessTheFileHasOthers) {
  const NewFolder folder(Family::gpt2);
  const Array<float> expected = logits(folder.path());
  std::vector<float> head(20 * 8, 0.5F);
  const auto add_head = [&](std::vector<TensorView>& tensors, std::span<const std::byte> bytes) {
    std::erase_if(tensors, [](const TensorView& one) { return one.name == "lm_head.weight"; });
    tensors.push_back({"lm_head.weight", xgrad::DType::F32, {20, 8}, bytes});
  };
  folder.change([&](std::vector<TensorView>& tensors) {  // as files of older programs, with the same
    const auto words = std::find_if(tensors.begin(), tensors.end(), [](const TensorView& one) {
      return one.name == "transformer.wte.weight";
    });
    add_head(tensors, words->bytes);
  });
  const auto tied = CausalLM<float>::from_folder(folder.path(), quietly());
  EXPECT_EQ(tied({Ids{{4, 7, 2, 9}, {1, 1, 3, 5}}}).value(), expected);
  EXPECT_FALSE(tied.state_dict().contains("lm_head.weight"));
  folder.change([&](std::vector<TensorView>& tensors) { add_head(tensors, std::as_bytes(std::span(head))); });
  const auto both = CausalLM<float>::from_folder(folder.path(), quietly());
  EXPECT_EQ(both.state_dict().at("lm_head.weight")(3, 2), 0.5F);
  EXPECT_NE(logits(folder.path()), expected);
}

TEST(DecoderFolderTest, WeightsAreRoundedToHalvesAsAsked) {
  xgrad::manual_seed(1);
  const CausalLM<float> model(small(Family::gpt2));
  const xgrad_tests::TemporaryFolder folder;
  for (const auto& [dtype, name] :
       {std::pair{xgrad::DType::BF16, "bfloat16"}, {xgrad::DType::F16, "float16"}}) {
    save_folder(model, folder.path(name), {.dtype = dtype});
    EXPECT_EQ(Config::from_folder(folder.path(name)).dtype, name);
    const xgrad::SafetensorsFile file(folder.path(name) + "/model.safetensors");
    for (const TensorView& tensor : file.tensors()) EXPECT_EQ(tensor.dtype, dtype) << tensor.name;
    const auto once = CausalLM<float>::from_folder(folder.path(name));
    save_folder(once, folder.path("twice"), {.dtype = dtype});
    EXPECT_TRUE(read_bytes(folder.path(name) + "/model.safetensors") ==
                read_bytes(folder.path("twice/model.safetensors")));
    const double most = dtype == xgrad::DType::BF16 ? 0x1p-8 : 0x1p-11;
    const auto before = model.state_dict(), after = once.state_dict();
    for (const auto& [parameter, values] : before) {
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_NEAR(after.at(parameter).data()[i], values.data()[i], most * std::abs(values.data()[i]) + 1e-7)
            << parameter;
    }
  }
  EXPECT_EQ(
      message_of<ValueError>([&] { save_folder(model, folder.path("x"), {.dtype = xgrad::DType::I8}); }),
      "save_folder: dtype must be F32, F64, BF16 or F16, got I8");
  model.decoder().word_embeddings().assign(Array<float>(xgrad::full<float>({20, 8}, 70000.0F)));
  EXPECT_EQ(
      message_of<ValueError>([&] { save_folder(model, folder.path("x"), {.dtype = xgrad::DType::F16}); }),
      "save_folder: \"transformer.wte.weight\" has 70000, which is too large for F16");
}

TEST(DecoderFolderTest, MatricesAreKeptAsBfloat16WhereAsked) {
  for (const Family family : families) {
    xgrad::manual_seed(1);
    const xgrad_tests::TemporaryFolder folder;
    Config config = small(family);
    config.initializer_range = 0.5;
    save_folder(CausalLM<float>(config), folder.path("half"), {.dtype = xgrad::DType::BF16});
    save_folder(CausalLM<float>::from_folder(folder.path("half")), folder.path("float"));
    const auto floats = CausalLM<float>::from_folder(folder.path("float"));
    for (const char* const from : {"half", "float"}) {
      LoadOptions options;
      options.dtype = xgrad::DType::BF16;
      const auto halves = CausalLM<float>::from_folder(folder.path(from), options);
      for (const auto& [name, parameter] : halves.named_parameters())
        EXPECT_EQ(parameter.dimension(), 1u) << name;
      EXPECT_EQ(halves.named_weights().size(), floats.named_parameters().size());
      for (const auto& [name, weight] : halves.named_weights())
        EXPECT_EQ(weight.dtype() == xgrad::DType::BF16, weight.shape().size() == 2) << name;
      const Input input{Ids{{4, 7, 2, 9}, {1, 1, 3, 5}}};
      const auto want = floats(input).value(), got = halves(input).value();
      for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got.data()[i], want.data()[i], 1e-4);
      EXPECT_NEAR(halves.loss(input, input.input_ids).item(), floats.loss(input, input.input_ids).item(),
                  1e-4);
      save_folder(halves, folder.path("again"));
      EXPECT_TRUE(read_bytes(folder.path("half/model.safetensors")) ==
                  read_bytes(folder.path("again/model.safetensors")));
      EXPECT_NE(message_of<ValueError>([&] { halves.state_dict(); }).find("must be of float numbers, got"),
                std::string::npos);
      halves.loss(input, input.input_ids).backward();
      for (const auto& [name, parameter] : halves.named_parameters())
        EXPECT_TRUE(parameter.has_grad()) << name;
    }
    EXPECT_EQ(message_of<xgrad::IndexError>([&] {
                LoadOptions options;
                options.dtype = xgrad::DType::BF16;
                CausalLM<float>::from_folder(folder.path("half"), options)({Ids{{20, 1}}});
              }).substr(0, 3),
              floats.decoder().config().rotary ? "mod" : "tra");
  }
  const NewFolder folder(Family::llama);
  folder.change([](std::vector<TensorView>& tensors) {
    static const std::vector<std::uint16_t> bits(20 * 8, 0x7f80);
    for (TensorView& tensor : tensors)
      if (tensor.name == "model.embed_tokens.weight")
        tensor = {tensor.name, xgrad::DType::BF16, {20, 8}, std::as_bytes(std::span(bits))};
  });
  LoadOptions options;
  options.dtype = xgrad::DType::BF16;
  EXPECT_NE(message_of<FileError>([&] {
              CausalLM<float>::from_folder(folder.path(), options);
            }).find("must hold finite numbers, got inf at place 0"),
            std::string::npos);
  EXPECT_EQ(message_of<ValueError>(
                [&] { Encoder<float>::from_folder(xgrad_tests::model_folder("bert_sentence"), options); }),
            "from_folder: dtype is for decoders alone");
}

TEST(HalvesTest, AreTheNearestOnes) {
  using detail::bfloat16_of, detail::fits_half, detail::half_of;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = xgrad::half_to_float(half);
    if (std::isfinite(value)) {
      ASSERT_EQ(half_of(value), half) << value;
    }
    const float brain = xgrad::bfloat16_to_float(half);
    if (std::isfinite(brain)) {
      ASSERT_EQ(bfloat16_of(brain), half) << brain;
    }
  }
  EXPECT_EQ(half_of(1 + 0x1p-11F), 0x3c00) << "ties go to even numbers";
  EXPECT_EQ(half_of(1 + 3 * 0x1p-11F), 0x3c02);
  EXPECT_EQ(half_of(1 + 0x1.8p-11F), 0x3c01);
  EXPECT_EQ(half_of(0x1.ffcp-15F + 0x1p-26F), 0x0400) << "the largest below the normal ones";
  EXPECT_EQ(half_of(0x1p-25F), 0) << "half of the smallest";
  EXPECT_EQ(half_of(-0x1.8p-25F), 0x8001);
  EXPECT_EQ(half_of(65519), 0x7bff);
  EXPECT_TRUE(fits_half(65519));
  EXPECT_FALSE(fits_half(65520));
  EXPECT_FALSE(fits_half(-INFINITY));
  EXPECT_EQ(bfloat16_of(1 + 0x1p-8F), 0x3f80);
  EXPECT_EQ(bfloat16_of(1 + 3 * 0x1p-8F), 0x3f82);
}

TEST(DecoderTest, PaddingInFrontMovesPositions) {
  for (const Family family : families) {
    xgrad::manual_seed(2);
    Config config = small(family);
    config.initializer_range = 0.5;
    if (config.rotary) config.rotary->scaling = xgrad::DynamicScaling{.factor = 2, .max_positions = 3};
    const CausalLM<double> model(config);
    const auto alone = model({Ids{{4, 7, 2}}}).value();
    const auto left = model({Ids{{0, 0, 4, 7, 2}}, Ids{{0, 0, 1, 1, 1}}}).value();
    const auto right = model({Ids{{4, 7, 2, 0, 0}}, Ids{{1, 1, 1, 0, 0}}}).value();
    for (std::size_t i = 0; i < alone.size(); ++i) {
      ASSERT_NEAR(left.data()[2 * 20 + i], alone.data()[i], 1e-12);
      if (config.rotary) continue;  // whose angles depend on the length with padding behind
      ASSERT_NEAR(right.data()[i], alone.data()[i], 1e-12);
    }
  }
}

TEST(DecoderTest, PaddingBetweenTokensCounts) {
  for (const Family family : families) {
    xgrad::manual_seed(2);
    Config config = small(family);
    config.initializer_range = 0.5;
    const Decoder<double> model(config);
    // How much the last token sees of the first one, over what it sees of itself.
    const auto share = [&](const Ids& ids, const Ids& mask, std::size_t first) {
      const auto seen = model({ids, mask}, {.attentions = true}).attentions.front().value();
      const std::size_t last = ids.shape(1) - 1;
      return seen(0, 1, last, first) / seen(0, 1, last, last);
    };
    const double expected = share(Ids{{4, 7, 2}}, Ids{{1, 1, 1}}, 0);
    EXPECT_NEAR(share(Ids{{4, 7, 2}}, Ids{{1, 0, 1}}, 0), expected, 1e-9 * expected);
    EXPECT_NEAR(share(Ids{{0, 0, 4, 7, 2}}, Ids{{0, 0, 1, 0, 1}}, 2), expected, 1e-9 * expected);
  }
}

TEST(DecoderTest, ScoresAreDividedByTheNumberOfTheLayerWhereAsked) {
  Config config = small(Family::gpt2);
  config.initializer_range = 0.5;
  const auto made = [&] {
    xgrad::manual_seed(2);
    return CausalLM<double>(config);
  };
  const CausalLM<double> plain = made();
  config.scale_attention_by_layer = true;
  const CausalLM<double> scaled = made();
  for (const auto& [name, parameter] : scaled.named_parameters()) {
    if (name.find("h.1.attn.q_proj.") != name.npos)
      parameter.assign(Array<double>(2 * parameter.value()));  // what the second layer divides by
  }
  const Input input{Ids{{4, 7, 2, 5}}};
  EXPECT_LT(relative_difference(scaled(input).value(), plain(input).value()), 1e-12);
}

TEST(DecoderTest, NoTokenSeesLaterOnes) {
  for (const Family family : families) {
    xgrad::manual_seed(2);
    Config config = small(family);
    if (config.rotary) config.sliding_window = 2;
    config.initializer_range = 0.5;
    const Decoder<double> model(config);
    const auto seen = model({Ids{{4, 7, 2, 5, 6, 8}}}, {.attentions = true}).attentions;
    for (const auto& weights : seen) {
      for (std::size_t i = 0; i < 6; ++i)
        for (std::size_t j = 0; j < 6; ++j)
          EXPECT_EQ(weights.value()(0, 1, i, j) > 0, j <= i && (!config.sliding_window || i - j < 2));
    }
  }
}

/// The gradients of a step of training, with dropout and padding in front of a text.
std::vector<Array<float>> gradients_of(const CausalLM<float>& model) {
  model.train();
  for (const Variable<float>& parameter : model.parameters()) parameter.zero_grad();
  xgrad::manual_seed(3);
  const Ids text{{0, 0, 1, 9, 8}, {1, 7, 9, 8, 2}};
  model.loss({.input_ids = text, .attention_mask = Ids{{0, 0, 1, 1, 1}, {1, 1, 1, 1, 1}}}, text).backward();
  std::vector<Array<float>> gradients;
  for (const Variable<float>& parameter : model.parameters()) gradients.push_back(parameter.grad().value());
  return gradients;
}

/// 98 million logits, of which a block has 17 million at most.
TEST(DecoderTest, TheLossOfABfloat16HeadHoldsABlockOfLogitsAtATime) {
  if (!xgrad_tests::pool_keeps_memory()) GTEST_SKIP() << "the pool keeps nothing in this build";
  Config config = small(Family::llama);
  config.vocab_size = 16384;
  config.num_hidden_layers = 1;
  config.initializer_range = 0.5;
  xgrad::manual_seed(1);
  const xgrad_tests::TemporaryFolder folder;
  save_folder(CausalLM<float>(config), folder.path("half"), {.dtype = xgrad::DType::BF16});
  const auto floats = CausalLM<float>::from_folder(folder.path("half"));
  const auto halves = CausalLM<float>::from_folder(folder.path("half"), {.dtype = xgrad::DType::BF16});
  const Ids ids = xgrad::randint(0, 16384, {600, 11});
  Ids labels = ids;
  labels(0, 1) = labels(599, 10) = -100;
  const auto gradient = [&](const CausalLM<float>& model) {
    const auto named = model.named_parameters();
    const auto norm =
        std::ranges::find(named, "model.norm.weight", &xgrad::NamedParameter<float>::first)->second;
    norm.zero_grad();
    const Variable<float> loss = model.loss({ids}, labels);
    loss.backward();
    return std::pair(loss.value(), norm.grad().value());
  };
  xgrad::empty_cache();
  const auto got = gradient(halves);
  EXPECT_LT(xgrad::memory_stats().cached_bytes, 600 * 10 * 16384 * sizeof(float));
  const auto want = gradient(floats);
  EXPECT_LT(relative_difference(got.first, want.first), 1e-5);
  EXPECT_LT(relative_difference(got.second, want.second), 1e-4);
}

TEST(DecoderTest, TheLossOfABfloat16HeadIsReducedAsAnyOther) {
  Config config = small(Family::llama);
  config.initializer_range = 0.5;
  const xgrad_tests::TemporaryFolder folder;
  save_folder(CausalLM<float>(config), folder.path("half"), {.dtype = xgrad::DType::BF16});
  const auto floats = CausalLM<float>::from_folder(folder.path("half"));
  const auto halves = CausalLM<float>::from_folder(folder.path("half"), {.dtype = xgrad::DType::BF16});
  const Ids ids{{1, 9, 8, 3}, {2, 2, 4, 5}}, labels{{1, 9, -100, 3}, {2, 2, 4, 5}};
  for (const auto reduction : {xgrad::Reduction::mean, xgrad::Reduction::sum, xgrad::Reduction::none}) {
    const Array<float> got = halves.loss({ids}, labels, reduction).value(),
                       want = floats.loss({ids}, labels, reduction).value();
    EXPECT_LT(relative_difference(got, want), 1e-5);
  }
  EXPECT_TRUE(std::isnan(halves.loss({ids}, Ids(ids.shape(), -100)).item())) << "the mean of none";
}

TEST(DecoderTest, CheckpointsOfLayersChangeNoBitOfTheGradients) {
  for (const Family family : families) {
    Config config = small(family);
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.2;
    xgrad::manual_seed(1);
    const CausalLM<float> model(config);
    const std::vector<Array<float>> expected = gradients_of(model);
    model.decoder().checkpoint_layers();
    EXPECT_EQ(gradients_of(model), expected);
    model.decoder().checkpoint_layers(false);
    EXPECT_EQ(gradients_of(model), expected);
  }
}

TEST(DecoderTest, WithCheckpointsTheGraphHoldsLess) {
  const CausalLM<float> model(small(Family::llama));
  model.train();
  const auto blocks_of_a_graph = [&] {
    const std::ptrdiff_t before = xgrad::memory_stats().live_blocks;
    const Variable<float> hidden = model.decoder()({Ids{{1, 9, 8}}}).last_hidden_state;
    return xgrad::memory_stats().live_blocks - before;
  };
  const std::ptrdiff_t all = blocks_of_a_graph();
  model.decoder().checkpoint_layers();
  EXPECT_LT(2 * blocks_of_a_graph(), all);
  const auto attentions = model.decoder()({Ids{{1, 9, 8}}}, {.attentions = true}).attentions;
  EXPECT_EQ(attentions.size(), 2U);
}

TEST(DecoderTest, ClassesAreMadeOfConfigsThatAreAsCausal) {
  Config config = small(Family::llama);
  EXPECT_EQ(message_of<ValueError>([&] { const Encoder<float> encoder(config); }),
            "Encoder: is_causal of the config must be false, got true");
  config.is_causal = false;
  EXPECT_EQ(message_of<ValueError>([&] { const CausalLM<float> model(config); }),
            "Decoder: is_causal of the config must be true, got false");
}

TEST(DecoderTest, WithoutTheCausalMaskADecoderIsAnEncoder) {
  Config config = small(Family::llama);
  xgrad::manual_seed(1);
  const Decoder<float> decoder(config);
  config.is_causal = false;
  xgrad::manual_seed(1);
  const Encoder<float> encoder(config);
  const auto first = [](const auto& model, const Ids& ids) {
    return Array<float>(xt::view(model({ids}).last_hidden_state.value(), 0, 0));
  };
  EXPECT_EQ(encoder.state_dict(), decoder.state_dict());
  EXPECT_EQ(first(encoder, Ids(Shape{1, 1}, 4)), first(decoder, Ids(Shape{1, 1}, 4)));
  EXPECT_EQ(first(decoder, Ids{{4, 7}}), first(decoder, Ids{{4, 9}}));
  EXPECT_NE(first(encoder, Ids{{4, 7}}), first(encoder, Ids{{4, 9}}));
  const xgrad_tests::TemporaryFolder folder;
  EXPECT_EQ(
      message_of<ValueError>([&] { save_folder(encoder, folder.path("model")); }),
      "config.json: is_causal must be true, as a file of a llama model can say nothing else, got false");
}

TEST(DecoderTest, RotaryPositionsHaveNoEnd) {
  const CausalLM<float> model(small(Family::llama));
  EXPECT_FALSE(model.config().max_length());
  EXPECT_NO_THROW(model({Ids(Shape{1, 13}, 1)}));
}

TEST(DecoderTest, TheEmbeddingOfPaddingLearnsNothing) {
  const CausalLM<double> model(small(Family::llama));
  model.loss({Ids{{0, 4, 7}}}, Ids{{0, 4, 7}}).backward();
  const Array<double> gradient = model.decoder().word_embeddings().grad().value();
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(gradient(0, i), 0);
  EXPECT_NE(gradient(4, 0), 0);
}

TEST(DecoderTest, RefusesInputsThatItCannotCompute) {
  const CausalLM<float> model(small(Family::gpt2));
  EXPECT_EQ(message_of<xgrad::ShapeError>([&] {
              model({Ids(Shape{1, 13}, 1)});
            }),
            "transformer: Decoder: input_ids must have at most 12 positions, got (1, 13)");
  EXPECT_EQ(message_of<ValueError>([&] {
              model({Ids{{1, 2}}, {}, Ids{{0, 0}}});
            }),
            "Decoder: token_type_ids must be absent, as tokens have no types");
  auto cache = model.decoder().new_cache();
  const std::vector<std::size_t> two{2};
  std::vector<xgrad::KeyValueCache<float>> caches{cache};
  EXPECT_EQ(message_of<xgrad::GraphError>([&] {
              model.next_logits(Ids{1, 2}, two, caches);
            }),
            "transformer: Decoder: caches keep no gradients: call it under NoGrad");
  const xgrad::NoGrad no_grad;
  EXPECT_EQ(message_of<xgrad::ShapeError>([&] { model.next_logits(Ids{1}, two, caches); }),
            "transformer: Decoder: lengths must be those of tokens (rows), at least 1 each, one for each "
            "cache, got 1 lengths for 1 caches, and tokens (1)");
  EXPECT_NE(message_of<xgrad::ShapeError>([&] {
              model.next_logits(Ids{1, 2, 3}, two, caches);
            }).find("got 1 lengths for 1 caches, and tokens (3)"),
            std::string::npos)
      << "a token of no text";
  const std::vector<std::size_t> wrapping{static_cast<std::size_t>(-1), 3};
  std::vector<xgrad::KeyValueCache<float>> pair{cache, cache};
  EXPECT_NE(message_of<xgrad::ShapeError>([&] {
              model.next_logits(Ids{1, 2}, wrapping, pair);
            }).find("lengths must be those of tokens (rows)"),
            std::string::npos);
  const auto refused = [&](const std::vector<std::optional<std::size_t>>& windows) {
    std::vector<xgrad::KeyValueCache<float>> others{xgrad::KeyValueCache<float>(windows)};
    return message_of<xgrad::ShapeError>([&] { model.next_logits(Ids{1, 2}, two, others); });
  };
  const std::string must = "transformer: Decoder: a cache must be of the model's new_cache(), with ";
  EXPECT_EQ(refused({std::nullopt}), must + "2 layers, got 1");
  EXPECT_EQ(refused({std::nullopt, 3}), must + "no window in layer 1, got a window of 3");
  EXPECT_EQ(message_of<ValueError>([&] {
              model({Ids{{1, 2}}, Ids{{1, 7}}});
            }),
            "transformer: Decoder: attention_mask must be 1 for tokens and 0 for padding, got 7");
  EXPECT_EQ(message_of<ValueError>([] {
              CausalLM<double>::from_folder("", {.precision = Precision::bfloat16});
            }).empty(),
            false);
}

TEST(DecoderTest, ClassifiesByTheLastTokenThatIsNoPadding) {
  xgrad::manual_seed(2);
  Config config = small(Family::llama);
  const CausalSequenceClassifier<double> model(config);
  EXPECT_EQ(model.named_parameters().back().first, "score.weight") << "without a bias";
  const auto batch = model({Ids{{4, 7, 2, 0, 0}, {4, 0, 7, 2, 9}}, Ids{{1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}}});
  const auto first = model({Ids{{4, 7, 2}}}), second = model({Ids{{4, 0, 7, 2, 9}}});
  for (std::size_t label = 0; label < 2; ++label) {
    EXPECT_NEAR(batch.value()(0, label), first.value()(0, label), 1e-12);
    EXPECT_NEAR(batch.value()(1, label), second.value()(0, label), 1e-12);
  }
  const auto of_one = model({Ids{{4, 0, 0}}}), one = model({Ids(Shape{1, 1}, 4)});
  EXPECT_NEAR(of_one.value()(0, 1), one.value()(0, 1), 1e-12);
  EXPECT_NO_THROW(model({Ids{{0, 0}}})) << "padding alone";
  config.pad_token_id.reset();
  const CausalSequenceClassifier<double> without(config);
  EXPECT_NO_THROW(without({Ids{{4, 7}}}));
  EXPECT_EQ(
      message_of<ValueError>([&] {
        without({Ids{{4, 7}, {3, 1}}});
      }),
      "CausalSequenceClassifier: pad_token_id of the config must tell the ends of 2 sequences, got none");
}

TEST(DecoderTest, FreezesLayers) {
  const CausalLM<float> model(small(Family::llama));
  model.decoder().freeze(1);
  for (const auto& [name, parameter] : model.named_parameters()) {
    const bool frozen = name.starts_with("model.embed_tokens.") || name.starts_with("model.layers.0.");
    EXPECT_EQ(parameter.requires_grad(), !frozen) << name;
  }
  model.loss({Ids{{4, 7, 2}}}, Ids{{4, 7, 2}}).backward();
  model.decoder().freeze({});
  EXPECT_EQ(model.trainable_parameters().size(), model.named_parameters().size());
}

}  // namespace decoder_test
