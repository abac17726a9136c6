#pragma once

// What Hugging Face's library, or sentencepiece, gave with the tokenizer of a folder, in its cases.json.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <xgrad/base/detail/text/utf8.hpp>
#include <xgrad/tokenizers/decode_stream.hpp>

#include "tokenizer_cases.hpp"

namespace xgrad_tests {

class LibraryCases {
 public:
  LibraryCases(const std::string& folder, Note note)
      : folder_(folder),
        note_(std::move(note)),
        tokenizer_(Tokenizer::from_folder(folder)),
        target_(Tokenizer::from_folder(folder, {.target = true})),
        cases_(read_json(folder + "/cases.json")) {}

  void compare() const {
    for (const json& one : list_entry(cases_, "strings")) compare_string(one);
    for (const json& one : cases_.value("pairs", json::array())) compare_pair(one);
    for (const json& one : cases_.value("decode", json::array())) compare_decoding(one);
    for (const json& one : cases_.value("streams", json::array())) compare_stream(one);
    for (const json& one : cases_.value("chats", json::array())) compare_chat(one);
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
    if (one.contains("target"))
      note_(name + ": as target", json(target_.encode(text).ids) == one.at("target"));
    if (one.contains("plain") || !one.contains("target"))
      note_(name + ": without special tokens", json(plain.ids) == one.value("plain", one.at("ids")));
    if (one.contains("offsets")) note_(name + ": offsets", json(plain.offsets) == one.at("offsets"));
    if (one.contains("words")) note_(name + ": words", to_json(plain.words) == one.at("words"));
    compare_text(name, encoding.ids, one);
  }

  void compare_text(const std::string& name, const Ids& ids, const json& one) const {
    if (one.contains("decoded"))
      note_(name + ": decoded", json(tokenizer_.decode(ids, false)) == one.at("decoded"));
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

  /// What each token adds, up to where the library fails; then the rest.
  void compare_stream(const json& one) const {
    const auto ids = entry_as<Ids>(one, "ids");
    const json &pieces = list_entry(one, "pieces"), &decoded = entry(one, "decoded");
    xgrad::tokenizers::DecodeStream stream(tokenizer_, entry_as<bool>(one, "skip"));
    bool same = true, is_valid = true;
    std::string all;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::string piece = stream.step(ids[i]);
      is_valid &= xgrad::detail::utf8::find_invalid_utf8(piece) == piece.npos;
      if (i < pieces.size()) same &= piece == (pieces[i].is_null() ? "" : pieces[i].get<std::string>());
      all += piece;
    }
    const std::string rest = stream.finish();
    const std::string name = "stream of " + one.at("ids").dump();
    note_(name, same && is_valid && (!one.contains("rest") || one.at("rest") == json(rest)));
    if (!one.contains("differs") && !one.contains("error"))
      note_(name + ": whole", json(all + rest) == decoded);
  }

  /// The text of a chat.
  void compare_chat(const json& one) const {
    const auto text = entry_as<std::string>(one, "text");
    note_("chat, " + json(text).dump(),
          json(tokenizer_.encode(text, {.add_special_tokens = false}).ids) == entry(one, "ids"));
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
  Tokenizer tokenizer_, target_;
  json cases_;
};

}  // namespace xgrad_tests
