#pragma once

#include <charconv>
#include <locale>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>

namespace xgrad::detail {

/// The number that the whole text is, in decimal digits and whatever the locale; nothing if it is none or out
/// of range. Not std::from_chars for floating-point numbers, as libc++ lacks it.
template <class T>
std::optional<T> parsed(std::string_view text) {
  T number{};
  if constexpr (std::is_floating_point_v<T>) {
    std::istringstream stream{std::string(text)};
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
