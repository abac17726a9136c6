#include "normal_form.hpp"

#include <algorithm>
#include <vector>

#include "changes.hpp"
#include "unicode.hpp"

namespace xgrad::pretrained::detail {
namespace {

// https://www.unicode.org/versions/latest/ (section 3.12)
constexpr char32_t first_syllable = 0xAC00, lead_base = 0x1100, vowel_base = 0x1161, trail_base = 0x11A7;
constexpr char32_t leads = 19, vowels = 21, trails = 28, syllables = leads * vowels * trails;

std::uint8_t class_of(char32_t character) { return unicode::properties_of(character).combining_class; }

void decompose(char32_t character, bool compatibility, std::vector<Change>& parts) {
  const auto put = [&parts, size = parts.size()](char32_t part) {
    parts.push_back({part, parts.size() == size ? 0 : 1});
  };
  if (const char32_t syllable = character - first_syllable; syllable < syllables) {
    put(lead_base + syllable / (vowels * trails));
    put(vowel_base + syllable / trails % vowels);
    if (syllable % trails != 0) put(trail_base + syllable % trails);
    return;
  }
  std::span<const char32_t> text;
  if (compatibility) text = unicode::compatibility(character);
  if (text.empty() && unicode::is(character, unicode::decomposes)) text = unicode::decomposition(character);
  if (text.empty()) text = std::span(&character, 1);
  std::ranges::for_each(text, put);
}

/// Sorts each run of marks by their classes.
void sort_marks(std::vector<Change>& parts) {
  const auto is_mark = [](const Change& part) { return class_of(part.character) != 0; };
  for (auto begin = parts.begin(); begin != parts.end();) {
    begin = std::find_if(begin, parts.end(), is_mark);
    const auto end = std::find_if_not(begin, parts.end(), is_mark);
    std::ranges::stable_sort(begin, end, {}, [](const Change& part) { return class_of(part.character); });
    begin = end;
  }
}

char32_t composed(char32_t first, char32_t second) {
  const char32_t lead = first - lead_base, vowel = second - vowel_base;
  if (lead < leads && vowel < vowels) return first_syllable + (lead * vowels + vowel) * trails;
  const char32_t syllable = first - first_syllable, trail = second - trail_base;
  if (syllable < syllables && syllable % trails == 0 && trail > 0 && trail < trails) return first + trail;
  return unicode::composed(first, second);
}

/// Composes each character with the last starter unless one between them blocks it.
void compose(std::vector<Change>& parts) {
  std::vector<Change> result;
  std::size_t starter = parts.size();  // its place in the result
  for (const Change& part : parts) {
    const std::uint8_t own = class_of(part.character);
    const bool is_next = starter + 1 == result.size();
    if (starter < result.size() && (is_next || class_of(result.back().character) < own)) {
      if (const char32_t both = composed(result[starter].character, part.character)) {
        result[starter] = {both, result[starter].change + part.change - 1};
        continue;
      }
    }
    if (own == 0) starter = result.size();
    result.push_back(part);
  }
  parts = std::move(result);
}

}  // namespace

void NormalForm::operator()(const TextBuffer& from, TextBuffer& to) const {
  if (std::ranges::all_of(from.text, [](char byte) { return static_cast<unsigned char>(byte) < 0x80; })) {
    to = from;
    return;
  }
  std::vector<Change> parts;
  parts.reserve(from.text.size());
  for (std::string_view rest = from.text; !rest.empty(); rest.remove_prefix(unicode::first_length(rest)))
    decompose(unicode::first_of(rest), compatibility, parts);
  sort_marks(parts);
  if (composes) compose(parts);
  transform(from, parts, to);
}

}  // namespace xgrad::pretrained::detail
