// The language of train_toy_encoder: a hidden word is determined by its clue.

#include "../../apps/toy_language.hpp"

#include <map>
#include <set>

#include <gtest/gtest.h>

namespace toy_language_test {

using namespace apps;
using Words = std::vector<std::string>;

TEST(ToyLanguageTest, HasEverySentenceOnce) {
  const std::vector<Sentence> sentences = all_sentences();
  EXPECT_EQ(sentences.size(), 6 * 8 * 2 + 6 * 8 * 7 * 4u)
      << "of one clause, and of two about different things";
  std::set<Words> different;
  std::map<std::size_t, std::size_t> lengths;
  for (const Sentence& sentence : sentences) {
    different.insert(sentence.words);
    ++lengths[sentence.words.size()];
  }
  EXPECT_EQ(different.size(), sentences.size());
  EXPECT_EQ(lengths, (std::map<std::size_t, std::size_t>{{4, 96}, {8, 1344}}));
  EXPECT_EQ(longest_sentence, 8u);
  for (const Words& words : {notebook_sentence(), Words{"small", "are", "my", "shoes"},
                             Words{"cold", "are", "our", "hands", "our", "socks", "are", "thick"}})
    EXPECT_TRUE(different.contains(words)) << words[0];
}

TEST(ToyLanguageTest, AClueDeterminesTheHiddenWord) {
  std::map<std::string, std::string> partner;  // of nouns and adjectives
  for (const language::Thing& thing : language::things) {
    partner[thing.noun] = thing.adjective;
    partner[thing.adjective] = thing.noun;
  }
  const std::set<std::string> owners(language::owners.begin(), language::owners.end());
  for (const Sentence& sentence : all_sentences()) {
    const bool two = sentence.words.size() == 8;
    EXPECT_EQ(sentence.clozes.size(), two ? 6u : 2u);
    std::map<Hidden, std::size_t> kinds;
    std::set<std::size_t> hidden;
    for (const Cloze& cloze : sentence.clozes) {
      ++kinds[cloze.kind];
      hidden.insert(cloze.hidden);
      const std::string &word = sentence.words.at(cloze.hidden), &clue = sentence.words.at(cloze.clue);
      EXPECT_NE(cloze.hidden, cloze.clue);
      if (cloze.kind == Hidden::owner) {
        EXPECT_TRUE(owners.contains(word)) << word;
        EXPECT_EQ(word, clue);
      } else {
        EXPECT_EQ(partner.at(clue), word);
        EXPECT_EQ(cloze.hidden / 4, cloze.clue / 4) << "in one clause";
        const bool noun = word == "shoes" || word == "feet" || word == "gloves" || word == "hats" ||
                          word == "boots" || word == "hands" || word == "eyes" || word == "socks";
        EXPECT_EQ(noun, cloze.kind == Hidden::noun) << word;
      }
    }
    EXPECT_EQ(hidden.size(), sentence.clozes.size()) << "each word once";
    EXPECT_EQ(kinds[Hidden::noun], two ? 2u : 1u);
    EXPECT_EQ(kinds[Hidden::adjective], two ? 2u : 1u);
  }
  EXPECT_STREQ(hidden_names[static_cast<std::size_t>(Hidden::noun)], "noun");
  EXPECT_STREQ(hidden_names[static_cast<std::size_t>(Hidden::adjective)], "adjective");
  EXPECT_STREQ(hidden_names[static_cast<std::size_t>(Hidden::owner)], "owner");
}

TEST(ToyLanguageTest, TheVocabularyHasPaddingTheMaskAndAllWords) {
  const xgrad::Vocabulary vocabulary = vocabulary_of_language();
  EXPECT_EQ(vocabulary.size(), 3 + 6 + 2 * 8u);
  EXPECT_EQ(vocabulary.token(pad_id), "[PAD]");
  EXPECT_EQ(vocabulary.token(mask_id), "[MASK]");
  for (const Sentence& sentence : all_sentences())
    for (const std::string& word : sentence.words) ASSERT_GT(vocabulary.id(word), mask_id) << word;
}

}  // namespace toy_language_test
