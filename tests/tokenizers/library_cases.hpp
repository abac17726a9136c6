#pragma once

// What Hugging Face's library, or sentencepiece, gave with the tokenizer of a folder, in its cases.json.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tokenizer_cases.hpp"

namespace xgrad_tests {

class LibraryCases {
 public:
  LibraryCases(const std::string& folder, Note note)
      : folder_(folder),
        note_(std::move(note)),
        tokenizer_(Tokenizer::from_folder(folder)),
        cases_(read_json(folder + "/cases.json")) {}

  void compare() const {
    for (const json& one : list_entry(cases_, "strings")) compare_string(one);
    for (const json& one : cases_.value("pairs", json::array())) compare_pair(one);
    for (const json& one : cases_.value("decode", json::array())) compare_decoding(one);
    for (const json& one : cases_.value("long", json::array())) compare_long(one);
    compare_model_file();
  }

 private:
  using Tokenizer = xgrad::tokenizers::Tokenizer;
  using Encoding = xgrad::tokenizers::Encoding;
  using Ids = std::vector<std::int64_t>;
  using json = nlohmann::json;

  void compare_string(const json& one) const {
    const auto text = entry_as<std::string>(one, "text");
    const std::string name = "string, " + json(text).dump();
    const Encoding encoding = tokenizer_.encode(text);
    const Encoding plain = tokenizer_.encode(text, {.add_special_tokens = false});
    note_(name + ": ids", json(encoding.ids) == entry(one, "ids"));
    note_(name + ": without special tokens", json(plain.ids) == one.value("plain", one.at("ids")));
    note_(name + ": offsets", json(plain.offsets) == entry(one, "offsets"));
    if (one.contains("words")) note_(name + ": words", to_json(plain.words) == one.at("words"));
    compare_text(name, encoding.ids, one);
  }

  void compare_text(const std::string& name, const Ids& ids, const json& one) const {
    note_(name + ": decoded", json(tokenizer_.decode(ids, false)) == entry(one, "decoded"));
    if (one.contains("skipped"))
      note_(name + ": decoded without special tokens", json(tokenizer_.decode(ids)) == one.at("skipped"));
  }

  void compare_pair(const json& one) const {
    const Encoding pair =
        tokenizer_.encode(entry_as<std::string>(one, "text"), entry_as<std::string>(one, "pair"));
    note_("pair, " + one.at("text").dump(),
          json(pair.ids) == entry(one, "ids") && json(pair.type_ids) == entry(one, "type_ids") &&
              json(pair.special) == entry(one, "special") && json(pair.offsets) == entry(one, "offsets") &&
              to_json(pair.sequences) == entry(one, "sequences"));
  }

  void compare_decoding(const json& one) const {
    compare_text("decoding of " + entry(one, "ids").dump(), entry_as<Ids>(one, "ids"), one);
  }

  /// A text of many repetitions, by the number of its ids, those at its ends, and a sum.
  void compare_long(const json& one) const {
    std::string text;
    for (auto i = entry_as<std::int64_t>(one, "times"); i > 0; --i)
      text += entry_as<std::string>(one, "repeat");
    const Ids ids = tokenizer_.encode(text, {.add_special_tokens = false}).ids;
    constexpr std::int64_t modulus = 1'000'000'007;
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < ids.size(); ++i)
      sum = (sum + static_cast<std::int64_t>(i + 1) * ids[i]) % modulus;
    const auto first = entry_as<Ids>(one, "first"), last = entry_as<Ids>(one, "last");
    note_("a long text of " + one.at("repeat").dump(),
          ids.size() == entry_as<std::size_t>(one, "count") && ids.size() >= first.size() &&
              std::equal(first.begin(), first.end(), ids.begin()) &&
              std::equal(last.rbegin(), last.rend(), ids.rbegin()) &&
              sum == entry_as<std::int64_t>(one, "sum"));
  }

  /// sentencepiece's own pieces, by a model that lies beside a tokenizer.json.
  void compare_model_file() const {
    if (!std::filesystem::exists(folder_ + "/tokenizer.json")) return;
    for (const auto& file : std::filesystem::directory_iterator(folder_)) {
      if (file.path().extension() != ".model") continue;
      const TemporaryFolder alone;
      std::filesystem::copy(file.path(), alone.path("spm.model"));
      const Tokenizer tokenizer = Tokenizer::from_folder(alone.path(""));
      for (const json& one : list_entry(cases_, "strings")) {
        std::vector<std::string> pieces;
        for (const std::int64_t id : tokenizer.encode(entry_as<std::string>(one, "text")).ids)
          pieces.push_back(tokenizer.token(id));
        const json& wanted = one.contains("sentencepiece") ? one.at("sentencepiece") : entry(one, "tokens");
        bool same = pieces.size() == wanted.size();
        for (std::size_t i = 0; same && i < pieces.size(); ++i)
          same = json(pieces[i]) == wanted[i] || pieces[i] == tokenizer.token(tokenizer.unk_id());
        note_("sentencepiece by " + file.path().filename().string() + ", " + one.at("text").dump(), same);
      }
    }
  }

  std::string folder_;
  Note note_;
  Tokenizer tokenizer_;
  json cases_;
};

}  // namespace xgrad_tests
