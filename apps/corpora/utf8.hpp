#pragma once

// Texts in UTF-8, and their code points.

#include <optional>
#include <string>
#include <string_view>

namespace apps {

/// The code points of a text, or nothing when it is not strict UTF-8.
std::optional<std::u32string> decode_utf8(std::string_view text);

/// The code point as UTF-8.
std::string encode_utf8(char32_t point);

/// The C0 and C1 control characters, NUL and the terminal's escape among them.
bool is_control(char32_t point);

/// A text for an error message: in quotes, with bytes that cannot be printed as \xNN, cut after 40
/// characters.
std::string printable(std::string_view text);

/// The characters of a word: its code points. Throws std::invalid_argument when it is not UTF-8.
std::u32string characters(std::string_view word);

}  // namespace apps
