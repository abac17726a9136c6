#pragma once

#include <cstring>
#include <string>
#include <vector>

namespace xgrad_tests {

/// RFC 4648, decoded digit by digit.
inline std::string decoded(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned bits = 0, count = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<unsigned>(digits.find(c));
    count += 6;
    if (count >= 8) bytes += static_cast<char>(bits >> (count -= 8) & 255);
  }
  return bytes;
}

/// The elements of an array in a report.
template <class E, class Json>
std::vector<E> elements(const Json& array) {
  const std::string bytes = decoded(array.at("base64"));
  std::vector<E> result(bytes.size() / sizeof(E));
  std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

}  // namespace xgrad_tests
