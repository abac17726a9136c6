#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include <xgrad/graph/array.hpp>

namespace xgrad_tests {

/// An empty folder that is deleted at the end with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "xgrad_test_XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }

  std::string path(const std::string& name) const { return (path_ / name).string(); }

  /// Writes a file and returns its path.
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

  std::size_t file_count() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

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
