#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../../../base/pool.hpp"
#include "token_table.hpp"

// Not installed.

namespace xgrad::tokenizers::detail {

using MergeTexts = std::vector<std::pair<std::string, std::string>>;

/// The merges of byte pair encoding (R. Sennrich, B. Haddow and A. Birch 2016, arXiv:1508.07909): of all
/// neighbours that make a token, those first in the list are joined first, of equal ones the leftmost, as in
/// https://github.com/huggingface/tokenizers/blob/main/tokenizers/src/models/bpe/word.rs
class Merges {
 public:
  /// Merges in descending priority; the last of duplicates counts. Throws FileError, which begins with
  /// `where`, unless the tokens include the parts and results of all.
  Merges(const TokenTable& tokens, const MergeTexts& merges, const std::string& where);

  /// A token of a word. Symbols are a list, whose links are places.
  struct Symbol {
    std::uint32_t token, length, previous, next;  // a length of 0: it is part of one before
  };

  /// The symbols of a word, and memory.
  class Work {
   public:
    std::vector<Symbol, PoolAllocator<Symbol>> symbols;

    /// Adds a symbol at the end.
    void add(std::uint32_t token, std::uint32_t length);

   private:
    friend class Merges;

    struct Candidate {
      std::uint32_t rank, place, token;

      bool operator>(const Candidate& other) const {
        return rank != other.rank ? rank > other.rank : place > other.place;
      }
    };

    std::vector<Candidate, PoolAllocator<Candidate>>
        candidates_;  // a heap, the first merge to make at its front
  };

  void join(Work& work) const;

 private:
  struct Merge {
    std::uint64_t pair = no_pair;
    std::uint32_t rank = 0, token = 0;
  };

  static constexpr std::uint64_t no_pair = ~std::uint64_t{0};

  std::size_t slot_of(std::uint64_t pair) const;
  const Merge* find(std::uint32_t left, std::uint32_t right) const;

  std::vector<Merge> merges_;  // a hash table, a power of two with free slots
};

}  // namespace xgrad::tokenizers::detail
