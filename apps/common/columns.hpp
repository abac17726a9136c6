#pragma once

// The characters of UTF-8 texts, that is their code points: counted, cut off, and filled up to columns.

#include <cstddef>
#include <string>
#include <string_view>

namespace apps {

/// The number of characters.
std::size_t width_of(std::string_view text);

/// The first or the last characters of a text; all of it if there are not so many.
std::string first_characters(std::string_view text, std::size_t count);
std::string last_characters(std::string_view text, std::size_t count);

/// The text with blanks after or before it, so that it is `width` characters wide; a longer one stays as it
/// is.
std::string on_the_left(const std::string& text, std::size_t width);
std::string on_the_right(const std::string& text, std::size_t width);

}  // namespace apps
