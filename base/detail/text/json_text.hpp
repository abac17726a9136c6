#pragma once

// Texts as JSON shows them, for errors.

#include <string>
#include <string_view>

namespace xgrad::detail {

/// The text in double quotes with JSON's escapes, on one line; a long text is truncated.
std::string in_quotes(std::string_view text);

/// The same without the quotes.
std::string escaped(std::string_view text);

/// The message of a JSON exception, "parse error at line 1, column 2: syntax error ...", without its number
/// and the last token; a long message is truncated.
std::string json_error(std::string_view what);

}  // namespace xgrad::detail
