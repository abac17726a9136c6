// What the README shows is what the programs print.

#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string output_of(const std::string& example) {
  const std::string command = std::string(XGRAD_EXAMPLES_BINARY_DIR) + "/" + example;
  const auto close = [](std::FILE* pipe) { EXPECT_EQ(pclose(pipe), 0); };
  const std::unique_ptr<std::FILE, decltype(close)> pipe(popen(command.c_str(), "r"), close);
  std::string text;
  char piece[4096];
  while (const std::size_t count = std::fread(piece, 1, sizeof piece, pipe.get())) text.append(piece, count);
  return text;
}

class ReadmeTest : public testing::TestWithParam<const char*> {};

TEST_P(ReadmeTest, ShowsWhatTheExamplePrints) {
  const std::string output = output_of(GetParam());
  EXPECT_FALSE(output.empty());
  EXPECT_NE(read_file(XGRAD_SOURCE_DIR "/README.md").find("\n" + output), std::string::npos)
      << "README.md should show this:\n"
      << output;
}

INSTANTIATE_TEST_SUITE_P(Examples, ReadmeTest,
                         testing::Values("scalar_gradients", "linear_regression", "attention", "custom_op",
                                         "gradcheck_model", "model_shapes"),
                         [](const auto& info) { return std::string(info.param); });

TEST(ReadmeTest, ShowsTheFirstProgram) {
  const std::string source = read_file(XGRAD_SOURCE_DIR "/examples/scalar_gradients.cpp");
  EXPECT_NE(read_file(XGRAD_SOURCE_DIR "/README.md").find(source.substr(source.find("#include"))),
            std::string::npos);
}

}  // namespace
