#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../../../base/detail/text/json_text.hpp"
#include "../../../base/detail/text/json_tree.hpp"
#include "../../../base/detail/text/utf8.hpp"
#include "../../../base/error.hpp"
#include "gguf_model.hpp"

namespace xgrad::pretrained::detail {
namespace {

using json = xgrad::detail::JsonTree;
using xgrad::detail::fail;

enum class TokenType : std::int64_t { normal = 1, unknown, control, user_defined, unused, byte };

/// What llama.cpp calls a pre-tokenizer, in the terms of tokenizer.json.
struct PreTokenizer {
  std::array<const char*, 4> names;          // null behind the last
  std::array<const char*, 4> patterns = {};  // each divides the parts of those before it; none: GPT-2's
  bool splits_digits = false;                // each by itself
  bool composes = false;                     // texts are in the normal form NFC
  bool takes_whole_words = false;            // words in the vocabulary are not merged
  bool begins_texts = false;                 // with the token bos
};

constexpr const char* gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* llama3_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* qwen2_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* tekken_pattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr PreTokenizer pre_tokenizers[]{
    {.names = {"gpt-2"}},
    {.names = {"smollm"}, .splits_digits = true},
    {.names = {"qwen2", "deepseek-r1-qwen"}, .patterns = {qwen2_pattern}, .composes = true},
    {.names = {"llama-bpe", "llama3", "llama-v3", "falcon3"},
     .patterns = {llama3_pattern},
     .takes_whole_words = true,
     .begins_texts = true},
    {.names = {"tekken"}, .patterns = {tekken_pattern}, .takes_whole_words = true, .begins_texts = true},
    // llama.cpp's for models that it does not know
    {.names = {"default"},
     .patterns = {R"([\p{P}$+<=>^~|]+)", gpt2_pattern, R"(\p{N}+)", "[0-9][0-9][0-9]"}}};

constexpr const char* blank = "\u2581";  // of sentencepiece

class TokenizerReader {
 public:
  TokenizerReader(const GgufFile& file, const std::string& path) : file_(file), path_(path) {
    for (const std::string_view text : at("tokens").texts()) {
      if (xgrad::detail::utf8::find_invalid_utf8(text) != text.npos)
        fail<FileError>(path, ": key \"tokenizer.ggml.tokens\": token ", tokens_.size(), " must be UTF-8");
      tokens_.emplace_back(text);
    }
    types_.assign(tokens_.size(), static_cast<std::int64_t>(TokenType::normal));
    if (const auto* const types = find("token_type")) {
      types_ = types->integers();
      if (types_.size() != tokens_.size()) types->refuse("as many types as there are tokens");
    }
  }

  json read() const {
    const GgufValue& model = at("model");
    if (model.text() == "gpt2") return byte_level();
    if (model.text() == "llama") return sentence_piece();
    model.refuse("gpt2 or llama: other tokenizers are not supported");
  }

 private:
  const GgufValue* find(const std::string& key) const { return file_.find("tokenizer.ggml." + key); }
  const GgufValue& at(const std::string& key) const { return file_.at("tokenizer.ggml." + key); }
  bool flag(const char* key, bool otherwise) const {
    const GgufValue* const value = find(key);
    return value != nullptr ? value->flag() : otherwise;
  }
  bool is(std::size_t id, TokenType type) const { return types_[id] == static_cast<std::int64_t>(type); }

  json whole(json normalizer, json splits, json post, json decoder, json model) const {
    json vocab = json::object(), added = json::array();
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
      if (!vocab.emplace(tokens_[id], id).second)
        fail<FileError>(path_, ": key \"tokenizer.ggml.tokens\": tokens must differ, got ",
                        xgrad::detail::in_quotes(tokens_[id]), " twice");
      const bool special = is(id, TokenType::control) || is(id, TokenType::unknown);
      if (!special && !is(id, TokenType::user_defined)) continue;
      added.push_back({{"id", id},
                       {"content", tokens_[id]},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", special}});
    }
    model["type"] = "BPE";
    model["vocab"] = std::move(vocab);
    return {{"version", "1.0"},
            {"added_tokens", std::move(added)},
            {"normalizer", std::move(normalizer)},
            {"pre_tokenizer", std::move(splits)},
            {"post_processor", std::move(post)},
            {"decoder", std::move(decoder)},
            {"model", std::move(model)}};
  }

  /// The tokens that begin and end texts, if there are any.
  json post_processor(bool begins_texts) const {
    const bool begins = flag("add_bos_token", begins_texts), ends = flag("add_eos_token", false);
    if (!begins && !ends) return nullptr;
    json specials = json::object(), single = json::array(), pair = json::array();
    const auto add_token = [&](const char* key, json& list) {
      const auto id = at(key).integer(0, static_cast<std::int64_t>(tokens_.size()) - 1);
      const std::string& text = tokens_[static_cast<std::size_t>(id)];
      specials[text] = {{"id", text}, {"ids", {id}}, {"tokens", {text}}};
      list.push_back({{"SpecialToken", {{"id", text}, {"type_id", 0}}}});
    };
    const auto add_text = [&](const char* id, json& list) {
      if (begins) add_token("bos_token_id", list);
      list.push_back({{"Sequence", {{"id", id}, {"type_id", 0}}}});
      if (ends) add_token("eos_token_id", list);
    };
    add_text("A", single);
    add_text("A", pair);
    add_text("B", pair);
    return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", specials}};
  }

  const PreTokenizer& pre_tokenizer() const {
    const GgufValue& pre = at("pre");
    std::string known;
    for (const PreTokenizer& one : pre_tokenizers) {
      for (const char* const name : one.names) {
        if (name == nullptr) break;
        if (pre.text() == name) return one;
        known += (known.empty() ? "" : ", ") + std::string(name);
      }
    }
    pre.refuse("one of the supported pre-tokenizers, " + known);
  }

  json byte_level() const {
    const PreTokenizer& rule = pre_tokenizer();
    const json bytes{{"type", "ByteLevel"},
                     {"add_prefix_space", false},
                     {"trim_offsets", false},
                     {"use_regex", rule.patterns.front() == nullptr}};
    json splits = json::array();
    if (rule.splits_digits) splits.push_back({{"type", "Digits"}, {"individual_digits", true}});
    for (const char* const pattern : rule.patterns) {
      if (pattern == nullptr) break;
      splits.push_back({{"type", "Split"},
                        {"pattern", {{"Regex", pattern}}},
                        {"behavior", "Isolated"},
                        {"invert", false}});
    }
    splits.push_back(bytes);
    json merges = json::array();
    for (const std::string_view merge : at("merges").texts()) {
      if (xgrad::detail::utf8::find_invalid_utf8(merge) != merge.npos)
        fail<FileError>(path_, ": key \"tokenizer.ggml.merges\": merge ", merges.size(), " must be UTF-8");
      merges.push_back(merge);
    }
    return whole(rule.composes ? json{{"type", "NFC"}} : json(nullptr),
                 {{"type", "Sequence"}, {"pretokenizers", std::move(splits)}},
                 post_processor(rule.begins_texts), bytes,
                 {{"ignore_merges", rule.takes_whole_words}, {"merges", std::move(merges)}});
  }

  /// Byte pair encoding of sentencepiece: pairs are merged in the order of the scores of what they make.
  json sentence_piece() const {
    if (flag("remove_extra_whitespaces", false))
      at("remove_extra_whitespaces").refuse("false, as blanks are kept");
    const bool has_blank = flag("add_space_prefix", true);
    json normalizers = json::array(), decoders = json::array();
    if (has_blank) normalizers.push_back({{"type", "Prepend"}, {"prepend", blank}});
    normalizers.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", blank}});
    decoders.push_back({{"type", "Replace"}, {"pattern", {{"String", blank}}}, {"content", " "}});
    decoders.push_back({{"type", "ByteFallback"}});
    decoders.push_back({{"type", "Fuse"}});
    if (has_blank) decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    json model{{"byte_fallback", true}, {"fuse_unk", true}, {"merges", merges_by_scores()}};
    const auto unknown = std::ranges::find(types_, static_cast<std::int64_t>(TokenType::unknown));
    if (unknown != types_.end())
      model["unk_token"] = tokens_[static_cast<std::size_t>(unknown - types_.begin())];
    return whole({{"type", "Sequence"}, {"normalizers", std::move(normalizers)}}, nullptr,
                 post_processor(true), {{"type", "Sequence"}, {"decoders", std::move(decoders)}},
                 std::move(model));
  }

  /// Each way to make a token of two others; of those with equal scores that with a longer first part.
  json merges_by_scores() const {
    const std::vector<double> scores = at("scores").numbers();
    if (scores.size() != tokens_.size()) at("scores").refuse("as many scores as there are tokens");
    std::unordered_map<std::string_view, std::size_t> ids;
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
      if (is(id, TokenType::normal) || is(id, TokenType::user_defined)) ids.emplace(tokens_[id], id);
    }
    struct Merge {
      double score;
      std::string_view left, right;
    };
    std::vector<Merge> all;
    for (const auto& [text, id] : ids) {
      for (std::size_t end = 1; end < text.size(); ++end) {
        const std::string_view left = text.substr(0, end), right = text.substr(end);
        if (ids.contains(left) && ids.contains(right)) all.push_back({scores[id], left, right});
      }
    }
    std::ranges::sort(all, [](const Merge& a, const Merge& b) {
      if (a.score != b.score) return a.score > b.score;
      if (a.left.size() != b.left.size()) return a.left.size() > b.left.size();
      return std::pair(a.left, a.right) < std::pair(b.left, b.right);
    });
    json merges = json::array();
    for (const Merge& one : all) merges.push_back({one.left, one.right});
    return merges;
  }

  const GgufFile& file_;
  const std::string& path_;
  std::vector<std::string> tokens_;
  std::vector<std::int64_t> types_;
};

}  // namespace

std::string gguf_tokenizer(const GgufFile& file, const std::string& path) {
  json tokenizer = xgrad::detail::read_unchanged(file, [&] { return TokenizerReader(file, path).read(); });
  return tokenizer.dump();
}

}  // namespace xgrad::pretrained::detail
