#pragma once

// How Hugging Face's library splits texts, in regex.json, and what it takes for UTF-8, in invalid.json.

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <xgrad/base/error.hpp>

#include "../../tokenizers/detail/files/read_splits.hpp"
#include "../../tokenizers/detail/splits/byte_alphabet.hpp"
#include "tokenizer_cases.hpp"

namespace xgrad_tests {

/// Constructs that are refused.
inline bool is_refused(const std::string& pattern) {
  return pattern.find("\\X") != pattern.npos || pattern.find("\\1") != pattern.npos;
}

class SplitCases {
 public:
  SplitCases(const std::string& path, Note note)
      : path_(path), note_(std::move(note)), cases_(read_json(path)) {}

  void compare() const {
    const auto strings = entry_as<std::vector<std::string>>(cases_, "strings");
    for (const json& one : list_entry(cases_, "patterns")) {
      const Splitter splitter = splitter_of(entry(one, "pretokenizers"));
      const json& lengths = list_entry(one, "lengths", strings.size());
      for (std::size_t i = 0; i < strings.size(); ++i) {
        std::vector<std::size_t> counts;
        for (const std::string& piece : pieces_of(splitter, strings[i]))
          counts.push_back(xgrad::detail::utf8::count(piece));
        note_(entry_as<std::string>(one, "name") + " of " + json(strings[i]).dump(),
              json(counts) == lengths[i]);
      }
    }
    for (const json& one : list_entry(cases_, "behaviors"))
      note_(one.dump(), json(pieces_of(splitter_of(json::array({entry(one, "split")})),
                                       entry_as<std::string>(one, "text"))) == entry(one, "pieces"));
    const auto samples = entry_as<std::vector<std::string>>(cases_, "samples");
    for (const json& one : list_entry(cases_, "constructs")) compare_construct(one, samples);
    for (const json& one : list_entry(cases_, "bad")) {
      const auto pattern = entry_as<std::string>(one, "pattern");
      note_("bad pattern " + json(pattern).dump(), accepts(pattern) == one.value("accepted", false));
    }
  }

 private:
  using json = nlohmann::json;
  using Splitter = xgrad::tokenizers::detail::Splitter;

  Splitter splitter_of(const json& steps) const {
    namespace detail = xgrad::tokenizers::detail;
    return detail::read_splitter(
        detail::Json::parse(path_, json{{"type", "Sequence"}, {"pretokenizers", steps}}.dump()));
  }

  static json split_at(const std::string& pattern) {
    return json::array({{{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}}});
  }

  bool accepts(const std::string& pattern) const {
    try {
      splitter_of(split_at(pattern));
      return true;
    } catch (const xgrad::FileError&) {
      return false;
    }
  }

  static std::vector<std::string> pieces_of(const Splitter& splitter, const std::string& text) {
    namespace detail = xgrad::tokenizers::detail;
    detail::TextBuffer buffer;
    std::vector<std::string> pieces;
    splitter(detail::unchanged(text, 0, buffer), [&](const detail::Passage& piece) {
      pieces.emplace_back(piece.text);
      return true;
    });
    return pieces;
  }

  void compare_construct(const json& one, const std::vector<std::string>& samples) const {
    const auto pattern = entry_as<std::string>(one, "pattern");
    if (is_refused(pattern)) return note_("refused pattern " + json(pattern).dump(), !accepts(pattern));
    const Splitter splitter = splitter_of(split_at(pattern));
    const json& pieces = list_entry(one, "pieces", samples.size());
    for (std::size_t i = 0; i < samples.size(); ++i)
      note_("pattern " + json(pattern).dump() + " of " + json(samples[i]).dump(),
            json(pieces_of(splitter, samples[i])) == pieces[i]);
  }

  std::string path_;
  Note note_;
  json cases_;
};

/// Bytes that are no UTF-8, which no tokenizer takes; `tokenizer` is one of bytes, which makes them.
inline void compare_invalid_texts(const std::string& path, const xgrad::tokenizers::Tokenizer& tokenizer,
                                  const Note& note) {
  const xgrad::tokenizers::detail::ByteAlphabet alphabet;
  const nlohmann::json file = read_json(path);
  for (const nlohmann::json& one : list_entry(file, "cases")) {
    const auto digits = entry_as<std::string>(one, "bytes");
    std::string bytes;
    std::vector<std::int64_t> ids;
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
      const auto byte = static_cast<unsigned char>(std::stoul(digits.substr(i, 2), nullptr, 16));
      bytes.push_back(static_cast<char>(byte));
      std::string token;
      xgrad::tokenizers::detail::unicode::append(token, alphabet.character(byte));
      ids.push_back(tokenizer.token_to_id(token).value());
    }
    bool is_refused = false;
    try {
      static_cast<void>(tokenizer.encode(bytes));
    } catch (const xgrad::ValueError& error) {
      is_refused = std::string(error.what()).ends_with(" " + entry(one, "valid_up_to").dump());
    }
    note("bytes " + digits, is_refused && tokenizer.decode(ids) == entry_as<std::string>(one, "replaced"));
  }
}

}  // namespace xgrad_tests
