// What bench_layers prints. Never how fast anything is.

#include <string>

#include <gtest/gtest.h>

#include "program.hpp"

namespace bench_layers_test {

using xgrad_tests::ProgramResult, xgrad_tests::run_program;

TEST(BenchLayersTest, EachModelIsATable) {
  const ProgramResult result = run_program("bench_layers --config lenet gru-128 --threads 2 --seconds 0.001");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  for (const char* text : {"\nlenet: 61706 parameters, 64 images of 28 x 28, 2 threads\n",
                           "\ngru-128: 100362 parameters, 32 sequences of 128 x 128, 2 threads\n"}) {
    const std::size_t found = result.output.find(text);
    ASSERT_NE(found, std::string::npos) << result.output;
    EXPECT_NE(result.output.find("\nstep    xgrad  ", found), std::string::npos) << result.output;
  }
}

TEST(BenchLayersTest, OtherLibrariesHaveTheSameLossesOrAreMissing) {
  const std::string arguments =
      "bench_layers --config lenet resnet lstm-128 --seconds 0.001 --vs pytorch 2>&1";
  const ProgramResult result = run_program(arguments);
  if (result.exit_code == 2) {
    EXPECT_EQ(result.output,
              "bench_layers: --vs: pytorch needs PyTorch 2, which python3 does not find (pip install torch); "
              "--help lists the arguments\n");
    return;
  }
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(result.output.find("\nstep    pytorch  "), std::string::npos) << result.output;
}

TEST(BenchLayersTest, ArgumentsThatCannotBeAreOneLineAndExitCode2) {
  const ProgramResult result = run_program("bench_layers --config vgg 2>&1");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(
      result.output,
      "bench_layers: --config: vgg not in {lenet,resnet,lstm-128,lstm-512,gru-128,gru-512}; --help lists "
      "the arguments\n");
}

}  // namespace bench_layers_test
