#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "../unicode/unicode.hpp"
#include "token_table.hpp"
#include "trie.hpp"

// Not installed.

namespace xgrad::tokenizers::detail {

/// The segmentation of a text into tokens with the highest sum of scores, which are log probabilities
/// (T. Kudo 2018, arXiv:1804.10959).
class BestPath {
 public:
  struct Options {
    std::uint32_t unknown;  // stands for a character that is no token
    double unknown_score;
    bool rounds_to_float = false;  // each sum, as sentencepiece does
  };

  /// What was reached since the last place that no token crosses. May be used again.
  class Work {
    friend class BestPath;

    struct Node {
      double score = 0;
      std::uint32_t length = 0;  // of the last token; 0 where no token ends
      std::uint32_t token = 0;
    };

    std::vector<Node> ends;
    std::vector<std::uint32_t> lengths;
  };

  /// Words with their tokens, as for Trie, and the score of each token.
  BestPath(std::vector<std::pair<std::string_view, std::uint32_t>> words, std::vector<double> scores,
           const Options& options)
      : trie_(std::move(words)), scores_(std::move(scores)), options_(options) {}

  std::uint32_t unknown() const { return options_.unknown; }

  /// The token of the whole text, or no_token.
  std::uint32_t find(std::string_view text) const {
    const Trie::Match match = trie_.longest(Trie::root, text);
    return match.length == text.size() ? match.value : no_token;
  }

  /// Calls on_token(token, begin, end) for the tokens of a text in order; each unknown character is one.
  template <class F>
  void operator()(std::string_view text, Work& work, F&& on_token) const {
    std::size_t base = 0;  // of the work's nodes: all before is decided
    work.ends.assign(1, {});
    for (std::size_t begin = 0; begin < text.size();) {
      if (begin - base + 1 == work.ends.size() && begin > base) {
        emit(base, begin - base, work, on_token);
        work.ends.front() = {.score = work.ends[begin - base].score};
        work.ends.resize(1);
        base = begin;
      }
      const std::string_view rest = text.substr(begin);
      const std::size_t next = unicode::first_length(rest), from = begin - base;
      bool covers_character = false;
      trie_.for_each_match(Trie::root, rest, [&](const Trie::Match& match) {
        offer(work, from, match.length, match.value, scores_[match.value]);
        covers_character |= match.length == next;
      });
      if (!covers_character) offer(work, from, next, options_.unknown, options_.unknown_score);
      begin += next;
    }
    emit(base, text.size() - base, work, on_token);
  }

 private:
  void offer(Work& work, std::size_t from, std::size_t length, std::uint32_t token, double score) const {
    if (from + length >= work.ends.size()) work.ends.resize(from + length + 1);
    Work::Node& node = work.ends[from + length];
    double sum = score + work.ends[from].score;
    if (options_.rounds_to_float) sum = static_cast<double>(static_cast<float>(sum));
    if (node.length != 0 && sum <= node.score) return;
    node = {.score = sum, .length = static_cast<std::uint32_t>(length), .token = token};
  }

  /// The tokens of the first `size` bytes behind `base`.
  template <class F>
  static void emit(std::size_t base, std::size_t size, Work& work, F&& on_token) {
    work.lengths.clear();
    for (std::size_t end = size; end > 0; end -= work.ends[end].length)
      work.lengths.push_back(work.ends[end].length);
    std::size_t end = 0;
    for (auto length = work.lengths.rbegin(); length != work.lengths.rend(); ++length) {
      end += *length;
      on_token(work.ends[end].token, base + end - *length, base + end);
    }
  }

  Trie trie_;
  std::vector<double> scores_;
  Options options_;
};

}  // namespace xgrad::tokenizers::detail
