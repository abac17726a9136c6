// The word classifier of train_syllables: its alphabet and its file.

#include "../apps/word_classifier.hpp"

#include <gtest/gtest.h>

#include "expect_error.hpp"
#include "files.hpp"

namespace {

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
}

}  // namespace
