#include "unicode.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace xgrad::tokenizers::detail::unicode {
namespace {

/// The text of a character in a map that is three arrays; empty without one.
std::span<const char32_t> text_of(std::span<const char32_t> keys, std::span<const std::uint16_t> starts,
                                  std::span<const char32_t> texts, char32_t character) {
  const auto place = std::ranges::lower_bound(keys, character);
  if (place == keys.end() || *place != character) return {};
  const auto index = static_cast<std::size_t>(place - keys.begin());
  return texts.subspan(starts[index], starts[index + 1] - starts[index]);
}

}  // namespace

std::span<const char32_t> decomposition(char32_t character) {
  return text_of(decomposing, decomposition_starts, decompositions, character);
}

std::span<const char32_t> compatibility(char32_t character) {
  return text_of(compatible, compatibility_starts, compatibilities, character);
}

char32_t composed(char32_t first, char32_t second) {
  using namespace hangul;
  const char32_t lead = first - lead_base, vowel = second - vowel_base;
  if (lead < lead_count && vowel < vowel_count)
    return first_syllable + (lead * vowel_count + vowel) * trail_count;
  const char32_t syllable = first - first_syllable, trail = second - trail_base;
  if (syllable < syllables && syllable % trail_count == 0 && trail > 0 && trail < trail_count)
    return first + trail;
  const auto* const place =
      std::ranges::lower_bound(compositions, std::tie(first, second), {},
                               [](const Composition& one) { return std::tie(one.first, one.second); });
  const bool found = place != std::end(compositions) && place->first == first && place->second == second;
  return found ? place->composed : 0;
}

}  // namespace xgrad::tokenizers::detail::unicode
