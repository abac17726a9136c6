// What the README shows is what the programs print.

#include <string>

#include <gtest/gtest.h>

#include "files.hpp"
#include "program.hpp"

namespace {

using xgrad_tests::output_of, xgrad_tests::read_bytes;

class ReadmeTest : public testing::TestWithParam<const char*> {};

TEST_P(ReadmeTest, ShowsWhatTheExamplePrints) {
  const std::string output = output_of(GetParam());
  EXPECT_FALSE(output.empty());
  EXPECT_NE(read_bytes(XGRAD_SOURCE_DIR "/README.md").find("\n" + output), std::string::npos)
      << "README.md should show this:\n"
      << output;
}

INSTANTIATE_TEST_SUITE_P(Examples, ReadmeTest,
                         testing::Values("scalar_gradients", "linear_regression", "attention", "custom_op",
                                         "gradcheck_model", "model_shapes", "own_dataset"),
                         [](const auto& info) { return std::string(info.param); });

TEST(ReadmeTest, ShowsTheShortestPrograms) {
  for (const char* name : {"scalar_gradients", "save_and_load"}) {
    const std::string source = read_bytes(XGRAD_SOURCE_DIR "/examples/" + std::string(name) + ".cpp");
    EXPECT_NE(read_bytes(XGRAD_SOURCE_DIR "/README.md").find(source.substr(source.find("#include"))),
              std::string::npos)
        << name;
  }
}

TEST(ReadmeTest, ShowsWhatIsInTheSavedFile) {
  const xgrad_tests::TemporaryFolder temporary;
  const std::string path = temporary.path("linear.safetensors");
  EXPECT_TRUE(output_of("save_and_load " + path).starts_with("tensor([[-0.2039, "));
  EXPECT_NE(read_bytes(XGRAD_SOURCE_DIR "/README.md").find("\n" + output_of("inspect " + path)),
            std::string::npos);
}

}  // namespace
