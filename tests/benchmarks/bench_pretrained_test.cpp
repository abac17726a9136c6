// What bench_pretrained prints. Never how fast anything is.

#include <string>

#include <gtest/gtest.h>

#include "program.hpp"

namespace bench_pretrained_test {

using xgrad_tests::ProgramResult, xgrad_tests::run_program;

TEST(BenchPretrainedTest, AllLibrariesHaveTheSameLogitsOrAreMissing) {
  const ProgramResult result = run_program("bench_pretrained --config tiny --turns 1");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(result.output.find("\ntiny: 25634 parameters, 32 texts of 8 to 121 tokens, 1642 tokens in 3872 "
                               "places, 1 thread\n"),
            std::string::npos)
      << result.output;
  const bool missing = result.output.starts_with(
      "libtorch needs LibTorch, which was not there when this was built (libtorch-dev or pip's torch, and "
      "g++)\n");
  for (const char* task : {"step    ", "forward "}) {
    for (const char* library : {"xgrad ", "xgrad-padded "})
      EXPECT_NE(result.output.find(std::string(task) + library), std::string::npos) << result.output;
    EXPECT_EQ(result.output.find(std::string(task) + "libtorch ") == std::string::npos, missing)
        << result.output;
  }
}

TEST(BenchPretrainedTest, ArgumentsThatCannotBeAreOneLineAndExitCode2) {
  const ProgramResult result = run_program("bench_pretrained --config large 2>&1");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.output,
            "bench_pretrained: --config: large not in {tiny,minilm,bert-base}; --help lists the arguments\n");
}

}  // namespace bench_pretrained_test
