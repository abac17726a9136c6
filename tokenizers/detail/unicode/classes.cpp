#include "classes.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>

namespace xgrad::tokenizers::detail::unicode {
namespace {

/// Characters of a category or a script, by the place of its name.
struct NamedRange {
  char32_t first, last;
  std::uint8_t number;
};

struct CharacterPair {
  char32_t character, other;
};

#include "class_table.inc"

constexpr char32_t last_character = 0x10FFFF;

void append(Ranges& ranges, std::span<const CharacterRange> more) {
  ranges.insert(ranges.end(), more.begin(), more.end());
}

Ranges in_all(std::initializer_list<Ranges> parts) {
  Ranges all;
  for (const Ranges& part : parts) append(all, part);
  return sorted_ranges(std::move(all));
}

template <class Keep>
Ranges named_ranges(std::span<const NamedRange> table, Keep&& keep) {
  Ranges result;
  for (const NamedRange& range : table)
    if (keep(range.number)) result.push_back({range.first, range.last});
  return sorted_ranges(std::move(result));
}

/// Those of all categories whose names begin so.
Ranges categories_like(std::string_view beginning) {
  return named_ranges(category_ranges,
                      [&](std::uint8_t number) { return categories[number].starts_with(beginning); });
}

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

/// In lower case, without what does not count.
std::string plain_name(std::string_view name) {
  std::string result;
  for (const char letter : name)
    if (letter != ' ' && letter != '_' && letter != '-') result += lower(letter);
  return result;
}

/// Unassigned characters belong to no category of the table.
Ranges unassigned() { return complement(in_all({categories_like(""), Ranges{{0xD800, 0xDFFF}}})); }

Ranges alphabetic() {
  Ranges result = in_all({categories_like("L"), categories_like("Nl")});
  append(result, other_alphabetic);
  return sorted_ranges(std::move(result));
}

Ranges uppercase() {
  Ranges result = categories_like("Lu");
  append(result, other_uppercase);
  return sorted_ranges(std::move(result));
}

Ranges lowercase() {
  Ranges result = categories_like("Ll");
  append(result, other_lowercase);
  return sorted_ranges(std::move(result));
}

Ranges white_space() { return in_all({categories_like("Z"), Ranges{{0x9, 0xD}, {0x85, 0x85}}}); }

/// All that are shown.
Ranges graphic() { return complement(in_all({white_space(), categories_like("Cc"), unassigned()})); }

/// The names that \p{...} and [[:...:]] share.
std::optional<Ranges> common_class(std::string_view name) {
  if (name == "alpha") return alphabetic();
  if (name == "upper") return uppercase();
  if (name == "lower") return lowercase();
  if (name == "space") return white_space();
  if (name == "digit") return categories_like("Nd");
  if (name == "alnum") return in_all({alphabetic(), categories_like("Nd")});
  if (name == "xdigit") return Ranges{{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
  if (name == "cntrl") return categories_like("Cc");
  if (name == "blank") return in_all({categories_like("Zs"), Ranges{{'\t', '\t'}}});
  if (name == "graph") return graphic();
  if (name == "print") return in_all({graphic(), categories_like("Zs")});
  return std::nullopt;
}

}  // namespace

Ranges sorted_ranges(Ranges ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const CharacterRange& a, const CharacterRange& b) { return a.first < b.first; });
  Ranges result;
  for (const CharacterRange& range : ranges) {
    if (!result.empty() && range.first <= result.back().last + 1) {
      result.back().last = std::max(result.back().last, range.last);
    } else {
      result.push_back(range);
    }
  }
  return result;
}

Ranges complement(const Ranges& ranges) {
  Ranges result;
  char32_t next = 0;
  for (const CharacterRange& range : ranges) {
    if (next < range.first) result.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= last_character) result.push_back({next, last_character});
  return result;
}

Ranges intersection(const Ranges& a, const Ranges& b) {
  return complement(in_all({complement(a), complement(b)}));
}

std::optional<Ranges> property(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> long_names{{{"letter", "L"},
                                                                                     {"mark", "M"},
                                                                                     {"number", "N"},
                                                                                     {"punctuation", "P"},
                                                                                     {"symbol", "S"},
                                                                                     {"separator", "Z"},
                                                                                     {"other", "C"}}};
  const std::string plain = plain_name(name);
  if (plain.empty()) return std::nullopt;
  std::string category = plain;
  for (const auto& [long_name, letter] : long_names)
    if (plain == long_name) category = letter;
  category[0] =
      category[0] >= 'a' && category[0] <= 'z' ? static_cast<char>(category[0] - 'a' + 'A') : category[0];
  if (category == "Cn") return unassigned();
  if (category == "C") return in_all({categories_like("C"), unassigned()});
  if (category == "Lc") return in_all({categories_like("Lu"), categories_like("Ll"), categories_like("Lt")});
  if (category.size() <= 2) {
    Ranges ranges = categories_like(category);
    if (!ranges.empty()) return ranges;
  }
  if (plain == "alphabetic") return alphabetic();
  if (plain == "uppercase") return uppercase();
  if (plain == "lowercase") return lowercase();
  if (plain == "whitespace") return white_space();
  if (plain == "any") return Ranges{{0, last_character}};
  if (plain == "ascii") return Ranges{{0, 0x7F}};
  if (plain == "assigned") return complement(unassigned());
  if (plain == "punct") return categories_like("P");
  if (plain == "word") return word_characters();
  for (std::size_t i = 0; i < std::size(scripts); ++i) {
    if (plain == plain_name(scripts[i]))
      return named_ranges(script_ranges, [&](std::uint8_t number) { return number == i; });
  }
  return common_class(plain);
}

std::optional<Ranges> posix_class(std::string_view name) {
  if (name == "punct") return in_all({categories_like("P"), categories_like("S")});
  if (name == "ascii") return Ranges{{0, 0x7F}};
  if (name == "word")
    return in_all({alphabetic(), categories_like("M"), categories_like("Nd"), categories_like("Pc")});
  return common_class(name);
}

Ranges word_characters() {
  Ranges result = *posix_class("word");
  append(result, other_word);
  return sorted_ranges(std::move(result));
}

Ranges numeric_characters() {
  Ranges result = categories_like("N");
  append(result, other_numeric);
  return sorted_ranges(std::move(result));
}

Ranges with_other_cases(const Ranges& ranges) {
  Ranges result = ranges;
  for (const auto& [character, other] : other_cases) {
    const auto place =
        std::upper_bound(ranges.begin(), ranges.end(), character,
                         [](char32_t wanted, const CharacterRange& range) { return wanted < range.first; });
    if (place != ranges.begin() && character <= std::prev(place)->last) result.push_back({other, other});
  }
  return sorted_ranges(std::move(result));
}

std::span<const Fold> folded_texts() {
  static const std::vector<Fold> all = [] {
    std::vector<Fold> result;
    for (const auto& [character, other] : folds) {
      if (result.empty() || result.back().character != character) result.push_back({character, {}});
      result.back().text.push_back(other);
    }
    return result;
  }();
  return all;
}

}  // namespace xgrad::tokenizers::detail::unicode
