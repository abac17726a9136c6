#pragma once

// A language of sentences such as "my shoes are small, my feet are big.": six owners, eight nouns that each
// have an adjective of their own, one or two clauses of the same owner, each clause in one of two word
// orders. A hidden word can be told from exactly one other word: a noun from its adjective, an adjective from
// its noun, and, where there are two clauses, an owner from the other owner.

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace examples {

enum class Hidden { noun, adjective, owner };
inline constexpr std::array<const char*, 3> hidden_names{"noun", "adjective", "owner"};

/// A word of a sentence that can be hidden, and the word that it can be told from.
struct Riddle {
  std::size_t hidden;
  std::size_t clue;
  Hidden kind;
};

struct Sentence {
  std::vector<std::string> words;
  std::vector<Riddle> riddles;
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

/// Adds "my shoes are small" or, inverted, "small are my shoes". Returns where the owner stands.
inline std::size_t add_clause(Sentence& sentence, const char* owner, const Thing& thing, bool inverted) {
  const std::size_t start = sentence.words.size();
  const std::size_t owner_at = start + (inverted ? 2 : 0);
  const std::size_t noun_at = owner_at + 1, adjective_at = start + (inverted ? 0 : 3);
  sentence.words.resize(start + 4, "are");
  sentence.words[owner_at] = owner;
  sentence.words[noun_at] = thing.noun;
  sentence.words[adjective_at] = thing.adjective;
  sentence.riddles.push_back({noun_at, adjective_at, Hidden::noun});
  sentence.riddles.push_back({adjective_at, noun_at, Hidden::adjective});
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
            two.riddles.push_back({here, there, Hidden::owner});
            two.riddles.push_back({there, here, Hidden::owner});
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

/// The numbers of words: 0 is padding, 1 the mask.
class Vocabulary {
 public:
  static constexpr std::int64_t pad = 0, mask = 1;

  Vocabulary() : words_{"[PAD]", "[MASK]", "are"} {
    for (const char* owner : language::owners) words_.push_back(owner);
    for (const language::Thing& thing : language::things) {
      words_.push_back(thing.noun);
      words_.push_back(thing.adjective);
    }
  }

  std::size_t size() const { return words_.size(); }
  const std::string& word(std::int64_t id) const { return words_.at(static_cast<std::size_t>(id)); }

  std::int64_t id(std::string_view word) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (words_[i] == word) return static_cast<std::int64_t>(i);
    }
    throw std::out_of_range("the language has no word '" + std::string(word) + "'");
  }

 private:
  std::vector<std::string> words_;
};

}  // namespace examples
