#include "normal_form.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "../unicode/unicode.hpp"
#include "changes.hpp"

namespace xgrad::tokenizers::detail {
namespace {

std::uint8_t class_of(char32_t character) { return unicode::properties_of(character).combining_class; }

void decompose(char32_t character, bool compatibility, std::vector<Change>& parts) {
  const auto put = [&](char32_t part, bool leads) { parts.push_back({part, leads ? 0 : 1}); };
  const auto simpler = compatibility ? unicode::compatibility(character) : std::span<const char32_t>();
  if (simpler.empty()) return unicode::decompose(character, put);
  for (std::size_t i = 0; i < simpler.size(); ++i) put(simpler[i], i == 0);
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

/// Composes each character with the last starter unless one between them blocks it.
void compose(std::vector<Change>& parts) {
  std::vector<Change> result;
  std::size_t starter = parts.size();  // its place in the result
  for (const Change& part : parts) {
    const std::uint8_t own = class_of(part.character);
    const bool is_next = starter + 1 == result.size();
    if (starter < result.size() && (is_next || class_of(result.back().character) < own)) {
      if (const char32_t both = unicode::composed(result[starter].character, part.character)) {
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

}  // namespace xgrad::tokenizers::detail
