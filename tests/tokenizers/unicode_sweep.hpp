#pragma once

// What Hugging Face's library does to every one of Unicode's 1,112,064 characters, in sweep.json.

#include <algorithm>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "../../tokenizers/detail/normalizers/normalizer.hpp"
#include "../../tokenizers/detail/unicode/unicode.hpp"
#include "../programs/json_file.hpp"

namespace xgrad_tests {

/// All but surrogates.
inline const std::vector<char32_t>& all_characters() {
  static const std::vector<char32_t> all = [] {
    std::vector<char32_t> list;
    for (char32_t c = 0; c < 0x110000; ++c) {
      if (c < 0xD800 || c > 0xDFFF) list.push_back(c);
    }
    return list;
  }();
  return all;
}

inline std::string text_of(char32_t character) {
  std::string text;
  xgrad::tokenizers::detail::unicode::append(text, character);
  return text;
}

inline char32_t hexadecimal(const std::string& text) {
  return static_cast<char32_t>(std::stoul(text, nullptr, 16));
}

/// An entry as "9-A D": which of all characters are there.
inline std::vector<bool> members(const nlohmann::json& object, const std::string& name) {
  std::vector<bool> result(0x110000);
  std::istringstream parts(entry_as<std::string>(object, name));
  for (std::string part; parts >> part;) {
    const std::size_t dash = part.find('-');
    const char32_t first = hexadecimal(part.substr(0, dash));
    const char32_t last = dash == part.npos ? first : hexadecimal(part.substr(dash + 1));
    for (char32_t c = first; c <= last; ++c) result.at(c) = true;
  }
  return result;
}

/// An entry as "C0=41 130=69+307": what becomes of characters, where that is not themselves.
class CharacterMap {
 public:
  CharacterMap(const nlohmann::json& object, const std::string& name) {
    std::istringstream parts(entry_as<std::string>(object, name));
    for (std::string part; parts >> part;) {
      std::string& to = map_[hexadecimal(part)];
      for (std::size_t i = part.find('='); i != part.npos; i = part.find('+', i + 1))
        to += text_of(hexadecimal(part.substr(i + 1)));
    }
  }

  std::string operator()(char32_t c) const {
    const auto found = map_.find(c);
    return found == map_.end() ? text_of(c) : found->second;
  }

 private:
  std::map<char32_t, std::string> map_;
};

/// The decomposition of a Hangul syllable, as section 3.12 of the standard has it; "" of other characters.
inline std::string jamo(char32_t c) {
  if (c < 0xAC00 || c >= 0xAC00 + 11172) return "";
  const char32_t index = c - 0xAC00;
  const std::string text = text_of(0x1100 + index / 588) + text_of(0x1161 + index % 588 / 28);
  return index % 28 == 0 ? text : text + text_of(0x11A7 + index % 28);
}

/// Each thing that is done to characters, and how many it is done to otherwise than in the library.
inline std::map<std::string, std::size_t> compare_every_character(const nlohmann::json& sweep) {
  namespace unicode = xgrad::tokenizers::detail::unicode;
  using xgrad::tokenizers::detail::BertNormalizer;
  const auto removed = members(sweep, "removed"), space = members(sweep, "space"),
             chinese = members(sweep, "chinese"), marks = members(sweep, "strip_accents_removes"),
             split = members(sweep, "split_at_spaces_by_pre_tokenizer"),
             punctuation = members(sweep, "punctuation");
  const CharacterMap stripped(sweep, "strip_accents_maps"), lowered(sweep, "lowercase_maps");
  const BertNormalizer clean({true, false, false, false}), alone({false, true, false, false});
  const BertNormalizer strip({true, false, true, false}), lower({false, false, false, true});
  const auto without_accents = [&](char32_t c) -> std::string {
    if (removed[c] || marks[c]) return "";
    if (space[c]) return " ";
    return jamo(c).empty() ? stripped(c) : jamo(c);
  };
  const std::map<std::string, std::function<bool(char32_t)>> agree{
      {"cleaning",
       [&](char32_t c) {
         const std::string left = removed[c] ? "" : space[c] ? " " : text_of(c);
         return clean("a" + text_of(c) + "b") == "a" + left + "b";
       }},
      {"Chinese characters",
       [&](char32_t c) { return alone(text_of(c)) == (chinese[c] ? " " + text_of(c) + " " : text_of(c)); }},
      {"accents", [&](char32_t c) { return strip(text_of(c)) == without_accents(c); }},
      {"lower case", [&](char32_t c) { return lower(text_of(c)) == lowered(c); }},
      {"white space", [&](char32_t c) { return unicode::is(c, unicode::space) == split[c]; }},
      {"punctuation", [&](char32_t c) { return unicode::is(c, unicode::punctuation) == punctuation[c]; }},
  };
  std::map<std::string, std::size_t> wrong;
  for (const auto& [name, agrees] : agree) {
    wrong[name] = static_cast<std::size_t>(std::ranges::count_if(all_characters(), std::not_fn(agrees)));
  }
  return wrong;
}

}  // namespace xgrad_tests
