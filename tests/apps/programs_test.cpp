// What the programs do with arguments that cannot be, and with output that cannot be written.

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <xgrad/base/file.hpp>
#include <xgrad/files/npy.hpp>
#include <xgrad/xgrad.hpp>

#include "../../apps/common/interruption.hpp"
#include "files.hpp"
#include "program.hpp"

namespace programs_test {

using nlohmann::json;
using xgrad_tests::output_of, xgrad_tests::ProgramResult, xgrad_tests::run_program;

TEST(ProgramsTest, ArgumentsThatCannotBeAreOneLineAndExitCode2) {
  const auto error = [](const std::string& arguments) {
    const ProgramResult result = run_program(arguments + " 2>&1 >/dev/null");
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
  EXPECT_EQ(error("inspect --bogus"), "inspect: there is no argument '--bogus'" + help);
  EXPECT_EQ(error("train_toy_encoder --stepz 3"), "train_toy_encoder: there is no argument '--stepz'" + help);
}

TEST(ProgramsTest, InspectSaysWhatItTookAFileFor) {
  const xgrad_tests::TemporaryFolder folder;
  const std::string text = folder.write("text.txt", "a text of some length");
  const ProgramResult result = run_program("inspect " + text + " 2>&1");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(result.output.ends_with(
      " (it was read as safetensors, as its name ends in no other format's ending)\n"))
      << result.output;
  const std::string nowhere = folder.path("missing");
  EXPECT_EQ(xgrad_tests::error_of("inspect " + nowhere),
            "inspect: " + nowhere + ": cannot be read: No such file or directory\n");
}

TEST(ProgramsTest, HelpIsNoError) {
  const ProgramResult result = run_program("label_words --help 2>/dev/null");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.output.find("label_words [OPTIONS] "), std::string::npos) << result.output;
}

TEST(ProgramsTest, OutputThatCannotBeWrittenIsAnError) {
  const xgrad_tests::TemporaryFolder folder;
  const std::string file = folder.path("linear.safetensors");
  ASSERT_EQ(run_program("save_and_load " + file + " >/dev/null").exit_code, 0);
  for (const std::string& arguments : {"inspect " + file, std::string("inspect --help")}) {
    for (const char* nowhere : {" 2>&1 >/dev/full", " 2>&1 >&-"}) {
      const ProgramResult result = run_program(arguments + nowhere);
      EXPECT_EQ(result.exit_code, 1) << arguments << nowhere;
      const std::string why =
          std::string_view(nowhere).ends_with("full") ? "No space left on device" : "Bad file descriptor";
      EXPECT_EQ(result.output, "inspect: cannot write the output: " + why + "\n") << arguments << nowhere;
    }
  }
}

TEST(ProgramsTest, FilesBeyondTheSizeLimitAreAnError) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer writes a file before main()";
#endif
  const xgrad_tests::TemporaryFolder folder;
  const std::string program = XGRAD_PROGRAMS_DIR "/train_toy_encoder --steps 3 --batch 4 ",
                    log = folder.path("log");
  const xgrad_tests::ProgramResult result =
      xgrad_tests::run_command("ulimit -f 0; " + program + "--log " + log + " 2>&1 >/dev/null");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.output.find(log + ": cannot be written: File too large"), std::string::npos)
      << result.output;
}

TEST(ProgramsTest, OutputThatDoesNotFitEndsWithAWholeLine) {
  const xgrad_tests::TemporaryFolder folder;
  const std::string out = folder.path("out"), words = folder.path("words");
  std::string text;
  for (char c = 'a'; c <= 'z'; ++c) text += std::string(1, c) + " 1\n" + c + "a" + c + " 2\n";
  folder.write("words", text);
  const std::string model = folder.path("model");
  ASSERT_EQ(run_program("train_syllables --steps 1 --d-model 4 --heads 1 --d-ff 4 --layers 1 --data " +
                        words + " --save " + model + " >/dev/null 2>&1")
                .exit_code,
            0);
  // A limit of 512 bytes, in a file that has a torn line of somebody else.
  folder.write("out", "torn");
  const std::string many = "aba bab cac dad eae faf gag hah iai jaj kak lal mam nan oao pap qaq rar sas tat";
  const ProgramResult result =
      xgrad_tests::run_command("ulimit -f 1; " XGRAD_PROGRAMS_DIR "/label_words " + model + " " + many + " " +
                               many + " " + many + " " + many + " 2>&1 >>" + out);
  EXPECT_EQ(result.exit_code, 1);
  const std::string written = xgrad_tests::read_bytes(out);
  EXPECT_LE(written.size(), 1024u);
  ASSERT_TRUE(written.starts_with("torn") && written.ends_with("\n")) << written;
  const auto lines = std::ranges::count(written, '\n');
  EXPECT_GT(lines, 1);
  EXPECT_EQ(result.output, "label_words: cannot write the output: File too large; it has " +
                               std::to_string(lines) + " whole lines\n");
}

TEST(ProgramsTest, ARunOverwritesNoCheckpointAndTriesItsFilesBeforeTheTraining) {
  const xgrad_tests::TemporaryFolder folder;
  const auto error = [](const std::string& more) {
    return xgrad_tests::error_of("train_toy_encoder --steps 3 --batch 4 " + more);
  };
  const std::string text = folder.write("text", "some text\n"), program = "train_toy_encoder: ";
  EXPECT_EQ(error("--checkpoint " + text),
            program + text +
                ": exists, and --checkpoint would overwrite it; --resume goes on with a run that is saved "
                "there, and for a new run remove the file or name another one\n");
  EXPECT_EQ(xgrad_tests::read_bytes(text), "some text\n");
  const std::string nowhere = folder.path("missing/file"), inside = folder.path("");
  for (const std::string option : {"--checkpoint ", "--log "}) {
    EXPECT_EQ(error(option + nowhere),
              program + nowhere + ": cannot be written: No such file or directory\n");
    EXPECT_TRUE(error(option + inside).starts_with(program + inside + ": ")) << option;
  }
  EXPECT_EQ(error("--log " + inside), program + inside + ": cannot be written: it is no regular file\n");
  EXPECT_EQ(folder.file_count(), 1u);
  EXPECT_EQ(run_program("train_toy_encoder --steps 3 --batch 4 --log /dev/null >/dev/null 2>&1").exit_code,
            0);
}

TEST(ProgramsTest, TwoRunsDoNotShareACheckpoint) {
  const xgrad_tests::TemporaryFolder folder;
  const std::string checkpoint = folder.path("run.safetensors");
  const xgrad::FileLock held(checkpoint);
  const ProgramResult result =
      run_program("train_toy_encoder --steps 3 --batch 4 --checkpoint " + checkpoint + " 2>&1 >/dev/null");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.output.find("train_toy_encoder: " + checkpoint + ": another run writes it\n"),
            std::string::npos)
      << result.output;
}

TEST(InterruptibleOpsTest, AnOpEndsWhenASignalHasCome) {
  const xgrad::Variable<float> x(xgrad::Array<float>{1, 2});
  const apps::NotedSignals signals;
  const apps::InterruptibleOps interruptible;
  EXPECT_NO_THROW(exp(x));
  std::raise(SIGTERM);
  EXPECT_THROW(exp(x), apps::Interruption);
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
  EXPECT_EQ(run_program(train_ + " >&- 2>&-").exit_code, 1) << "the output has not arrived";
  EXPECT_EQ(run_program("label_words " + model_ + " aba 2>&1").exit_code, 0);
}

TEST_F(SyllableProgramTest, AModelThatCannotBeSavedInItsPlaceIsSavedBesideIt) {
  const std::string log = folder_.path("log"), steps = "--steps 1 ";
  std::string endless = train_;
  endless.replace(endless.find(steps), steps.size(), "--steps 100000000 --patience 1000000 ");
  const ProgramResult result =
      xgrad_tests::run_command("env --default-signal=INT " XGRAD_PROGRAMS_DIR "/" + endless + " --log " +
                               log + " 2>&1 >/dev/null & run=$!; until [ -s " + log +
                               " ]; do sleep 0.01; done; mkdir " + model_ + "; kill -INT $run; wait $run");
  EXPECT_EQ(result.exit_code, 130) << result.output;
  const std::string said = model_ + ": cannot be written: it is no regular file; the model is saved in ";
  const std::size_t begin = result.output.find(said);
  ASSERT_NE(begin, std::string::npos) << result.output;
  const std::string rest = result.output.substr(begin + said.size()),
                    place = rest.substr(0, rest.find(" instead\n"));
  EXPECT_TRUE(place.starts_with(folder_.path("xgrad-saved-"))) << rest;
  EXPECT_NE(output_of("label_words " + place + " aba"), "");
}

TEST_F(SyllableProgramTest, AnInputThatCannotBeReadIsNotAtItsEnd) {
  output_of(train_ + " 2>/dev/null");
  EXPECT_EQ(xgrad_tests::error_of("label_words " + model_ + " </"),
            "label_words: the input cannot be read: Is a directory\n");
  EXPECT_EQ(output_of("label_words " + model_ + " </dev/null"), "");
}

TEST_F(SyllableProgramTest, AWordThatIsNotUtf8IsRefusedBeforeTheTraining) {
  const ProgramResult result = run_program(train_ + " \"$(printf 'caf\\351')\" 2>&1");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.output, "train_syllables: characters: word must be valid UTF-8, got \"caf\\xE9\"\n");
  EXPECT_EQ(folder_.file_count(), 1u);
}

TEST_F(SyllableProgramTest, NoOutputOverwritesAnInputOrAnotherOutput) {
  const std::string words = folder_.path("words"), before = xgrad_tests::read_bytes(words),
                    link = folder_.path("link"), twin = folder_.path("twin");
  std::filesystem::create_symlink(words, link);
  std::filesystem::create_hard_link(words, twin);
  const std::string spelled = folder_.path("./words");
  for (const char* option : {"--metrics", "--log", "--checkpoint", "--report"}) {
    for (const std::string& path : {words, link, twin, spelled}) {
      const ProgramResult result = run_program(train_ + " " + option + " " + path + " 2>&1");
      EXPECT_EQ(result.exit_code, 2);
      EXPECT_EQ(result.output, std::string("train_syllables: ") + option + " " + path +
                                   " would overwrite the input --data " + words +
                                   "; --help lists the arguments\n");
    }
    EXPECT_EQ(
        run_program(train_ + " " + option + " '' 2>&1").output,
        std::string("train_syllables: ") + option + ": must not be empty; --help lists the arguments\n");
    EXPECT_EQ(run_program(train_ + " " + option + " " + model_ + " 2>&1").exit_code, 2) << "that of --save";
  }
  EXPECT_EQ(xgrad_tests::read_bytes(words), before);
  EXPECT_FALSE(std::filesystem::exists(model_));
  EXPECT_EQ(run_program("report " + words + " --output " + link + " 2>&1 >/dev/null").output,
            "report: --output " + link + " would overwrite the input RUN " + words +
                "; --help lists the arguments\n");
  std::filesystem::create_directory(folder_.path("tagged"));
  folder_.write("tagged/text", "a/DET house/NOUN ./.\n");
  const std::string text = folder_.path("tagged/text");
  EXPECT_EQ(run_program("train_tagger --data " + folder_.path("tagged") + " --save " + text + " 2>&1").output,
            "train_tagger: --save " + text + " would overwrite the input --data " + folder_.path("tagged") +
                "; --help lists the arguments\n");
}

TEST_F(SyllableProgramTest, AModelThatHasNoRoomIsRefusedBeforeTheTraining) {
  const ProgramResult result = xgrad_tests::run_command(
      "ulimit -f 1; " XGRAD_PROGRAMS_DIR
      "/train_syllables --steps 1 --d-model 64 --heads 1 --d-ff 64 --layers 1 --data " +
      folder_.path("words") + " --save " + model_ + " 2>&1 >/dev/null");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(result.output.starts_with("train_syllables: " + model_ + ": needs ")) << result.output;
  EXPECT_NE(result.output.find(" bytes, and the limit on the size of files (ulimit -f) is "),
            std::string::npos)
      << result.output;
  EXPECT_EQ(result.output.find("step 1"), std::string::npos) << result.output;
}

TEST_F(SyllableProgramTest, AFileThatIsReadFromTheInputIsNotOverwritten) {
  const std::string words = folder_.path("words");
  EXPECT_EQ(
      run_program(train_ + " --metrics " + folder_.path("./words2") + " --log " + words + " 2>&1 </dev/null")
          .exit_code,
      2);
  const ProgramResult result = run_program("train_toy_encoder --steps 1 --log " + words + " 2>&1 <" + words);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.output, "train_toy_encoder: --log " + words +
                               " would overwrite the input on /dev/stdin; --help lists the arguments\n");
}

/// A directory of one case of the program conformance, which is right as it is: the negative of (1, 2).
class ConformanceProgramTest : public testing::Test {
 protected:
  ConformanceProgramTest() {
    xgrad::save_npy(xgrad::Array<float>{1, 2}, folder_.path("x.npy"));
    xgrad::save_npy(xgrad::Array<float>{-1, -2}, folder_.path("y.npy"));
    xgrad::save_npy(xgrad::Array<float>{1, 1}, folder_.path("dy.npy"));
    xgrad::save_npy(xgrad::Array<float>{-1, -1}, folder_.path("dx.npy"));
  }

  ProgramResult run(const std::string& cases) const {
    folder_.write("cases.json", cases);
    return xgrad_tests::run_command(std::string(XGRAD_PROGRAMS_DIR "/conformance ") + folder_.path("") +
                                    " 2>&1");
  }
  /// What is printed for the case with an entry that is put into it.
  ProgramResult run_with(const char* entry, const json& value) const {
    json changed = right_;
    changed[entry] = value;
    return run(json::array({changed}).dump());
  }
  void expect_failure(const ProgramResult& result, const std::string& why) const {
    EXPECT_EQ(result.output, "FAILED  neg.1  " + why + "\n0 passed, 1 failed, 0 skipped\n");
    EXPECT_EQ(result.exit_code, 1) << why;
  }

  xgrad_tests::TemporaryFolder folder_;
  const json right_ = {{"id", "neg.1"},
                       {"op", "neg"},
                       {"dtype", "float32"},
                       {"attrs", json::object()},
                       {"inputs", {"x.npy"}},
                       {"outputs", {"y.npy"}},
                       {"grad_output", "dy.npy"},
                       {"grad_inputs", {"dx.npy"}},
                       {"rtol", 0},
                       {"atol", 0}};
};

TEST_F(ConformanceProgramTest, ABrokenDirectoryIsOneLine) {
  const std::string at = "conformance: " + folder_.path("") + "/cases.json";
  const auto expect_error = [&](const std::string& cases, const std::string& why) {
    const ProgramResult result = run(cases);
    EXPECT_EQ(result.output, at + why + "\n");
    EXPECT_EQ(result.exit_code, 1) << why;
  };
  expect_error("{}", " must be a list of cases, got an object");
  expect_error("null", " must be a list of cases, got null");
  EXPECT_TRUE(run("[{").output.starts_with(at + ": parse error at line 1, column 3: ")) << run("[{").output;
  const ProgramResult none = run("[]");
  EXPECT_EQ(none.output, "0 passed, 0 failed, 0 skipped\n");
  EXPECT_EQ(none.exit_code, 0);
}

TEST_F(ConformanceProgramTest, ADamagedCaseFailsByNameAndReason) {
  EXPECT_EQ(run_with("atol", 0).output, "1 passed, 0 failed, 0 skipped\n");
  expect_failure(run_with("grad_inputs", nullptr), "grad_inputs must be a list, got null");
  expect_failure(run_with("grad_inputs", json::array()), "grad_inputs must have 1 entries, got 0");
  expect_failure(run_with("grad_output", json::array()), "grad_output must have 1 entries, got 0");
  expect_failure(run_with("outputs", json::array()), "outputs must have 1 entries, got 0");
  expect_failure(run_with("attrs", nullptr), "attrs must be an object, got null");
  expect_failure(run_with("rtol", -1), "rtol must be at least 0, got -1.0");
  expect_failure(run_with("atol", "1e-5"), "atol must be a number, got \"1e-5\"");
  expect_failure(run_with("dtype", 32), "dtype must be text, got 32");
  expect_failure(run_with("inputs", {3}), "a file must be text, got 3");
  expect_failure(run_with("expect_error", 1), "expect_error must be true or false, got 1");
  EXPECT_EQ(run_with("op", "sine").output,
            "skipped neg.1  xgrad has no op 'sine'\n0 passed, 0 failed, 1 skipped\n");
  EXPECT_EQ(run(R"([{"op": "neg"}, 7])").output,
            "FAILED  case 0  id is missing\nFAILED  case 1  what holds id must be an object, got 7\n"
            "0 passed, 2 failed, 0 skipped\n");
}

TEST_F(ConformanceProgramTest, ADamagedAttributeIsNoRefusal) {
  const auto with = [&](const char* op, const json& attrs) {
    json changed = right_;
    changed.update({{"op", op}, {"attrs", attrs}, {"expect_error", true}, {"error_kind", "value"}});
    return run(json::array({changed}).dump());
  };
  const std::string whole = "dim must be a whole number in [-2147483648, 2147483647], got ";
  expect_failure(with("softmax", {{"dim", 0.7}}), whole + "0.7");
  expect_failure(with("softmax", {{"dim", 4294967296}}), whole + "4294967296");
  expect_failure(with("softmax", json::object()), "dim is missing");
  expect_failure(with("softplus", {{"beta", "one"}, {"threshold", 20}}),
                 "beta must be a number, got \"one\"");
  expect_failure(with("reshape", {{"shape", {2, "x"}}}),
                 "shape[1] must be a whole number in [-9223372036854775808, 9223372036854775807], got \"x\"");
  expect_failure(with("slice", {{"dims", {0}}, {"starts", json::array()}, {"ends", {1}}, {"steps", {1}}}),
                 "starts must have 1 entries, got 0");
  expect_failure(with("graph", {{"nodes", json::array()}, {"outputs", {"x7"}}}), "no value is named \"x7\"");
}

TEST_F(ConformanceProgramTest, ARefusalMustBeOfItsKind) {
  const auto with = [&](const char* kind) {
    json changed = right_;
    changed.update(
        {{"op", "softmax"}, {"attrs", {{"dim", 5}}}, {"expect_error", true}, {"error_kind", kind}});
    return run(json::array({changed}).dump());
  };
  EXPECT_EQ(with("dim").output, "1 passed, 0 failed, 0 skipped\n");
  expect_failure(with("shape"),
                 "was refused as no shape error is: softmax: axis 5 is out of range for x (2)");
  expect_failure(with("grad_shape"), "softmax: axis 5 is out of range for x (2)");
}

TEST_F(ConformanceProgramTest, ADamagedFileFailsByNameAndReason) {
  const std::string right = xgrad_tests::read_bytes(folder_.path("x.npy"));
  const auto with = [&](const std::string& shape) {
    std::string header = right.substr(0, right.find("(2,)")) + shape;
    header += right.substr(header.size(), 128 - header.size() - 1) + "\n";
    folder_.write("x.npy", header.replace(header.find(')') + 1, 3, ", }"));
    return run_with("atol", 0);
  };
  const std::string file = folder_.path("") + "/x.npy: ";
  expect_failure(with("(2x,)"), file + "the shape is not one: (2x,)");
  expect_failure(with("(-2,)"), file + "the shape is not one: (-2,)");
  expect_failure(with("(99999999999999999999,)"), file + "the shape is not one: (99999999999999999999,)");
  expect_failure(with("(4294967296, 4294967296)"),
                 file + "read_npy: shape (4294967296, 4294967296) has too many elements");
}

}  // namespace programs_test
