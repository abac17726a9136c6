#include "word_piece_trainer.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "../base/error.hpp"
#include "detail/models/bert_words.hpp"
#include "detail/models/token_table.hpp"
#include "detail/normalizers/normalizer.hpp"

namespace xgrad::tokenizers {
namespace {

namespace unicode = detail::unicode;
using xgrad::detail::fail;

constexpr std::string_view continuation = "##";

using TokenId = std::uint32_t;  // the id of its token
using Pair = std::uint64_t;     // two pieces side by side, ordered by the first, then by the second

Pair pair_of(TokenId first, TokenId second) { return Pair{first} << 32 | second; }
TokenId first_of(Pair pair) { return static_cast<TokenId>(pair >> 32); }
TokenId second_of(Pair pair) { return static_cast<TokenId>(pair); }

using WordCounts = std::unordered_map<std::string, std::int64_t, detail::StringHash, std::equal_to<>>;
using CharacterCounts = std::map<char32_t, std::int64_t>;

/// Calls on_character(character, bytes) for each.
template <class OnCharacter>
void for_each_character(std::string_view word, OnCharacter&& on_character) {
  for (std::size_t length = 0; !word.empty(); word.remove_prefix(length)) {
    length = unicode::first_length(word);
    on_character(unicode::first_of(word), word.substr(0, length));
  }
}

constexpr std::size_t longest_word = 100;  // in characters, as max_input_chars_per_word

WordCounts counted_words(std::span<const std::string> texts, bool lowercase) {
  const detail::BertNormalizer normalizer({.strip_accents = lowercase, .lowercase = lowercase});
  detail::TextBuffer buffer;
  WordCounts counts;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (const std::size_t place = unicode::find_invalid_utf8(texts[i]); place != std::string::npos)
      fail<ValueError>("train_word_piece: texts[", i, "] must be UTF-8, got an invalid byte at ", place);
    const std::string_view text = normalizer(texts[i], 0, buffer).text;
    detail::for_each_bert_word(text, [&](std::size_t begin, std::size_t end, std::size_t characters) {
      if (characters > longest_word) return true;  // which a tokenizer takes for unknown
      const std::string_view word = text.substr(begin, end - begin);
      const auto found = counts.find(word);
      ++(found != counts.end() ? found : counts.emplace(word, 0).first)->second;
      return true;
    });
  }
  if (counts.empty()) fail<ValueError>("train_word_piece: texts must have words, got none");
  return counts;
}

/// The most frequent characters.
std::set<char32_t> alphabet_of(const WordCounts& words, std::size_t limit) {
  CharacterCounts counts;
  for (const auto& [word, count] : words)
    for_each_character(word, [&, many = count](char32_t character, auto) { counts[character] += many; });
  std::vector<std::pair<char32_t, std::int64_t>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted, std::ranges::greater(), &std::pair<char32_t, std::int64_t>::second);
  sorted.resize(std::min(limit, sorted.size()));
  std::set<char32_t> kept;
  for (const auto& entry : sorted) kept.insert(entry.first);
  return kept;
}

/// The tokens by their ids.
class Vocabulary {
 public:
  /// The id of a token, which is added if it is new.
  TokenId add(std::string_view token) {
    const auto [entry, is_new] = ids_.try_emplace(std::string(token), static_cast<TokenId>(tokens_.size()));
    if (is_new) tokens_.emplace_back(token);
    return entry->second;
  }

  /// The two as one token.
  TokenId add(Pair pair) {
    std::string_view second = tokens_[second_of(pair)];
    if (second.starts_with(continuation)) second.remove_prefix(continuation.size());
    return add(tokens_[first_of(pair)] + std::string(second));
  }

  std::size_t size() const { return tokens_.size(); }
  std::vector<std::string> take() { return std::move(tokens_); }

 private:
  std::unordered_map<std::string, TokenId> ids_;
  std::vector<std::string> tokens_;
};

/// Replaces the pair in a word by the piece `merged`, and calls on_change(pair, number) for each other pair
/// that comes (1) or goes (-1).
template <class OnChange>
void merge(std::vector<TokenId>& word, Pair pair, TokenId merged, OnChange&& on_change) {
  const TokenId first = first_of(pair), second = second_of(pair);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < word.size(); ++i, ++kept) {
    if (i + 1 == word.size() || word[i] != first || word[i + 1] != second) {
      word[kept] = word[i];
      continue;
    }
    if (kept > 0) {
      on_change(pair_of(word[kept - 1], first), -1);
      on_change(pair_of(word[kept - 1], merged), 1);
    }
    if (i + 2 < word.size()) {
      on_change(pair_of(second, word[i + 2]), -1);
      on_change(pair_of(merged, word[i + 2]), 1);
    }
    word[kept] = merged;
    ++i;
  }
  word.resize(kept);
}

/// Words as pieces, and the pairs in them, the most frequent one first.
class Merger {
 public:
  void add_word(std::vector<TokenId> pieces, std::int64_t count) {
    const auto number = static_cast<std::uint32_t>(words_.size());
    for (std::size_t i = 1; i < pieces.size(); ++i)
      change(pair_of(pieces[i - 1], pieces[i]), 1, count, number);
    words_.push_back({std::move(pieces), count});
  }

  /// Merges pairs until the vocabulary is full, or none is as frequent as that.
  void run(Vocabulary& vocabulary, std::size_t vocab_size, std::int64_t min_frequency) {
    queue_new_pairs();
    while (vocabulary.size() < vocab_size && !queue_.empty()) {
      Candidate best = queue_.top();
      queue_.pop();
      if (const std::int64_t count = counts_.at(best.pair); count != best.count) {
        best.count = count;  // merges since then have changed it
        queue_.push(best);
        continue;
      }
      if (best.count < min_frequency) break;
      merge_in_words(best, vocabulary.add(best.pair));
      queue_new_pairs();
    }
  }

 private:
  struct Word {
    std::vector<TokenId> pieces;
    std::int64_t count;
  };

  struct Candidate {
    std::int64_t count;
    Pair pair;
    std::size_t places;  // in places_

    /// Whether the other one is first.
    bool operator<(const Candidate& other) const {
      return std::tie(count, other.pair, other.places) < std::tie(other.count, pair, places);
    }
  };

  void change(Pair pair, std::int64_t number, std::int64_t count, std::uint32_t word) {
    counts_[pair] += number * count;
    if (number < 0) return;
    std::vector<std::uint32_t>& places = new_places_[pair];
    if (places.empty() || places.back() != word) places.push_back(word);
  }

  void merge_in_words(const Candidate& best, TokenId merged) {
    for (const std::uint32_t number : std::exchange(places_[best.places], {})) {
      Word& word = words_[number];
      merge(word.pieces, best.pair, merged,
            [&](Pair pair, std::int64_t change_by) { change(pair, change_by, word.count, number); });
    }
  }

  void queue_new_pairs() {
    for (auto& [pair, places] : new_places_) {
      if (counts_[pair] <= 0) continue;
      queue_.push({counts_[pair], pair, places_.size()});
      places_.push_back(std::move(places));
    }
    new_places_.clear();
  }

  std::vector<Word> words_;
  std::unordered_map<Pair, std::int64_t> counts_;
  std::unordered_map<Pair, std::vector<std::uint32_t>> new_places_;  // words, of pairs to be queued
  std::vector<std::vector<std::uint32_t>> places_;                   // of pairs that were
  std::priority_queue<Candidate> queue_;
};

/// Adds the characters, and those that continue a word.
void add_alphabet(const WordCounts& words, const std::set<char32_t>& alphabet, Vocabulary& vocabulary) {
  std::map<char32_t, std::string> continuing;
  for (const auto& [word, count] : words) {
    bool is_first = true;
    for_each_character(word, [&](char32_t character, std::string_view bytes) {
      if (!std::exchange(is_first, false) && alphabet.contains(character)) continuing[character] = bytes;
    });
  }
  for (const char32_t character : alphabet) {
    std::string token;
    unicode::append(token, character);
    vocabulary.add(token);
  }
  for (const auto& [character, bytes] : continuing) vocabulary.add(std::string(continuation) + bytes);
}

std::vector<TokenId> pieces_of(std::string_view word, const std::set<char32_t>& alphabet,
                               Vocabulary& vocabulary) {
  std::vector<TokenId> pieces;
  bool is_first = true;
  for_each_character(word, [&](char32_t character, std::string_view bytes) {
    const std::string prefix(std::exchange(is_first, false) ? "" : continuation);
    if (alphabet.contains(character)) pieces.push_back(vocabulary.add(prefix + std::string(bytes)));
  });
  return pieces;
}

}  // namespace

std::vector<std::string> train_word_piece(std::span<const std::string> texts,
                                          const WordPieceTrainerOptions& options) {
  const WordCounts words = counted_words(texts, options.lowercase);
  const std::set<char32_t> alphabet = alphabet_of(words, options.limit_alphabet);
  Vocabulary vocabulary;
  for (const std::string& token : options.special_tokens) vocabulary.add(token);
  add_alphabet(words, alphabet, vocabulary);
  Merger merger;
  for (const auto& [word, count] : words) merger.add_word(pieces_of(word, alphabet, vocabulary), count);
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  const std::uint64_t least = std::clamp<std::uint64_t>(options.min_frequency, 1, most);
  merger.run(vocabulary, options.vocab_size, static_cast<std::int64_t>(least));
  return vocabulary.take();
}

}  // namespace xgrad::tokenizers
