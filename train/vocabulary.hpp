#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "../base/detail/by_name.hpp"

namespace xgrad {

/// Words separated by whitespace: space, tab, newline, carriage return, form feed and vertical tab, but not
/// Unicode's other ones.
[[nodiscard]] std::vector<std::string> whitespace_tokens(std::string_view text);

/// Converts A to Z to a to z; keeps all other bytes, so the text may be UTF-8.
[[nodiscard]] std::string to_ascii_lowercase(std::string_view text);

struct VocabularyOptions {
  detail::ByName by_name = {};
  std::size_t min_freq = 1;                                ///< minimum count of a token
  std::size_t max_tokens = 0;                              ///< maximum size, including specials; 0: no limit
  std::vector<std::string> specials = {"[PAD]", "[UNK]"};  ///< the first ids
  std::string unknown = "[UNK]";                           ///< the special for unknown tokens; empty: none
};

/// Tokens and their ids 0, 1, 2, ...: first the specials, then the others from the most to the least
/// frequent; ties are in byte order. https://pytorch.org/text/stable/vocab.html#build-vocab-from-iterator
class Vocabulary {
 public:
  /// Counts the tokens of all texts. Throws ValueError for specials that repeat, lack `unknown` or exceed
  /// max_tokens, and for a token that the constructor rejects.
  static Vocabulary build(const std::vector<std::vector<std::string>>& texts, VocabularyOptions options = {});

  /// A vocabulary of these tokens in this order. Throws ValueError for a token that is a duplicate, is empty
  /// or contains a newline, and for an `unknown` that is neither empty nor one of the tokens.
  explicit Vocabulary(std::vector<std::string> tokens, std::string unknown = "[UNK]");

  std::size_t size() const { return tokens_.size(); }
  const std::vector<std::string>& tokens() const& { return tokens_; }
  std::vector<std::string> tokens() && { return std::move(tokens_); }
  bool contains(std::string_view token) const;

  /// The id of a token, or of `unknown`. Throws IndexError if both are missing:
  /// "Vocabulary: there is no token 'shoe'".
  std::int64_t id(std::string_view token) const;
  std::vector<std::int64_t> ids(const std::vector<std::string>& tokens) const;

  /// The token of an id. Throws IndexError for an id outside [0, size).
  std::string token(std::int64_t id) const;

  /// Writes one token per line, as an AtomicFile. Throws FileError.
  void save(const std::string& path) const;

  /// Reads a file of save(). Throws FileError, also for tokens that the constructor rejects.
  static Vocabulary load(const std::string& path, std::string unknown = "[UNK]");

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };

  std::vector<std::string> tokens_;
  std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>> ids_;
  std::string unknown_;
};

}  // namespace xgrad
