// What the README shows is what the programs print.

#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "program.hpp"

namespace {

using xgrad_tests::output_of;

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
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
