#pragma once

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include <xgrad/base/array.hpp>

#include "temporary_folder.hpp"

namespace xgrad_tests {

inline std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Shapes and all bits are equal: nan is itself, and -0 is not 0.
template <class T>
void expect_same_bits(const xgrad::Array<T>& got, const xgrad::Array<T>& expected) {
  ASSERT_EQ(xgrad::to_string(got.shape()), xgrad::to_string(expected.shape()));
  const auto bytes = [](const xgrad::Array<T>& array) {
    return std::string_view(reinterpret_cast<const char*>(array.data()), array.size() * sizeof(T));
  };
  EXPECT_TRUE(bytes(got) == bytes(expected));
}

}  // namespace xgrad_tests
