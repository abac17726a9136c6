// The word classifier of train_syllables: its alphabet and its file.

#include "../../apps/models/word_classifier.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include <xgrad/files.hpp>
#include <xgrad/xgrad.hpp>

#include "expect_error.hpp"
#include "files.hpp"

namespace word_classifier_test {

using namespace apps;

WordClassifier classifier() {
  xgrad::manual_seed(1);
  const Alphabet alphabet({{"caf\xC3\xA9", "2"}, {"tea", "1"}});
  return WordClassifier(alphabet, {"1", "2", "3"}, {.d_model = 8, .heads = 2, .d_ff = 8});
}

TEST(AlphabetTest, HasTheLettersOfTheWords) {
  const Alphabet alphabet({{"abca", "1"}, {"b", "2"}});
  EXPECT_EQ(alphabet.letters(), U"abc");
  EXPECT_EQ(alphabet.size(), 6u);
  EXPECT_EQ(alphabet.positions(), 5u);
  EXPECT_EQ(alphabet.encode("cAx"), (std::vector<std::int64_t>{1, 5, 3, 2}))
      << "a capital is its small letter";
  EXPECT_EQ(alphabet.encode("abcabc").size(), 5u) << "longer words are cut";
  const Alphabet again(alphabet.letters(), alphabet.longest());
  EXPECT_EQ(again.encode("cAx"), alphabet.encode("cAx"));
}

TEST(AlphabetTest, LettersAreThoseOfAnyScript) {
  const Alphabet alphabet({{"黑猫", "2"}, {"猫", "1"}});
  EXPECT_EQ(alphabet.letters(), U"猫黑") << "in the order of their numbers";
  EXPECT_EQ(alphabet.longest(), 2u);
  EXPECT_EQ(alphabet.encode("黑猫"), (std::vector<std::int64_t>{1, 4, 3}));
  EXPECT_EQ(alphabet.encode("猫狗"), (std::vector<std::int64_t>{1, 3, 2}));
  std::string longer;
  for (int i = 0; i < 50; ++i) longer += "猫";
  const Alphabet cut(std::vector<LabelledWord>{{longer, "1"}});
  EXPECT_EQ(cut.longest(), 40u);
  EXPECT_EQ(cut.encode(longer).size(), 41u);
}

TEST(AlphabetTest, CapitalsOfTheWordsAreTheirOwnLetters) {
  const Alphabet alphabet(std::vector<LabelledWord>{{"aAZz", "1"}});
  EXPECT_EQ(alphabet.letters(), U"AZaz");
  EXPECT_EQ(alphabet.encode("aAzZ"), (std::vector<std::int64_t>{1, 5, 3, 6, 4}));
  const Alphabet small(std::vector<LabelledWord>{{"az{`", "1"}});
  EXPECT_EQ(small.encode("AZ[@"), (std::vector<std::int64_t>{1, 4, 5, 2, 2})) << "only A to Z are capitals";
}

TEST(WordClassifierTest, ItsModelReadsTheClassToken) {
  const WordClassifier made = classifier();
  const xgrad::ToyEncoderConfig& config = made.model().config();
  EXPECT_EQ(config.vocab_size, made.alphabet().size());
  EXPECT_EQ(config.max_len, 5u) << "four letters and the class token";
  EXPECT_EQ(config.classes, 3u);
  EXPECT_EQ(config.pad_id, 0);
  EXPECT_EQ(config.pooling, xgrad::Pooling::first);
  EXPECT_EQ(made.ids("tea").size(), 4u);
}

TEST(WordClassifierTest, ItsAnswerIsTheMostProbableClass) {
  const WordClassifier made = classifier();
  made.eval();
  const xgrad::Array<float> scores = made.model().class_logits(made.ids("tea")).value();
  double total = 0;
  std::size_t best = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    total += std::exp(static_cast<double>(scores(0, i)));
    if (scores(0, i) > scores(0, best)) best = i;
  }
  const WordClassifier::Answer answer = made.answer("tea");
  EXPECT_EQ(answer.label, made.classes()[best]);
  EXPECT_NEAR(answer.probability, std::exp(static_cast<double>(scores(0, best))) / total, 1e-6);
}

TEST(WordClassifierTest, AnswersArePrintedInColumns) {
  testing::internal::CaptureStdout();
  print_answer("tea", {"1", 0.98765});
  print_answer("黑猫", {"2", 1});
  print_answer(std::string(21, 'x'), {"2", 0.5});
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "  tea                  1  (98.8 %)\n"
            "  黑猫                   2  (100.0 %)\n"
            "  xxxxxxxxxxxxxxxxxxxxx 2  (50.0 %)\n");
}

TEST(WordClassifierTest, ItsFileGivesTheSameAnswers) {
  const xgrad_tests::TemporaryFolder folder;
  const std::string path = folder.path("model.safetensors");
  const WordClassifier saved = classifier();
  saved.save(path);
  const WordClassifier loaded = WordClassifier::load(path);
  EXPECT_EQ(loaded.classes(), saved.classes());
  for (const char* word : {"tea", "caf\xC3\xA9", "face", "x", ""}) {
    EXPECT_EQ(loaded.answer(word).label, saved.answer(word).label) << word;
    EXPECT_EQ(loaded.answer(word).probability, saved.answer(word).probability) << word;
  }
}

TEST(WordClassifierTest, RefusesAFileThatIsNotItsOwn) {
  const xgrad_tests::TemporaryFolder folder;
  const std::string path = folder.path("model.safetensors");
  const WordClassifier saved = classifier();
  const auto message = [&](const char* key, const char* value) {
    saved.save(path);
    xgrad::Metadata metadata = xgrad::SafetensorsFile(path).metadata();
    metadata[key] = value;
    save_safetensors(saved.model().state_dict(), path, metadata);
    const std::string text = xgrad_tests::message_of<xgrad::FileError>([&] { WordClassifier::load(path); });
    return text.substr(std::min(path.size(), text.size()));
  };
  EXPECT_EQ(message("task", "tags"), ": the metadata \"task\" must be 'word classes'");
  EXPECT_EQ(message("letters", "ab\n"), ": the metadata \"letters\" must hold a letter a line");
  EXPECT_EQ(message("longest", "41"), ": the metadata \"longest\" must be a number of at most 40");
  EXPECT_NE(message("classes", "1\n2\n").find("class_head.weight"), std::string::npos);
  EXPECT_EQ(message("classes", "1\n2"), message("classes", "1\n2\n"));
}

}  // namespace word_classifier_test
