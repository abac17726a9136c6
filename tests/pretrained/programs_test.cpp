// tiny_bert and pretrain, from the text that they read to the folders that they write.

#include <cmath>
#include <csignal>
#include <filesystem>
#include <map>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <xgrad/pretrained.hpp>

#include "../files.hpp"
#include "../program.hpp"

namespace programs_test {

using nlohmann::json;
using namespace xgrad::pretrained;
using xgrad::tokenizers::Tokenizer;
using xgrad_tests::error_of, xgrad_tests::output_of, xgrad_tests::ProgramResult, xgrad_tests::read_bytes,
    xgrad_tests::run_program;

json json_of(const std::string& path) { return json::parse(read_bytes(path)); }

/// Texts of a small language, in which a word tells the next one.
class PretrainingTest : public testing::Test {
 protected:
  PretrainingTest() {
    std::string text;
    for (int i = 0; i < 60; ++i) {
      const std::string end = i % 2 == 0 ? "\n" : "\n\n";  // two lines are a text
      text += i % 3 == 0 ? "The black cat sees the white mouse." : "A white mouse likes cheese!";
      text += end;
    }
    folder_.write("text", text);
  }

  std::string tiny_bert(const std::string& folder, const std::string& more = "") const {
    return "tiny_bert " + folder_.path(folder) + " --text " + folder_.path("text") +
           " --vocab-size 50 --hidden-size 8 --layers 1 --heads 2 --intermediate-size 8 --max-length 16 " +
           more;
  }
  void make_model() const { ASSERT_EQ(run_program(tiny_bert("model") + " >/dev/null").exit_code, 0); }

  std::string pretrain(const std::string& out, const std::string& more) const {
    return "pretrain " + folder_.path("model") + " --text " + folder_.path("text") + " --save " +
           folder_.path(out) + " --batch 4 --lr 0.01 " + more;
  }

  std::string weights_of(const std::string& folder) const {
    return read_bytes(folder_.path(folder) + "/model.safetensors");
  }

  xgrad_tests::TemporaryFolder folder_;
};

TEST_F(PretrainingTest, TinyBertMakesAModelAndItsTokenizer) {
  const std::string output = output_of(tiny_bert("model"));
  EXPECT_TRUE(output.starts_with("50 tokens from 30 texts in ")) << output;
  const auto tokenizer = Tokenizer::from_folder(folder_.path("model"));
  EXPECT_EQ(tokenizer.size(), 50u);
  EXPECT_EQ(tokenizer.max_length(), 16u);
  std::vector<std::string> tokens;
  for (const std::int64_t id : tokenizer.encode("The MOUSE likes?").ids)
    tokens.push_back(tokenizer.token(id));
  EXPECT_EQ(tokens, (std::vector<std::string>{"[CLS]", "the", "mouse", "likes", "[UNK]", "[SEP]"}));

  std::vector<std::string> notes;
  const auto model = MaskedLM<float>::from_folder(
      folder_.path("model"), {.note = [&](const std::string& note) { notes.push_back(note); }});
  EXPECT_TRUE(notes.empty());
  const Config& config = model.config();
  EXPECT_EQ(config.vocab_size, 50u);
  EXPECT_EQ(config.hidden_size, 8u);
  EXPECT_EQ(config.num_hidden_layers, 1u);
  EXPECT_EQ(config.num_attention_heads, 2u);
  EXPECT_EQ(config.intermediate_size, 8u);
  EXPECT_EQ(config.max_length(), 16u);
  EXPECT_EQ(json_of(folder_.path("model/config.json")).at("architectures"), json::array({"BertForMaskedLM"}));

  output_of(tiny_bert("again"));
  output_of(tiny_bert("other", "--seed 1 --cased"));
  EXPECT_EQ(weights_of("again"), weights_of("model"));
  EXPECT_NE(weights_of("other"), weights_of("model"));
  EXPECT_TRUE(Tokenizer::from_folder(folder_.path("other")).token_to_id("T"));
}

TEST_F(PretrainingTest, TheModelLearnsTheLanguage) {
  make_model();
  const std::string metrics = folder_.path("metrics"), shown = folder_.path("shown.json");
  const std::string output = output_of(pretrain("out", "--steps 300 --evaluate-every 100 --metrics " +
                                                           metrics + " --report " + shown + " 2>/dev/null"));
  EXPECT_TRUE(output.starts_with("47 pieces to train on, 3 held out, 50 tokens, ")) << output;
  const json report = json_of(metrics);
  EXPECT_EQ(report.at("steps"), 300);
  EXPECT_EQ(report.at("loss").size(), 300u);
  EXPECT_NEAR(report.at("before").at("loss"), std::log(50), 0.1) << "as bad as guessing";
  EXPECT_LT(report.at("after").at("loss"), report.at("before").at("loss").get<double>() - 1);
  EXPECT_EQ(report.at("before").at("hidden_tokens"), report.at("after").at("hidden_tokens"));
  ASSERT_EQ(report.at("evaluations").size(), 3u);
  EXPECT_EQ(report.at("evaluations").at(1).at("step"), 200);
  EXPECT_EQ(report.at("evaluations").at(2).at("loss"), report.at("after").at("loss"));
  const json run = json_of(shown).at("runs").at(0), tokens = run.at("attention").at(0).at("keys");
  ASSERT_FALSE(run.at("predictions").empty());
  for (const json& prediction : run.at("predictions")) {  // this draw keeps and replaces none
    const std::string place = prediction.at("text");
    EXPECT_EQ(tokens.at(std::stoul(place.substr(std::string("token ").size()))), "[MASK]") << place;
  }

  for (const char* file : {"tokenizer.json", "tokenizer_config.json", "vocab.txt", "config.json"})
    EXPECT_EQ(read_bytes(folder_.path("out/") + file), read_bytes(folder_.path("model/") + file)) << file;
  EXPECT_NE(weights_of("out"), weights_of("model"));
}

TEST_F(PretrainingTest, PiecesAreShortAtFirst) {
  make_model();
  const std::string log = folder_.path("log"), metrics = folder_.path("metrics");
  const auto tokens_of_steps = [&](const std::string& length) {
    std::filesystem::remove(log);
    output_of(pretrain("out", "--steps 8 --evaluate-every 4 --short-length " + length + " --log " + log +
                                  " --metrics " + metrics + " 2>/dev/null"));
    std::vector<std::size_t> tokens;
    std::istringstream lines(read_bytes(log));
    std::string line;
    std::getline(lines, line);  // about the run
    while (std::getline(lines, line)) tokens.push_back(json::parse(line).at("tokens"));
    return tokens;
  };
  const auto whole = tokens_of_steps("16"), cut = tokens_of_steps("8");
  ASSERT_EQ(whole.size(), 8u);
  ASSERT_EQ(cut.size(), 8u);
  for (std::size_t step = 0; step < 8; ++step) {  // each part has a [CLS] and a [SEP] of its own
    if (step < 4) {
      EXPECT_GT(cut[step], whole[step]) << step;
    } else {
      EXPECT_EQ(cut[step], whole[step]) << step;
    }
  }
  const json evaluations = json_of(metrics).at("evaluations");
  ASSERT_EQ(evaluations.size(), 2u);
  EXPECT_EQ(evaluations.at(0).at("max_length"), 8);
  EXPECT_EQ(evaluations.at(1).at("max_length"), 16);
  output_of(
      pretrain("out", "--steps 8 --evaluate-every 2 --short-length 4 --metrics " + metrics + " 2>/dev/null"));
  std::vector<int> lengths;
  const json some = json_of(metrics).at("evaluations");
  for (const json& one : some) lengths.push_back(one.at("max_length"));
  EXPECT_EQ(lengths, (std::vector<int>{4, 4, 8, 16}));
}

TEST_F(PretrainingTest, TheSameCommandGivesTheSameBytes) {
  make_model();
  const auto run = [&](const std::string& out, const std::string& more) {
    output_of(pretrain(out, "--steps 5 " + more + " 2>/dev/null"));
    return weights_of(out);
  };
  const std::string weights = run("one", "");
  EXPECT_EQ(run("two", "--evaluate-every 2"), weights);
  EXPECT_NE(run("three", "--seed 1"), weights);
}

TEST_F(PretrainingTest, AResumedRunGivesTheBytesOfAnUnbrokenOne) {
  make_model();
  const std::string steps = "--steps 3000 --short-length 8 --checkpoint " + folder_.path("checkpoint");
  ASSERT_EQ(run_program(pretrain("unbroken", "--steps 3000 --short-length 8 >/dev/null 2>&1")).exit_code, 0);
  const std::string log = folder_.path("log");
  const ProgramResult broken = xgrad_tests::run_command(
      std::string(XGRAD_PROGRAMS_DIR "/") + pretrain("out", steps + " --log " + log) +
      " 2>&1 >/dev/null & run=$!; until [ -s " + log + " ]; do sleep 0.01; done; kill -TERM $run; wait $run");
  EXPECT_EQ(broken.exit_code, 128 + SIGTERM);
  EXPECT_NE(broken.output.find("interrupted after step "), std::string::npos) << broken.output;
  EXPECT_NE(broken.output.find("is saved in " + folder_.path("out") + "\n"), std::string::npos)
      << broken.output;
  EXPECT_NE(weights_of("out"), weights_of("unbroken"));
  const ProgramResult resumed = run_program(pretrain("out", steps + " --resume 2>&1 >/dev/null"));
  EXPECT_EQ(resumed.exit_code, 0);
  EXPECT_TRUE(resumed.output.starts_with("resumed after step ")) << resumed.output;
  EXPECT_EQ(weights_of("out"), weights_of("unbroken"));
  EXPECT_EQ(error_of(pretrain("out", steps + " --resume --max-length 12")),
            "pretrain: " + folder_.path("checkpoint") +
                ": --max-length must be as in the checkpoint, '16', got '12'\n");
}

/// Names and bytes of the files of a folder.
std::map<std::string, std::string> files_of(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files[entry.path().filename().string()] = read_bytes(entry.path().string());
  return files;
}

// A limit that only some of the files of a folder exceed stands for a disk that becomes full.
TEST_F(PretrainingTest, AFailureLeavesAllFilesOfTheModelBefore) {
  const auto limited = [](const std::string& command, std::size_t bytes) {
    return xgrad_tests::run_command("prlimit --fsize=" + std::to_string(bytes) + " " XGRAD_PROGRAMS_DIR "/" +
                                    command + " 2>&1 >/dev/null");
  };
  const auto smaller = [](const std::string& folder) {
    return std::min(std::filesystem::file_size(folder + "/tokenizer.json"),
                    std::filesystem::file_size(folder + "/model.safetensors"));
  };
  std::string text;
  for (int i = 100; i < 400; ++i) text += std::to_string(i) + " follows " + std::to_string(i) + ".\n\n";
  folder_.write("text", text);
  const std::string model = folder_.path("model"), out = folder_.path("out");
  // a model with large weights, and one with a large vocabulary
  for (const std::string size :
       {"--hidden-size 32 --intermediate-size 32", "--hidden-size 2 --intermediate-size 1"}) {
    const auto tiny = [&](const std::string& folder, const std::string& more) {
      return "tiny_bert " + folder + " --text " + folder_.path("text") +
             " --layers 1 --heads 2 --vocab-size 300 --max-length 16 " + size + more;
    };
    output_of(tiny(model, ""));
    const auto before = files_of(model);
    ProgramResult result = limited(tiny(model, " --cased --seed 1"), smaller(model));
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_TRUE(result.output.starts_with("tiny_bert: " + model + "/")) << result.output;
    EXPECT_TRUE(result.output.ends_with(": cannot be written: File too large\n")) << result.output;
    EXPECT_EQ(files_of(model), before) << size;

    output_of(tiny(out, " --cased"));
    const auto old = files_of(out);
    result = limited(pretrain("out", "--steps 1"), smaller(model));
    EXPECT_EQ(result.exit_code, 1);
    // the weights' size is known before the training, the vocabulary's is not
    if (size.starts_with("--hidden-size 32")) {
      EXPECT_TRUE(result.output.starts_with("pretrain: " + out + ": needs ")) << result.output;
    } else {
      EXPECT_TRUE(result.output.ends_with(": cannot be written: File too large\n")) << result.output;
    }
    EXPECT_EQ(files_of(out), old) << size;
  }
}

TEST_F(PretrainingTest, RefusesWhatCannotBe) {
  make_model();
  const std::string missing = folder_.path("missing"), tiny = "tiny_bert " + folder_.path("new ");
  EXPECT_EQ(error_of("tiny_bert", 2), "tiny_bert: folder is required; --help lists the arguments\n");
  EXPECT_EQ(error_of(tiny + "--max-length 2", 2),
            "tiny_bert: --max-length: must be a number in [3, 4096], got 2; --help lists the arguments\n");
  EXPECT_EQ(error_of(tiny + "--heads 5"), "tiny_bert: --heads must divide --hidden-size, got 5 and 64\n");
  EXPECT_EQ(error_of(tiny + "--text " + missing),
            "tiny_bert: " + missing + ": cannot open: No such file or directory\n");
  const std::string blank = folder_.write("blank", " \n\n"), bytes = folder_.write("bytes", "a\nb\xE9\n");
  EXPECT_EQ(error_of(tiny + "--text " + blank),
            "tiny_bert: " + blank + ": must hold text, got blank lines or none\n");
  EXPECT_EQ(error_of(tiny + "--text " + bytes),
            "tiny_bert: " + bytes + ":2: a line must be valid UTF-8, got \"b\\xE9\"\n");
  EXPECT_FALSE(std::filesystem::exists(folder_.path("new")));

  EXPECT_EQ(error_of("pretrain " + folder_.path("model"), 2),
            "pretrain: --save is required; --help lists the arguments\n");
  EXPECT_EQ(error_of("pretrain " + missing + " --save " + missing),
            "pretrain: " + missing + ": must be the folder of a model, got no such path\n");
  EXPECT_EQ(error_of(pretrain("out", "--max-length 17")),
            "pretrain: --max-length must be at most 16, as the model's, got 17\n");
  folder_.write("file", "");
  EXPECT_EQ(error_of(pretrain("file", "")),
            "pretrain: " + folder_.path("file") + ": cannot be made a folder: Not a directory\n");
  EXPECT_EQ(error_of(pretrain("text", ""), 2), "pretrain: --save " + folder_.path("text") +
                                                   " would overwrite the input --text " +
                                                   folder_.path("text") + "; --help lists the arguments\n");
  EXPECT_EQ(error_of("tiny_bert " + folder_.path("text") + " --text " + folder_.path("text"), 2),
            "tiny_bert: folder " + folder_.path("text") + " would overwrite the input --text " +
                folder_.path("text") + "; --help lists the arguments\n");
  const std::string one = folder_.write("one", "a cat\n");
  EXPECT_EQ(
      error_of("pretrain " + folder_.path("model") + " --save " + folder_.path("out") + " --text " + one),
      "pretrain: the text must be two pieces or more, one of them held out, got 1\n");
  EXPECT_FALSE(std::filesystem::exists(folder_.path("out")));
  folder_.write("model/merges.txt", "other");
  EXPECT_TRUE(error_of(tiny_bert("model"))
                  .starts_with("tiny_bert: " + folder_.path("model/merges.txt") + ": is of another model, "));
}

}  // namespace programs_test
