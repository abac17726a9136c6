#pragma once

// What Hugging Face's library does to every character, in normalization.json, precompiled.json and
// unicode.json of one folder.

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "../../tokenizers/detail/files/pipeline.hpp"
#include "../../tokenizers/detail/splits/pattern.hpp"
#include "../../tokenizers/detail/unicode/classes.hpp"
#include "../../tokenizers/detail/unicode/unicode.hpp"
#include "normalizer_cases.hpp"

namespace xgrad_tests {

class LibraryCharacters {
 public:
  LibraryCharacters(const std::string& folder, Note note) : folder_(folder), note_(std::move(note)) {}

  void compare() const {
    const json normalization = read_json(folder_ + "/normalization.json");
    for (const char* type : {"NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Nmt", "StripAccents"})
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
    namespace detail = xgrad::tokenizers::detail;
    std::string text;
    std::vector<char32_t> character_at;  // of each byte
    for (const char32_t character : all_characters()) {
      text += text_of(character);
      character_at.resize(text.size(), character);
    }
    for (const auto& [name, ranges] : classes.items()) {
      std::vector<bool> members(0x110000);
      if (name.starts_with("WhitespaceSplit")) {
        add(detail::unicode::space, members);
      } else if (name.starts_with("Punctuation")) {
        add(detail::unicode::punctuation, members);
      } else if (name.starts_with("Digits")) {
        for (const auto& [first, last] : detail::unicode::numeric_characters())
          std::fill(members.begin() + first, members.begin() + last + 1, true);
      } else {
        detail::Pattern::Work work(text.size());
        detail::Pattern(name).for_each_match(text, work, [&](std::size_t begin, std::size_t) {
          members[character_at[begin]] = true;
          return true;
        });
      }
      for (const json& range : ranges)
        for (auto c = range.at(0).get<std::size_t>(); c <= range.at(1).get<std::size_t>(); ++c)
          members.at(c) = !members[c];
      note_("characters of the class " + name, std::none_of(members.begin(), members.end(), std::identity()));
    }
  }

  static void add(std::uint16_t flag, std::vector<bool>& members) {
    for (const char32_t character : all_characters())
      members[character] = xgrad::tokenizers::detail::unicode::is(character, flag);
  }

  std::string folder_;
  Note note_;
};

}  // namespace xgrad_tests
