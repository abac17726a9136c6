// Pretrained decoders and tokenizers in GGUF files: what transformers gave for files of gguf's Python
// package, and refusals.

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include <xgrad/files.hpp>
#include <xgrad/generation.hpp>
#include <xgrad/pretrained.hpp>
#include <xgrad/xgrad.hpp>

#include "../data_folder.hpp"
#include "../expect_error.hpp"
#include "../gguf_writer.hpp"
#include "../programs/gguf_model_goldens.hpp"
#include "../temporary_folder.hpp"

namespace gguf_models_test {

using namespace xgrad::pretrained;
using namespace xgrad_tests::gguf;
using xgrad::FileError;
using xgrad_tests::message_of, xgrad_tests::TemporaryFolder;
using Tokens = std::vector<std::int64_t>;

constexpr std::uint32_t u32 = 4, i32 = 5, f32 = 6, boolean = 7, string = 8;  // types of values
constexpr std::uint32_t F32 = 0;                                             // of tensors

std::string model(const std::string& name) { return xgrad_tests::data_folder("gguf") + name + ".gguf"; }

TEST(GgufModelTest, NumbersAndTokensAreThoseOfTransformers) {
  const auto results = xgrad_tests::gguf_model_goldens(xgrad_tests::data_folder("gguf") + "cases.json");
  EXPECT_GE(results.size(), 4u * 22);
  for (const auto& [name, problem] : results) EXPECT_EQ(problem, "") << name;
}

TEST(GgufModelTest, Bfloat16WeightsAreTheRoundedFloats) {
  for (const char* const name : {"llama_q8_0", "gpt2_q8_0", "qwen2_q8_0"}) {
    const auto floats = CausalLM<float>::from_folder(model(name));
    const auto halves = CausalLM<float>::from_folder(model(name), {.dtype = xgrad::DType::BF16});
    std::size_t matrices = 0;
    for (const auto& [parameter, weight] : halves.named_weights()) {
      if (weight.is_trainable()) continue;
      const auto list = floats.named_parameters();
      const auto found = std::ranges::find(list, parameter, &xgrad::NamedParameter<float>::first);
      ASSERT_NE(found, list.end()) << parameter;
      const auto rounded = xgrad::Weight<float>::bfloat16(found->second.value());
      EXPECT_TRUE(std::ranges::equal(weight.bits(), rounded.bits())) << name << parameter;
      ++matrices;
    }
    EXPECT_GE(matrices, 13u) << name;
  }
}

TEST(GgufModelTest, SavedFolderHasTheSameModelAndTokenizer) {
  for (const char* const name : {"llama_rope_freqs", "gpt2_q8_0", "qwen2_q8_0"}) {
    const TemporaryFolder temporary;
    const std::string folder = temporary.path("saved");
    const auto before = CausalLM<float>::from_folder(model(name));
    save_folder(before, folder);
    load_tokenizer(model(name)).save(folder);
    const auto after = CausalLM<float>::from_folder(folder);
    const Tokens ids = load_tokenizer(folder).encode("the cat sat").ids;
    EXPECT_EQ(ids, load_tokenizer(model(name)).encode("the cat sat").ids);
    EXPECT_EQ(xgrad_tests::logits_of(after, ids), xgrad_tests::logits_of(before, ids)) << name;
    EXPECT_EQ(after.config().eos_token_ids, before.config().eos_token_ids);
  }
}

// ---- files of a small Llama, and what is refused ----

using Keys = std::map<std::string, std::string>;

Keys llama_keys() {
  Keys keys;
  keys["general.architecture"] = key("general.architecture", string, text("llama"));
  const auto put = [&](const std::string& name, std::uint32_t number_of) {
    keys["llama." + name] = key("llama." + name, u32, number(number_of));
  };
  put("block_count", 1);
  put("context_length", 16);
  put("embedding_length", 8);
  put("feed_forward_length", 12);
  put("attention.head_count", 2);
  put("attention.head_count_kv", 1);
  keys["llama.attention.layer_norm_rms_epsilon"] =
      key("llama.attention.layer_norm_rms_epsilon", f32, number(1e-5F));
  return keys;
}

std::string file_of(const Keys& keys,
                    const std::vector<std::string>& names = {"token_embd.weight", "blk.0.attn_norm.weight"}) {
  std::vector<std::string> list, tensors;
  for (const auto& [name, bytes] : keys) list.push_back(bytes);
  for (const std::string& name : names) tensors.push_back(tensor(name, {8, 6}, F32, 192 * tensors.size()));
  return file(list, tensors, std::string(192 * names.size(), '\0'));
}

std::string refusal(const Keys& keys,
                    const std::vector<std::string>& names = {"token_embd.weight", "blk.0.attn_norm.weight"}) {
  const TemporaryFolder temporary;
  const std::string path = temporary.write("model.gguf", file_of(keys, names));
  const std::string message = message_of<FileError>([&] { Config::from_folder(path); });
  return message.starts_with(path + ": ") ? message.substr(path.size() + 2) : message;
}

std::string refusal_with(const std::string& name, const std::string& bytes) {
  Keys keys = llama_keys();
  keys[name] = bytes;
  return refusal(keys);
}

TEST(GgufModelTest, ConfigIsThatOfTheMetadata) {
  const TemporaryFolder temporary;
  Keys keys = llama_keys();
  keys["tokenizer.ggml.eos_token_id"] = key("tokenizer.ggml.eos_token_id", u32, number(2U));
  keys["tokenizer.ggml.eot_token_id"] = key("tokenizer.ggml.eot_token_id", u32, number(5U));
  keys["llama.rope.scaling.type"] = key("llama.rope.scaling.type", string, text("yarn"));
  keys["llama.rope.scaling.factor"] = key("llama.rope.scaling.factor", f32, number(4.0F));
  keys["llama.rope.scaling.original_context_length"] =
      key("llama.rope.scaling.original_context_length", u32, number(4U));
  keys["llama.rope.scaling.finetuned"] =
      key("llama.rope.scaling.finetuned", boolean, number(std::uint8_t{1}));
  keys["split.count"] = key("split.count", u32, number(1U));
  const auto config = Config::from_folder(temporary.write("model.gguf", file_of(keys)));
  EXPECT_EQ(config.vocab_size, 6u);
  EXPECT_EQ(config.head_size(), 4u);
  EXPECT_EQ(config.key_value_heads(), 1u);
  EXPECT_EQ(config.layer_norm_eps, static_cast<double>(1e-5F));
  EXPECT_EQ(config.eos_token_ids, (Tokens{2, 5}));
  EXPECT_TRUE(config.tie_word_embeddings);
  EXPECT_FALSE(config.query_bias);
  const auto& yarn = std::get<xgrad::YarnScaling>(config.rotary->scaling);
  EXPECT_EQ(yarn.factor, 4);
  EXPECT_EQ(yarn.original_max_positions, 4u);
  const std::string untied = temporary.write(
      "untied.gguf", file_of(keys, {"token_embd.weight", "blk.0.attn_norm.weight", "output.weight"}));
  EXPECT_FALSE(Config::from_folder(untied).tie_word_embeddings);
}

TEST(GgufModelTest, TheInnerSizeOfGpt2IsThatOfTheMetadata) {
  Keys keys;
  keys["general.architecture"] = key("general.architecture", string, text("gpt2"));
  for (const auto& [name, size] : {std::pair{"block_count", 1U},
                                   {"context_length", 16U},
                                   {"embedding_length", 8U},
                                   {"feed_forward_length", 12U},
                                   {"attention.head_count", 2U}})
    keys[name] = key(std::string("gpt2.") + name, u32, number(size));
  keys["epsilon"] = key("gpt2.attention.layer_norm_epsilon", f32, number(1e-5F));
  const TemporaryFolder temporary;
  EXPECT_EQ(Config::from_folder(temporary.write("model.gguf", file_of(keys))).intermediate_size, 12u);
}

TEST(GgufModelTest, RefusesWhatItDoesNotCompute) {
  EXPECT_EQ(
      refusal_with("general.architecture", key("general.architecture", string, text("mamba"))),
      "key \"general.architecture\" must be one of the supported architectures, gpt2, llama, qwen2, got "
      "STRING \"mamba\"");
  EXPECT_EQ(
      refusal_with("llama.expert_count", key("llama.expert_count", u32, number(8U))),
      "the key \"llama.expert_count\" with UINT32 8 is not known, and may change what the model computes");
  EXPECT_EQ(
      refusal_with("split.count", key("split.count", u32, number(2U))),
      "key \"split.count\" must be 1, as models in several files are not read (llama-gguf-split --merge "
      "joins them), got UINT32 2");
  EXPECT_EQ(refusal_with("llama.rope.dimension_count", key("llama.rope.dimension_count", u32, number(2U))),
            "key \"llama.rope.dimension_count\" must be the size of a head, 4, got UINT32 2");
  EXPECT_EQ(refusal_with("llama.rope.scaling.type", key("llama.rope.scaling.type", string, text("longrope"))),
            "key \"llama.rope.scaling.type\" must be none, linear or yarn, got STRING \"longrope\"");
  EXPECT_EQ(
      refusal_with("llama.attention.head_count_kv",
                   array("llama.attention.head_count_kv", u32, 1, number(1U))),
      "key \"llama.attention.head_count_kv\" must be a whole number from 1 to 268435456, got ARRAY of 1 "
      "UINT32: 1");
  EXPECT_EQ(refusal(llama_keys(), {"token_embd.weight", "blk.0.ffn_gate_inp.weight"}),
            "tensor \"blk.0.ffn_gate_inp.weight\" is none of a model of the architecture llama");
  EXPECT_EQ(refusal(llama_keys(), {"token_embd.weight"}),
            "key \"llama.block_count\" must be the number of layers in the file, 0, got UINT32 1");
  EXPECT_EQ(refusal(llama_keys(), {"output.weight"}), "must have the matrix \"token_embd.weight\"");
  Keys keys = llama_keys();
  keys.erase("llama.block_count");
  EXPECT_EQ(refusal(keys), "the key \"llama.block_count\" is missing");
  keys = llama_keys();
  keys["tokenizer.ggml.eos_token_id"] = key("tokenizer.ggml.eos_token_id", u32, number(6U));
  EXPECT_EQ(refusal(keys),
            "key \"tokenizer.ggml.eos_token_id\" must be a whole number from 0 to 5, got UINT32 6");
}

TEST(GgufModelTest, EncodersAreNoGgufFiles) {
  EXPECT_NE(message_of<FileError>([] {
              Encoder<float>::from_folder(model("llama_q8_0"));
            }).find("must be a folder with config.json"),
            std::string::npos);
}

// ---- tokenizers ----

std::string texts(const std::vector<std::string>& all) {
  std::string bytes;
  for (const std::string& one : all) bytes += text(one);
  return bytes;
}

template <class T>
std::string numbers(const std::vector<T>& all) {
  std::string bytes;
  for (const T one : all) bytes += number(one);
  return bytes;
}

/// Sentencepiece's tokens: the last two lines merge "ab" before "bc".
Keys sentence_piece_keys() {
  Keys keys = llama_keys();
  const std::vector<std::string> tokens{"<unk>", "<s>", "</s>", "<0x21>", "\u2581",  "a",
                                        "b",     "c",   "ab",   "bc",     "\u2581a", "<tool>"};
  const std::vector<float> scores{0, 0, 0, 0, -9, -8, -7, -6, -1, -2, -3, 0};
  const std::vector<std::int32_t> types{2, 3, 3, 6, 1, 1, 1, 1, 1, 1, 1, 4};
  keys["model"] = key("tokenizer.ggml.model", string, text("llama"));
  keys["tokens"] = array("tokenizer.ggml.tokens", string, tokens.size(), texts(tokens));
  keys["scores"] = array("tokenizer.ggml.scores", f32, scores.size(), numbers(scores));
  keys["types"] = array("tokenizer.ggml.token_type", i32, types.size(), numbers(types));
  keys["bos"] = key("tokenizer.ggml.bos_token_id", u32, number(1U));
  keys["eos"] = key("tokenizer.ggml.eos_token_id", u32, number(2U));
  return keys;
}

xgrad::tokenizers::Tokenizer tokenizer_of(const Keys& keys) {
  const TemporaryFolder temporary;
  return load_tokenizer(temporary.write("model.gguf", file_of(keys)));
}

TEST(GgufTokenizerTest, SentencePieceMergesByScores) {
  Keys keys = sentence_piece_keys();
  const auto tokenizer = tokenizer_of(keys);
  EXPECT_EQ(tokenizer.encode("abc").ids, (Tokens{1, 4, 8, 7}));
  EXPECT_EQ(tokenizer.encode("a bc!").ids, (Tokens{1, 10, 4, 9, 3}));
  EXPECT_EQ(tokenizer.encode("bc</s>z").ids, (Tokens{1, 4, 9, 2, 4, 0}));
  EXPECT_EQ(tokenizer.encode("c<tool>").ids, (Tokens{1, 4, 7, 11}));
  EXPECT_EQ(tokenizer.decode(Tokens{1, 10, 4, 9, 3, 11}), "a bc!<tool>");
  keys["add_bos"] = key("tokenizer.ggml.add_bos_token", boolean, number(std::uint8_t{0}));
  keys["add_eos"] = key("tokenizer.ggml.add_eos_token", boolean, number(std::uint8_t{1}));
  keys["prefix"] = key("tokenizer.ggml.add_space_prefix", boolean, number(std::uint8_t{0}));
  const auto other = tokenizer_of(keys);
  EXPECT_EQ(other.encode("abc").ids, (Tokens{8, 7, 2}));
  EXPECT_EQ(other.encode("a", "c").ids, (Tokens{5, 2, 7, 2}));
  EXPECT_EQ(other.decode(Tokens{4, 5}), " a");
}

TEST(GgufTokenizerTest, RefusesWhatItDoesNotRead) {
  const auto refused = [](const std::string& name, const std::string& bytes) {
    Keys keys = sentence_piece_keys();
    keys[name] = bytes;
    const std::string message = message_of<FileError>([&] { tokenizer_of(keys); });
    return message.substr(message.find(".gguf: ") + 7);
  };
  EXPECT_EQ(
      refused("model", key("tokenizer.ggml.model", string, text("bert"))),
      "key \"tokenizer.ggml.model\" must be gpt2 or llama: other tokenizers are not supported, got STRING "
      "\"bert\"");
  EXPECT_EQ(refused("model", key("tokenizer.ggml.model", string, text("gpt2"))),
            "the key \"tokenizer.ggml.pre\" is missing");
  EXPECT_EQ(
      refused("types", array("tokenizer.ggml.token_type", i32, 1, number(1))),
      "key \"tokenizer.ggml.token_type\" must be as many types as there are tokens, got ARRAY of 1 INT32: "
      "1");
  EXPECT_EQ(
      refused("scores", array("tokenizer.ggml.scores", f32, 1, number(1.0F))),
      "key \"tokenizer.ggml.scores\" must be as many scores as there are tokens, got ARRAY of 1 FLOAT32: "
      "1");
  EXPECT_EQ(refused("bos", key("tokenizer.ggml.bos_token_id", u32, number(12U))),
            "key \"tokenizer.ggml.bos_token_id\" must be a whole number from 0 to 11, got UINT32 12");
  EXPECT_EQ(
      refused("extra", key("tokenizer.ggml.remove_extra_whitespaces", boolean, number(std::uint8_t{1}))),
      "key \"tokenizer.ggml.remove_extra_whitespaces\" must be false, as blanks are kept, got BOOL true");
  EXPECT_EQ(
      refused("tokens", array("tokenizer.ggml.tokens", string, 12, texts(std::vector<std::string>(12, "a")))),
      "key \"tokenizer.ggml.tokens\": tokens must differ, got \"a\" twice");
  EXPECT_EQ(refused("tokens",
                    array("tokenizer.ggml.tokens", string, 12, texts(std::vector<std::string>(12, "\xff")))),
            "key \"tokenizer.ggml.tokens\": token 0 must be UTF-8");
}

TEST(GgufTokenizerTest, PreTokenizerIsKnownByName) {
  Keys keys = llama_keys();
  keys["model"] = key("tokenizer.ggml.model", string, text("gpt2"));
  keys["pre"] = key("tokenizer.ggml.pre", string, text("poro-chat"));
  keys["tokens"] = array("tokenizer.ggml.tokens", string, 3, texts({"a", "1", "11"}));
  keys["merges"] = array("tokenizer.ggml.merges", string, 1, texts({"1 1"}));
  EXPECT_NE(
      message_of<FileError>([&] { tokenizer_of(keys); })
          .find("key \"tokenizer.ggml.pre\" must be one of the supported pre-tokenizers, gpt-2, smollm, "
                "qwen2, deepseek-r1-qwen, llama-bpe, llama3, llama-v3, falcon3, tekken, default, got STRING "
                "\"poro-chat\""),
      std::string::npos);
}

/// Which of the tokens of two characters are found shows where words end.
TEST(GgufTokenizerTest, WordsEndAsThePreTokenizerSays) {
  Keys keys = llama_keys();
  const std::vector<std::string> tokens{"a", "1", "\u0120", "!", "\u010a", "11", "\u0120!", "!\u010a", "1a"};
  keys["model"] = key("tokenizer.ggml.model", string, text("gpt2"));
  keys["tokens"] = array("tokenizer.ggml.tokens", string, tokens.size(), texts(tokens));
  keys["merges"] = array("tokenizer.ggml.merges", string, 4, texts({"1 1", "! \u010a", "\u0120 !", "1 a"}));
  keys["begin"] = key("tokenizer.ggml.add_bos_token", boolean, number(std::uint8_t{0}));
  const auto ids = [&](const char* pre) {
    keys["pre"] = key("tokenizer.ggml.pre", string, text(pre));
    return tokenizer_of(keys).encode("1111a !\n").ids;
  };
  EXPECT_EQ(ids("gpt-2"), (Tokens{5, 5, 0, 6, 4}));
  EXPECT_EQ(ids("smollm"), (Tokens{1, 1, 1, 1, 0, 6, 4}));
  EXPECT_EQ(ids("qwen2"), (Tokens{1, 1, 1, 1, 0, 2, 7}));
  EXPECT_EQ(ids("tekken"), ids("qwen2"));
  EXPECT_EQ(ids("llama-bpe"), (Tokens{5, 1, 1, 0, 2, 7}));
  EXPECT_EQ(ids("falcon3"), ids("llama-bpe"));
  EXPECT_EQ(ids("default"), (Tokens{5, 1, 1, 0, 2, 3, 4}));
}

/// What llama.cpp's converter writes of a tokenizer.json whose tokens are in the order of their merges.
Keys converted(const std::string& folder, const std::string& model, const std::string& pre) {
  const nlohmann::json file = xgrad_tests::read_json(folder + "tokenizer.json");
  auto ids = file.at("model").at("vocab").get<std::map<std::string, std::size_t>>();
  std::set<std::string> specials;
  for (const nlohmann::json& one : file.at("added_tokens")) {
    const auto token = one.at("content").get<std::string>();
    ids[token] = one.at("id").get<std::size_t>();
    if (one.at("special").get<bool>()) specials.insert(token);
  }
  std::vector<std::string> tokens(ids.size()), merges;
  std::vector<std::int32_t> types(ids.size(), 1);
  std::vector<float> scores(ids.size());
  for (const auto& [token, id] : ids) {
    tokens.at(id) = token;
    types.at(id) = token == "<unk>" ? 2 : specials.contains(token) ? 3 : token.starts_with("<0x") ? 6 : 1;
    scores.at(id) = -static_cast<float>(id);
  }
  for (const nlohmann::json& merge : file.at("model").at("merges"))
    merges.push_back(merge.get<std::string>());
  Keys keys = llama_keys();
  keys["model"] = key("tokenizer.ggml.model", string, text(model));
  keys["pre"] = key("tokenizer.ggml.pre", string, text(pre));
  keys["tokens"] = array("tokenizer.ggml.tokens", string, tokens.size(), texts(tokens));
  keys["types"] = array("tokenizer.ggml.token_type", i32, types.size(), numbers(types));
  keys["scores"] = array("tokenizer.ggml.scores", f32, scores.size(), numbers(scores));
  keys["merges"] = array("tokenizer.ggml.merges", string, merges.size(), texts(merges));
  return keys;
}

TEST(GgufTokenizerTest, IdsAreThoseOfTheTokenizerJson) {
  for (const auto& [name, model, pre] : {std::array{"gpt2", "gpt2", "gpt-2"},
                                         {"llama3", "gpt2", "llama-bpe"},
                                         {"llama2", "llama", "default"}}) {
    const std::string folder = xgrad_tests::data_folder("pretrained") + "tokenizers/" + name + "/";
    const nlohmann::json strings = xgrad_tests::read_json(folder + "cases.json").at("strings");
    Keys keys = converted(folder, model, pre);
    const auto bos = strings.at(0).at("ids").at(0).get<std::uint32_t>();
    keys["bos"] = key("tokenizer.ggml.bos_token_id", u32, number(bos));
    const auto tokenizer = tokenizer_of(keys);
    EXPECT_GE(strings.size(), 20u);
    for (const nlohmann::json& one : strings) {
      const Tokens ids = one.at("ids").get<Tokens>();
      EXPECT_EQ(tokenizer.encode(one.at("text").get<std::string>()).ids, ids) << name << one.at("text");
      EXPECT_EQ(tokenizer.decode(ids, false), one.at("decoded").get<std::string>()) << name << one.at("text");
    }
  }
}

}  // namespace gguf_models_test
