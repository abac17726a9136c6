#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

// Not installed.

namespace xgrad::tokenizers::detail {

/// Part of a word, with its length in bytes.
struct WordPart {
  std::uint32_t token, length;
};

/// The parts of words that came before, of several models. A word has one place, which the last one that fell
/// on it holds, so that what a thread keeps is of fixed size whatever the texts are.
class WordCache {
 public:
  /// A number that no other model has.
  static std::uint64_t new_owner() {
    static std::atomic<std::uint64_t> owners{0};
    return ++owners;
  }

  std::span<const WordPart> find(std::uint64_t owner, std::string_view word) {
    const Entry& entry = entries_[place(owner, word)];
    if (entry.owner != owner || std::string_view(entry.word, entry.length) != word) return {};
    return {entry.parts, entry.count};
  }

  static bool takes(std::string_view word) { return word.size() <= longest_word; }

  void keep(std::uint64_t owner, std::string_view word, std::span<const WordPart> parts) {
    if (!takes(word) || parts.size() > most_parts) return;
    Entry& entry = entries_[place(owner, word)];
    entry.owner = owner;
    entry.length = static_cast<std::uint8_t>(word.size());
    entry.count = static_cast<std::uint8_t>(parts.size());
    std::memcpy(entry.word, word.data(), word.size());
    std::copy(parts.begin(), parts.end(), entry.parts);
  }

 private:
  static constexpr std::size_t places = 4096, longest_word = 30, most_parts = 11;

  struct Entry {
    std::uint64_t owner = 0;
    std::uint8_t length = 0, count = 0;
    char word[longest_word];
    WordPart parts[most_parts];
  };

  static std::size_t place(std::uint64_t owner, std::string_view word) {
    return (std::hash<std::string_view>()(word) + owner) % places;
  }

  std::vector<Entry> entries_ = std::vector<Entry>(places);
};

/// That of the thread.
inline WordCache& word_cache() {
  thread_local WordCache cache;
  return cache;
}

}  // namespace xgrad::tokenizers::detail
