// What bench_gpt prints. Never how fast anything is.

#include <string>

#include <gtest/gtest.h>

#include "program.hpp"

namespace bench_gpt_test {

using xgrad_tests::ProgramResult, xgrad_tests::run_program;

void expect_lines(const ProgramResult& result, const std::vector<std::string>& begins) {
  ASSERT_EQ(result.exit_code, 0) << result.output;
  for (const std::string& begin : begins)
    EXPECT_NE(result.output.find("\n" + begin), std::string::npos) << begin << " in\n" << result.output;
}

TEST(BenchGptTest, MeasuresSteps) {
  expect_lines(run_program("bench_gpt --config tiny --turns 1 --checkpoint"),
               {"tiny: 2 x 8 tokens\n", "step    xgrad  "});
}

TEST(BenchGptTest, MeasuresOneAndTwoThreadsBesideABusyProcess) {
  expect_lines(run_program("bench_gpt --config tiny --turns 1 --busy"),
               {"step    xgrad, 1 thread  ", "step    xgrad, 2 threads  "});
}

TEST(BenchGptTest, MeasuresPromptsAndTokens) {
  expect_lines(run_program("bench_gpt --config tiny --turns 1 --decode"),
               {"token   xgrad, float32  ", "token   xgrad, bfloat16  ", "prompt  xgrad, float32  ",
                "prompt  xgrad, bfloat16  "});
}

TEST(BenchGptTest, OtherLibrariesHaveTheSameLossOrAreMissing) {
  const ProgramResult result = run_program("bench_gpt --config tiny nano --turns 1 --vs pytorch 2>&1");
  if (result.exit_code == 2) {
    EXPECT_EQ(result.output,
              "bench_gpt: --vs: pytorch needs PyTorch 2, which python3 does not find (pip install torch); "
              "--help lists the arguments\n");
    return;
  }
  expect_lines(result, {"step    pytorch  "});
  expect_lines(run_program("bench_gpt --config tiny --turns 1 --decode --vs pytorch"),
               {"token   pytorch, float32  ", "prompt  pytorch, bfloat16  "});
}

TEST(BenchGptTest, ArgumentsThatCannotBeAreOneLineAndExitCode2) {
  const ProgramResult result = run_program("bench_gpt --config gpt3 2>&1");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.output,
            "bench_gpt: --config: gpt3 not in {tiny,nano,gpt2,gpt2long,gpt2batch}; --help lists the "
            "arguments\n");
}

}  // namespace bench_gpt_test
