#pragma once

#include <cstddef>
#include <string_view>

// Not installed.

namespace xgrad::tokenizers::detail::unicode {

/// The length in bytes of the first grapheme cluster of a text, which must be UTF-8 and not empty
/// (https://www.unicode.org/reports/tr29/), without the rules that only join six bytes or more: those of
/// Hangul, flags and emoji.
std::size_t first_grapheme(std::string_view text);

}  // namespace xgrad::tokenizers::detail::unicode
