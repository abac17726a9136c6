#include "grapheme.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "../../../base/detail/text/utf8.hpp"

namespace xgrad::tokenizers::detail::unicode {
namespace {

using namespace xgrad::detail::utf8;

enum class GraphemeKind : std::uint8_t { other, alone, leads, follows };

struct GraphemeRange {
  char32_t first, last;
  GraphemeKind kind;
};

constexpr auto alone = GraphemeKind::alone, leads = GraphemeKind::leads, follows = GraphemeKind::follows;

#include "grapheme_table.inc"

GraphemeKind grapheme_kind(char32_t character) {
  if (character >= 0x20 && character < 0x7F) return GraphemeKind::other;
  const auto* const range = std::ranges::lower_bound(grapheme_ranges, character, {}, &GraphemeRange::last);
  return range != std::end(grapheme_ranges) && range->first <= character ? range->kind : GraphemeKind::other;
}

}  // namespace

std::size_t first_grapheme(std::string_view text) {
  if (text.starts_with("\r\n")) return 2;
  std::size_t end = first_length(text);
  GraphemeKind kind = grapheme_kind(first_of(text));
  while (kind != alone && end < text.size()) {
    const std::string_view rest = text.substr(end);
    const GraphemeKind next = grapheme_kind(first_of(rest));
    if (next != follows && (kind != leads || next == alone)) break;
    kind = next == follows ? GraphemeKind::other : next;
    end += first_length(rest);
  }
  return end;
}

}  // namespace xgrad::tokenizers::detail::unicode
