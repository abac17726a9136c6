#pragma once

// A language of sentences such as "my shoes are small, my feet are big.": six owners, eight nouns that each
// have an adjective of their own, one or two clauses of the same owner, each clause in one of two word
// orders. A hidden word is determined by exactly one other word: a noun from its adjective, an adjective from
// its noun, and, where there are two clauses, an owner from the other owner.

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <xgrad/train/vocabulary.hpp>

namespace apps {

enum class Hidden { noun, adjective, owner };
inline constexpr std::array<const char*, 3> hidden_names{"noun", "adjective", "owner"};

/// A word of a sentence that can be hidden, and the other word that determines it, by their positions.
struct Cloze {
  std::size_t hidden;
  std::size_t clue;
  Hidden kind;
};

struct Sentence {
  std::vector<std::string> words;
  std::vector<Cloze> clozes;
};

namespace language {

struct Thing {
  const char* noun;
  const char* adjective;
};

inline constexpr std::array<const char*, 6> owners{"my", "your", "his", "her", "our", "their"};
inline constexpr std::array<Thing, 8> things{{{"shoes", "small"},
                                              {"feet", "big"},
                                              {"gloves", "warm"},
                                              {"hats", "red"},
                                              {"boots", "muddy"},
                                              {"hands", "cold"},
                                              {"eyes", "green"},
                                              {"socks", "thick"}}};

/// Adds "my shoes are small" or, inverted, "small are my shoes". Returns the position of the owner.
inline std::size_t add_clause(Sentence& sentence, const char* owner, const Thing& thing, bool inverted) {
  const std::size_t start = sentence.words.size();
  const std::size_t owner_at = start + (inverted ? 2 : 0);
  const std::size_t noun_at = owner_at + 1, adjective_at = start + (inverted ? 0 : 3);
  sentence.words.resize(start + 4, "are");
  sentence.words[owner_at] = owner;
  sentence.words[noun_at] = thing.noun;
  sentence.words[adjective_at] = thing.adjective;
  sentence.clozes.push_back({noun_at, adjective_at, Hidden::noun});
  sentence.clozes.push_back({adjective_at, noun_at, Hidden::adjective});
  return owner_at;
}

}  // namespace language

inline constexpr std::size_t longest_sentence = 8;

/// Every sentence of the language, in a fixed order.
inline std::vector<Sentence> all_sentences() {
  std::vector<Sentence> sentences;
  for (const char* owner : language::owners) {
    for (const language::Thing& first : language::things) {
      for (const bool inverted : {false, true}) {
        Sentence one;
        language::add_clause(one, owner, first, inverted);
        sentences.push_back(one);
        for (const language::Thing& second : language::things) {
          if (first.noun == second.noun) continue;
          for (const bool second_inverted : {false, true}) {
            Sentence two;
            const std::size_t here = language::add_clause(two, owner, first, inverted);
            const std::size_t there = language::add_clause(two, owner, second, second_inverted);
            two.clozes.push_back({here, there, Hidden::owner});
            two.clozes.push_back({there, here, Hidden::owner});
            sentences.push_back(two);
          }
        }
      }
    }
  }
  return sentences;
}

/// The words of the notebook's "my shoes are small, my feet are big."
inline std::vector<std::string> notebook_sentence() {
  return {"my", "shoes", "are", "small", "my", "feet", "are", "big"};
}

inline constexpr std::int64_t pad_id = 0, mask_id = 1;

/// Padding, the mask, and the words of the language.
inline xgrad::Vocabulary vocabulary_of_language() {
  std::vector<std::string> words{"[PAD]", "[MASK]", "are"};
  words.insert(words.end(), language::owners.begin(), language::owners.end());
  for (const language::Thing& thing : language::things) {
    words.emplace_back(thing.noun);
    words.emplace_back(thing.adjective);
  }
  return xgrad::Vocabulary(std::move(words), "");
}

}  // namespace apps
