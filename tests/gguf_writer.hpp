#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

// Parts of GGUF files. https://github.com/ggml-org/ggml/blob/master/docs/gguf.md

namespace xgrad_tests::gguf {

template <class Number>
std::string number(Number number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

inline std::string text(std::string_view text) {
  return number(std::uint64_t{text.size()}) + std::string(text);
}

/// A key with a value of the type with this number.
inline std::string key(std::string_view name, std::uint32_t type, const std::string& value) {
  return text(name) + number(type) + value;
}

/// A key with an array.
inline std::string array(std::string_view name, std::uint32_t type, std::uint64_t size,
                         const std::string& values) {
  return key(name, 9, number(type) + number(size) + values);
}

/// The axis that is contiguous comes first.
inline std::string tensor(std::string_view name, const std::vector<std::int64_t>& lengths, std::uint32_t type,
                          std::uint64_t offset) {
  std::string bytes = text(name) + number(static_cast<std::uint32_t>(lengths.size()));
  for (const std::int64_t length : lengths) bytes += number(length);
  return bytes + number(type) + number(offset);
}

inline std::string file(const std::vector<std::string>& keys, const std::vector<std::string>& tensors,
                        const std::string& data = "", std::uint32_t version = 3, std::size_t alignment = 32) {
  std::string bytes =
      "GGUF" + number(version) + number(std::uint64_t{tensors.size()}) + number(std::uint64_t{keys.size()});
  for (const std::string& key : keys) bytes += key;
  for (const std::string& tensor : tensors) bytes += tensor;
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
  return bytes + data;
}

}  // namespace xgrad_tests::gguf
