#pragma once

// What Hugging Face's library does to every character, in normalization.json, precompiled.json and
// unicode.json of one folder.

#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "../../tokenizers/detail/files/pipeline.hpp"
#include "../../tokenizers/detail/unicode/unicode.hpp"
#include "normalizer_cases.hpp"

namespace xgrad_tests {

class LibraryCharacters {
 public:
  LibraryCharacters(const std::string& folder, Note note) : folder_(folder), note_(std::move(note)) {}

  void compare() const {
    const json normalization = read_json(folder_ + "/normalization.json");
    for (const char* type : {"NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents"})
      compare_normalizer(type, {{"type", type}}, entry(entry(normalization, "characters"), type),
                         entry(normalization, "cases"), type);
    const json precompiled = read_json(folder_ + "/precompiled.json");
    compare_normalizer("Precompiled",
                       {{"type", "Precompiled"}, {"precompiled_charsmap", charsmap_below(folder_)}},
                       entry(precompiled, "characters"), entry(precompiled, "cases"), "normalized");
    compare_classes(entry(read_json(folder_ + "/unicode.json"), "classes"));
  }

 private:
  using json = nlohmann::json;

  /// All characters but Hangul syllables, which the files leave out.
  void compare_normalizer(const std::string& name, const json& rules, const json& changed, const json& cases,
                          const std::string& result) const {
    namespace detail = xgrad::tokenizers::detail;
    const detail::Normalizer normalizer =
        *detail::read_normalizer(detail::Json::parse(folder_, rules.dump()));
    std::map<std::string, std::string> changes;
    for (const auto& [code, text] : changed.items())
      changes[text_of(static_cast<char32_t>(std::stoul(code, nullptr, 16)))] = text.get<std::string>();
    for (const char32_t character : all_characters()) {
      if (character >= 0xAC00 && character <= 0xD7A3) continue;
      const std::string text = text_of(character);
      const auto change = changes.find(text);
      if (normalizer(text) != (change == changes.end() ? text : change->second))
        note_(name + " of " + json(text).dump(), false);
    }
    note_(name + " of characters", true);
    for (const json& one : cases)
      note_(name + " of " + one.at("text").dump(),
            json(normalizer(entry_as<std::string>(one, "text"))) == entry(one, result.c_str()));
  }

  void compare_classes(const json& classes) const {
    namespace unicode = xgrad::tokenizers::detail::unicode;
    const std::map<std::string, std::uint16_t> flags{
        {"\\p{L}", unicode::letter},
        {"\\p{N}", unicode::number},
        {"Punctuation (is_punc)", unicode::punctuation},
        {"WhitespaceSplit (char::is_whitespace)", unicode::space}};
    for (const auto& [name, flag] : flags) {
      std::size_t wrong = 0;
      const json& ranges = entry(classes, name.c_str());
      std::size_t next = 0;
      for (const char32_t character : all_characters()) {
        while (next < ranges.size() && ranges[next][1].get<char32_t>() < character) ++next;
        const bool is_member = next < ranges.size() && ranges[next][0].get<char32_t>() <= character;
        wrong += unicode::is(character, flag) != is_member;
      }
      note_("characters of the class " + name + ", wrong: " + std::to_string(wrong), wrong == 0);
    }
  }

  std::string folder_;
  Note note_;
};

}  // namespace xgrad_tests
