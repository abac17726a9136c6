#pragma once

#include <cstddef>
#include <cstdint>
#include <queue>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

// Not installed.

namespace xgrad::tokenizers::detail {

using TokenId = std::uint32_t;  // the id of its token
using Pair = std::uint64_t;     // two pieces side by side, ordered by the first, then by the second

inline Pair piece_pair(TokenId first, TokenId second) { return Pair{first} << 32 | second; }
inline TokenId first_piece(Pair pair) { return static_cast<TokenId>(pair >> 32); }
inline TokenId second_piece(Pair pair) { return static_cast<TokenId>(pair); }

/// The tokens of a trainer by their ids.
class Vocabulary {
 public:
  /// `continuation` begins tokens that continue a word.
  explicit Vocabulary(std::string_view continuation = "") : continuation_(continuation) {}

  /// The id of a token, which is added if it is new.
  TokenId add(std::string_view token);

  /// The two as one token.
  TokenId add(Pair pair);

  const std::string& operator[](TokenId id) const { return tokens_[id]; }
  std::size_t size() const { return tokens_.size(); }
  std::vector<std::string> take() { return std::move(tokens_); }

 private:
  std::string continuation_;
  std::unordered_map<std::string, TokenId> ids_;
  std::vector<std::string> tokens_;
};

/// Words as pieces, and the pairs in them, the most frequent one first (R. Sennrich, B. Haddow and A. Birch
/// 2016, arXiv:1508.07909): https://github.com/huggingface/tokenizers (tokenizers/src/models/bpe/trainer.rs)
class PairMerger {
 public:
  void add_word(std::vector<TokenId> pieces, std::int64_t count);

  /// Merges pairs until the vocabulary is full, or none is as frequent as that. Returns the merged pairs.
  std::vector<Pair> run(Vocabulary& vocabulary, std::size_t vocab_size, std::uint64_t min_frequency);

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

  void change(Pair pair, std::int64_t number, std::int64_t count, std::uint32_t word);
  void merge_in_words(const Candidate& best, TokenId merged);
  void queue_new_pairs();

  std::vector<Word> words_;
  std::unordered_map<Pair, std::int64_t> counts_;
  std::unordered_map<Pair, std::vector<std::uint32_t>> new_places_;  // words, of pairs to be queued
  std::vector<std::vector<std::uint32_t>> places_;                   // of pairs that were
  std::priority_queue<Candidate> queue_;
};

}  // namespace xgrad::tokenizers::detail
