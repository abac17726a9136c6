// What the programs do with arguments that cannot be, and with output that cannot be written.

#include <string>

#include <gtest/gtest.h>

#include "files.hpp"
#include "program.hpp"

namespace {

using xgrad_tests::ProgramResult, xgrad_tests::run_example;

TEST(ProgramsTest, ArgumentsThatCannotBeAreOneLineAndExitCode2) {
  const auto error = [](const std::string& arguments) {
    const ProgramResult result = run_example(arguments + " 2>&1 >/dev/null");
    EXPECT_EQ(result.exit_code, 2) << arguments;
    return result.output;
  };
  const std::string help = "; --help lists the arguments\n";
  const auto range = [&](const std::string& option, const std::string& range, const std::string& got) {
    EXPECT_EQ(error("train_syllables " + option + " " + got),
              "train_syllables: " + option + ": must be a number in " + range + ", got " + got + help);
  };
  range("--lr", "[1e-09, 10]", "nan");
  range("--lr", "[1e-09, 10]", "-1");
  range("--lr", "[1e-09, 10]", "0.1x");
  range("--seed", "[0, 18446744073709551615]", "-1");
  range("--seed", "[0, 18446744073709551615]", "18446744073709551616");
  range("--steps", "[1, 100000000]", "0");
  range("--patience", "[1, 1000000]", "-1");
  EXPECT_EQ(error("inspect"), "inspect: file is required" + help);
  EXPECT_EQ(error("train_toy_encoder --stepz 3"),
            "train_toy_encoder: The following arguments were not expected: 3 --stepz" + help);
}

TEST(ProgramsTest, HelpIsNoError) {
  const ProgramResult result = run_example("label_words --help 2>/dev/null");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.output.find("Usage: "), std::string::npos) << result.output;
}

TEST(ProgramsTest, OutputThatCannotBeWrittenIsAnError) {
  const xgrad_tests::TemporaryFolder folder;
  const std::string file = folder.path("linear.safetensors");
  ASSERT_EQ(run_example("save_and_load " + file + " >/dev/null").exit_code, 0);
  for (const std::string& arguments : {"inspect " + file, std::string("inspect --help")}) {
    for (const char* nowhere : {" 2>&1 >/dev/full", " 2>&1 >&-"}) {
      const ProgramResult result = run_example(arguments + nowhere);
      EXPECT_EQ(result.exit_code, 1) << arguments << nowhere;
      EXPECT_EQ(result.output, "inspect: cannot write the output\n") << arguments << nowhere;
    }
  }
}

class SyllableProgramTest : public testing::Test {
 protected:
  SyllableProgramTest() {
    std::string words;
    for (char c = 'a'; c <= 'z'; ++c) words += std::string(1, c) + " 1\n" + c + "a" + c + " 2\n";
    train_ = "train_syllables --steps 1 --d-model 4 --heads 1 --d-ff 4 --layers 1 --data " +
             folder_.write("words", words) + " --save " + model_;
  }

  xgrad_tests::TemporaryFolder folder_;
  std::string model_ = folder_.path("model"), train_;
};

TEST_F(SyllableProgramTest, AFileIsNotMixedWithTheOutputOfAClosedStream) {
  EXPECT_EQ(run_example(train_ + " >&- 2>&-").exit_code, 1) << "the output has not arrived";
  EXPECT_EQ(run_example("label_words " + model_ + " aba 2>&1").exit_code, 0);
}

TEST_F(SyllableProgramTest, AWordThatIsNotUtf8IsRefusedBeforeTheTraining) {
  const ProgramResult result = run_example(train_ + " \"$(printf 'caf\\351')\" 2>&1");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.output, "train_syllables: characters: word must be valid UTF-8, got \"caf\\xE9\"\n");
  EXPECT_EQ(folder_.file_count(), 1u);
}

}  // namespace
