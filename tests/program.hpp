#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace xgrad_tests {

/// What an example prints; a failure unless it exits with 0.
inline std::string output_of(const std::string& example) {
  const std::string command = std::string(XGRAD_EXAMPLES_BINARY_DIR) + "/" + example;
  const auto close = [](std::FILE* pipe) { EXPECT_EQ(pclose(pipe), 0); };
  const std::unique_ptr<std::FILE, decltype(close)> pipe(popen(command.c_str(), "r"), close);
  std::string text;
  char piece[4096];
  while (const std::size_t count = std::fread(piece, 1, sizeof piece, pipe.get())) text.append(piece, count);
  return text;
}

}  // namespace xgrad_tests
