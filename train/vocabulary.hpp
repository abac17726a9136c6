#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace xgrad {

/// The words between blanks: space, tab, newline, carriage return, form feed and vertical tab, but not
/// Unicode's other ones.
std::vector<std::string> whitespace_tokens(std::string_view text);

/// A to Z become a to z; all other bytes stay, so the text may be UTF-8.
std::string to_ascii_lowercase(std::string_view text);

struct VocabularyOptions {
  std::size_t min_freq = 1;                                ///< rarer tokens are left out
  std::size_t max_tokens = 0;                              ///< size at most, specials included; 0: no limit
  std::vector<std::string> specials = {"[PAD]", "[UNK]"};  ///< the first ids
  std::string unknown = "[UNK]";  ///< the special that stands for all other tokens; empty: there is none
};

/// Tokens and their ids 0, 1, 2, ...: first the specials, then the others from the most to the least
/// frequent; equally frequent ones are in the order of their bytes.
/// https://pytorch.org/text/stable/vocab.html#build-vocab-from-iterator
class Vocabulary {
 public:
  /// Counts the tokens of all texts. Throws ValueError for specials that repeat, that lack `unknown` or that
  /// are more than max_tokens, and for a token that the constructor refuses.
  static Vocabulary build(const std::vector<std::vector<std::string>>& texts, VocabularyOptions options = {});

  /// These tokens in this order. Throws ValueError for one that comes twice, is empty or holds a newline, and
  /// for an `unknown` that is neither empty nor one of them.
  explicit Vocabulary(std::vector<std::string> tokens, std::string unknown = "[UNK]");

  std::size_t size() const { return tokens_.size(); }
  const std::vector<std::string>& tokens() const { return tokens_; }
  bool contains(std::string_view token) const;

  /// The id of a token, or of `unknown`. Throws IndexError if there is neither: "Vocabulary: there is no
  /// token 'shoe'".
  std::int64_t id(std::string_view token) const;
  std::vector<std::int64_t> ids(const std::vector<std::string>& tokens) const;

  /// Throws IndexError for an id that is not in [0, size).
  const std::string& token(std::int64_t id) const;

  /// Writes a token a line, as an AtomicFile. Throws FileError.
  void save(const std::string& path) const;

  /// Reads what save() wrote. Throws FileError, also for tokens that the constructor refuses.
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
