#include <algorithm>

#include <gtest/gtest.h>

#include <xgrad/base/error.hpp>
#include <xgrad/tokenizers/word_piece_trainer.hpp>

#include "../expect_error.hpp"

namespace word_piece_trainer_test {

using xgrad::ValueError, xgrad::tokenizers::train_word_piece, xgrad::tokenizers::WordPieceTrainerOptions;
using xgrad_tests::message_of;

using Tokens = std::vector<std::string>;

/// The vocabulary without special tokens.
Tokens trained(const Tokens& texts, WordPieceTrainerOptions options = {}) {
  options.special_tokens.clear();
  return train_word_piece(texts, options);
}

/// Sennrich's words (arXiv:1508.07909, section 3.2).
const Tokens words{"low low low low low lower lower newest newest newest newest newest newest",
                   "widest widest widest"};
const Tokens alphabet{"d", "e",   "i",   "l",   "n",   "o",   "r",   "s",   "t",
                      "w", "##d", "##e", "##i", "##o", "##r", "##s", "##t", "##w"};

Tokens with(Tokens tokens, const Tokens& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
  return tokens;
}

TEST(WordPieceTrainerTest, MergesTheMostFrequentPairsAndOfEqualOnesTheFirst) {
  // By hand: (##e, ##s) and (##s, ##t) are 9, (l, ##o) and (##o, ##w) 7, (n, ##e), (##e, ##w) and
  // (##w, ##est) 6, (w, ##i), (##i, ##d) and (##d, ##est) 3, (low, ##e) and (##e, ##r) 2.
  EXPECT_EQ(trained(words), with(alphabet, {"##es", "##est", "lo", "low", "ne", "##west", "newest", "wi",
                                            "##dest", "widest", "##er", "lower"}));
}

TEST(WordPieceTrainerTest, PairsThatOverlapAreCountedOnceTheyAreMerged) {
  EXPECT_EQ(trained({"aaaa aaaa"}), (Tokens{"a", "##a", "##aa", "aaa", "aaaa"}));
  EXPECT_EQ(trained({"aaa aaa"}), (Tokens{"a", "##a", "aa", "aaa"}));
}

TEST(WordPieceTrainerTest, EndsAtTheVocabularySizeOrBelowTheFrequency) {
  const Tokens two = with(alphabet, {"##es", "##est"});
  EXPECT_EQ(trained(words, {.vocab_size = 20}), two);
  EXPECT_EQ(trained(words, {.min_frequency = 9}), two);
  EXPECT_EQ(trained(words, {.min_frequency = 8}), two);
  EXPECT_EQ(trained(words, {.min_frequency = 7}), with(two, {"lo", "low"}));
  EXPECT_EQ(trained(words, {.vocab_size = 3}), alphabet) << "the alphabet is always whole";
  EXPECT_EQ(trained(words, {.min_frequency = 10}), alphabet);
  EXPECT_EQ(trained(words, {.min_frequency = UINT64_MAX}), alphabet);
  EXPECT_EQ(trained({"ab"}), (Tokens{"a", "b", "##b"})) << "once is too rare";
  EXPECT_EQ(trained({"ab"}, {.min_frequency = 0}), (Tokens{"a", "b", "##b", "ab"}));
}

TEST(WordPieceTrainerTest, SpecialTokensAreFirst) {
  const Tokens specials{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  EXPECT_EQ(train_word_piece(Tokens{"ab ab"}), with(specials, {"a", "b", "##b", "ab"}));
  EXPECT_EQ(train_word_piece(Tokens{"ab ab"}, {.special_tokens = {"b", "<pad>", "b"}}),
            (Tokens{"b", "<pad>", "a", "##b", "ab"}));
}

TEST(WordPieceTrainerTest, TheAlphabetHasTheMostFrequentCharacters) {
  // x is left out of its words, so that a and ##b are side by side.
  EXPECT_EQ(trained({"axb axb a b"}, {.limit_alphabet = 2}), (Tokens{"a", "b", "##b", "ab"}));
  EXPECT_EQ(trained({"dcba"}, {.limit_alphabet = 2}), (Tokens{"a", "b", "##a", "##b"}))
      << "of equally frequent ones the first";
  EXPECT_EQ(trained({"x x ab"}, {.limit_alphabet = 1}), Tokens{"x"});
  EXPECT_EQ(trained({"a b"}, {.limit_alphabet = 0}), Tokens{});
}

TEST(WordPieceTrainerTest, TextsAreNormalisedAndSplitAsTheTokenizerDoes) {
  EXPECT_EQ(trained({"\tÉté été.", "ETE\n"}), (Tokens{".", "e", "t", "##e", "##t", "et", "ete"}));
  EXPECT_EQ(trained({"Été été"}, {.lowercase = false}), (Tokens{"t", "É", "é", "##t", "##é", "##té"}))
      << "capitals and accents stay";
  EXPECT_EQ(trained({std::string(101, 'x') + " ab ab"}), (Tokens{"a", "b", "##b", "ab"}))
      << "too long a word";
  EXPECT_EQ(trained({"黑猫 a.a a.a"}), (Tokens{".", "a", "猫", "黑"})) << "each of these is a word";
}

TEST(WordPieceTrainerTest, HowTheTextIsCutMakesNoDifference) {
  Tokens cut{"widest", "newest newest low", "low low lower newest widest", "newest newest newest low",
             "low lower widest"};
  EXPECT_EQ(trained(cut), trained(words));
  std::ranges::reverse(cut);
  EXPECT_EQ(trained(cut), trained(words));
}

TEST(WordPieceTrainerTest, RefusesWhatIsNoText) {
  const auto error = [](const Tokens& texts) {
    return message_of<ValueError>([&] { train_word_piece(texts); });
  };
  for (const Tokens& none : {Tokens{}, Tokens{""}, Tokens{" \n", "\t"}})
    EXPECT_EQ(error(none), "train_word_piece: texts must have words, got none");
  EXPECT_EQ(error({"a", "b\xE9"}), "train_word_piece: texts[1] must be UTF-8, got an invalid byte at 1");
}

}  // namespace word_piece_trainer_test
