#pragma once

// What Hugging Face's library gave for texts and pairs of texts, in cases.json with the vocabularies beside
// it.

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <xgrad/base/error.hpp>
#include <xgrad/tokenizers/tokenizer.hpp>

#include "../programs/json_file.hpp"
#include "../temporary_folder.hpp"

namespace xgrad_tests {

/// Takes what was compared.
using Note = std::function<void(const std::string& name, bool right)>;

/// By the files of a model's folder but tokenizer.json.
inline xgrad::tokenizers::Tokenizer tokenizer_of_older_files(const std::string& folder) {
  const TemporaryFolder copy;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name != "tokenizer.json" && entry.is_regular_file())
      std::filesystem::copy(entry.path(), copy.path(name));
  }
  return xgrad::tokenizers::Tokenizer::from_folder(copy.path(""));
}

/// Of a text, and of a second one that may be null.
inline xgrad::tokenizers::Encoding encode(const xgrad::tokenizers::Tokenizer& tokenizer,
                                          const nlohmann::json& first, const nlohmann::json& second,
                                          const xgrad::tokenizers::EncodeOptions& options) {
  const auto text = as<std::string>(first, "the first text");
  return second.is_null() ? tokenizer.encode(text, options)
                          : tokenizer.encode(text, as<std::string>(second, "the second text"), options);
}

template <class V>
nlohmann::json to_json(const std::vector<std::optional<V>>& values) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& value : values) list.push_back(value ? nlohmann::json(*value) : nlohmann::json());
  return list;
}

/// The cases of a folder.
class TokenizerCases {
 public:
  TokenizerCases(const std::string& folder, Note note)
      : folder_(folder), note_(std::move(note)), cases_(read_json(folder + "/cases.json")) {}

  void compare() const {
    for (const auto& [name, setting] : entry(cases_, "settings").items()) {
      for (const auto& [file, tokenizer] : tokenizers_of(name, setting)) {
        compare_strings(tokenizer, name, file);
        if (name == "uncased") compare_pairs(tokenizer, file);
      }
    }
    compare_byte_pairs();
  }

 private:
  using Tokenizer = xgrad::tokenizers::Tokenizer;
  using Encoding = xgrad::tokenizers::Encoding;
  using json = nlohmann::json;

  /// By the vocabulary, and by the tokenizer.json where there is one; with the files' names.
  std::map<std::string, Tokenizer> tokenizers_of(const std::string& name, const json& setting) const {
    if (!entry_as<bool>(setting, "clean_text"))
      bad_entry("clean_text", "true, as files before tokenizer.json", false);
    const TemporaryFolder old, young;
    const auto vocabulary = entry_as<std::string>(setting, "vocab");
    std::filesystem::copy(folder_ + "/" + vocabulary, old.path("vocab.txt"));
    const json config = {{"do_lower_case", entry(setting, "lowercase")},
                         {"strip_accents", entry(setting, "strip_accents")},
                         {"tokenize_chinese_chars", entry(setting, "handle_chinese_chars")}};
    old.write("tokenizer_config.json", config.dump());
    std::map<std::string, Tokenizer> tokenizers;
    tokenizers.emplace(vocabulary, Tokenizer::from_folder(old.path("")));
    const std::string file = "tokenizer_" + name + ".json";
    if (std::filesystem::exists(folder_ + "/" + file)) {
      std::filesystem::copy(folder_ + "/" + file, young.path("tokenizer.json"));
      tokenizers.emplace(file, Tokenizer::from_folder(young.path("")));
    }
    return tokenizers;
  }

  void compare_strings(const Tokenizer& tokenizer, const std::string& setting,
                       const std::string& file) const {
    for (const json& one : list_entry(cases_, "strings")) {
      const Encoding encoding = encode(tokenizer, entry(one, "text"), nullptr, {});
      const bool same_offsets =
          !one.contains(setting + "_offsets") || json(encoding.offsets) == one.at(setting + "_offsets");
      note_(setting + " by " + file + ", " + one.at("text").dump(),
            is_whole(encoding) && json(encoding.ids) == entry(one, setting) && same_offsets);
    }
  }

  void compare_pairs(const Tokenizer& tokenizer, const std::string& file) const {
    for (const json& one : list_entry(cases_, "pairs")) {
      if (!was_read_in_part(tokenizer, one))
        note_("pair by " + file + ", " + one.dump(), is_right_pair(tokenizer, one));
    }
  }

  /// Version 0.23.2, which these cases are of, took two texts for equally long that both reach max_length;
  /// 0.23.3 knows which is longer.
  static bool was_read_in_part(const Tokenizer& tokenizer, const json& one) {
    if (entry(one, "max_length").is_null() || entry(one, "second").is_null() ||
        entry(one, "strategy") != "LongestFirst")
      return false;
    const auto reaches = [&](const char* name) {
      return tokenizer.encode(entry_as<std::string>(one, name), {.add_special_tokens = false}).size() >=
             entry_as<std::size_t>(one, "max_length");
    };
    return reaches("first") && reaches("second");
  }

  static bool is_right_pair(const Tokenizer& tokenizer, const json& one) {
    using xgrad::tokenizers::Truncation;
    static const std::map<std::string, Truncation> strategies{{"LongestFirst", Truncation::longest_first},
                                                              {"OnlyFirst", Truncation::only_first},
                                                              {"OnlySecond", Truncation::only_second}};
    xgrad::tokenizers::EncodeOptions options;
    if (!entry(one, "max_length").is_null()) {
      options.max_length = entry_as<std::size_t>(one, "max_length");
      options.truncation = strategies.at(entry_as<std::string>(one, "strategy"));
    }
    try {
      const Encoding encoding = encode(tokenizer, entry(one, "first"), entry(one, "second"), options);
      return !one.contains("error") && is_whole(encoding) && json(encoding.ids) == entry(one, "ids") &&
             json(encoding.type_ids) == entry(one, "type_ids") &&
             json(encoding.special) == entry(one, "special") &&
             to_json(encoding.words) == entry(one, "words") &&
             to_json(encoding.sequences) == entry(one, "sequences") &&
             json(tokenizer.decode(encoding.ids)) == entry(one, "decoded");
    } catch (const xgrad::ValueError&) {
      return one.contains("error");
    }
  }

  /// Those of the RoBERTa that lies in a folder beside.
  void compare_byte_pairs() const {
    std::set<std::string> folders;
    for (const auto& beside : std::filesystem::directory_iterator(folder_ + "/..")) {
      if (std::filesystem::exists(beside.path() / "merges.txt")) folders.insert(beside.path().string());
    }
    if (folders.empty()) throw BadEntry(folder_ + ": must have a folder with merges.txt beside it");
    const std::string& roberta = *folders.begin();
    for (const Tokenizer& tokenizer : {Tokenizer::from_folder(roberta), tokenizer_of_older_files(roberta)}) {
      for (int round = 0; round < 2; ++round) {  // the second reads words that were kept
        for (const json& one : list_entry(cases_, "strings")) {
          const Encoding encoding = encode(tokenizer, entry(one, "text"), nullptr, {});
          note_("byte pairs, " + one.at("text").dump(),
                is_whole(encoding) && json(encoding.ids) == entry(one, "bpe"));
        }
      }
    }
  }

  static bool is_whole(const Encoding& encoding) {
    const std::size_t size = encoding.size();
    return encoding.type_ids.size() == size && encoding.special.size() == size &&
           encoding.offsets.size() == size && encoding.words.size() == size &&
           encoding.sequences.size() == size;
  }

  std::string folder_;
  Note note_;
  json cases_;
};

}  // namespace xgrad_tests
