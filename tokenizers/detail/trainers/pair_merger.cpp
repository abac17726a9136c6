#include "pair_merger.hpp"

#include <algorithm>
#include <limits>

namespace xgrad::tokenizers::detail {
namespace {

/// Replaces the pair in a word by the piece `merged`, and calls on_change(pair, number) for each other pair
/// that comes (1) or goes (-1).
template <class OnChange>
void merge_pair(std::vector<TokenId>& word, Pair pair, TokenId merged, OnChange&& on_change) {
  const TokenId first = first_piece(pair), second = second_piece(pair);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < word.size(); ++i, ++kept) {
    if (i + 1 == word.size() || word[i] != first || word[i + 1] != second) {
      word[kept] = word[i];
      continue;
    }
    if (kept > 0) {
      on_change(piece_pair(word[kept - 1], first), -1);
      on_change(piece_pair(word[kept - 1], merged), 1);
    }
    if (i + 2 < word.size()) {
      on_change(piece_pair(second, word[i + 2]), -1);
      on_change(piece_pair(merged, word[i + 2]), 1);
    }
    word[kept] = merged;
    ++i;
  }
  word.resize(kept);
}

}  // namespace

TokenId Vocabulary::add(std::string_view token) {
  const auto [entry, is_new] = ids_.try_emplace(std::string(token), static_cast<TokenId>(tokens_.size()));
  if (is_new) tokens_.emplace_back(token);
  return entry->second;
}

TokenId Vocabulary::add(Pair pair) {
  std::string_view second = tokens_[second_piece(pair)];
  if (second.starts_with(continuation_)) second.remove_prefix(continuation_.size());
  return add(tokens_[first_piece(pair)] + std::string(second));
}

void PairMerger::add_word(std::vector<TokenId> pieces, std::int64_t count) {
  const auto number = static_cast<std::uint32_t>(words_.size());
  for (std::size_t i = 1; i < pieces.size(); ++i)
    change(piece_pair(pieces[i - 1], pieces[i]), 1, count, number);
  words_.push_back({std::move(pieces), count});
}

std::vector<Pair> PairMerger::run(Vocabulary& vocabulary, std::size_t vocab_size,
                                  std::uint64_t min_frequency) {
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  const auto least = static_cast<std::int64_t>(std::clamp<std::uint64_t>(min_frequency, 1, most));
  std::vector<Pair> merged;
  queue_new_pairs();
  while (vocabulary.size() < vocab_size && !queue_.empty()) {
    Candidate best = queue_.top();
    queue_.pop();
    if (const std::int64_t count = counts_.at(best.pair); count != best.count) {
      best.count = count;  // merges since then have changed it
      queue_.push(best);
      continue;
    }
    if (best.count < least) break;
    merge_in_words(best, vocabulary.add(best.pair));
    merged.push_back(best.pair);
    queue_new_pairs();
  }
  return merged;
}

void PairMerger::change(Pair pair, std::int64_t number, std::int64_t count, std::uint32_t word) {
  counts_[pair] += number * count;
  if (number < 0) return;
  std::vector<std::uint32_t>& places = new_places_[pair];
  if (places.empty() || places.back() != word) places.push_back(word);
}

void PairMerger::merge_in_words(const Candidate& best, TokenId merged) {
  for (const std::uint32_t number : std::exchange(places_[best.places], {})) {
    Word& word = words_[number];
    merge_pair(word.pieces, best.pair, merged,
               [&](Pair pair, std::int64_t change_by) { change(pair, change_by, word.count, number); });
  }
}

void PairMerger::queue_new_pairs() {
  for (auto& [pair, places] : new_places_) {
    if (counts_[pair] <= 0) continue;
    queue_.push({counts_[pair], pair, places_.size()});
    places_.push_back(std::move(places));
  }
  new_places_.clear();
}

}  // namespace xgrad::tokenizers::detail
