#pragma once

#include <charconv>
#include <locale>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>

namespace xgrad::detail {

/// Parses the whole text as a decimal number, independent of the locale; empty if it is invalid or out of
/// range. Floating-point numbers do not use std::from_chars, which libc++ lacks for them.
template <class T>
std::optional<T> parsed(std::string_view text) {
  T number{};
  if constexpr (std::is_floating_point_v<T>) {
    std::istringstream stream{std::string(text)};
    stream.exceptions(std::ios::badbit);  // without it, failing memory would be a text that is no number
    stream.imbue(std::locale::classic());
    stream >> std::noskipws >> number;
    if (stream.fail() || stream.peek() != std::istringstream::traits_type::eof()) return std::nullopt;
  } else {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  }
  return number;
}

}  // namespace xgrad::detail
