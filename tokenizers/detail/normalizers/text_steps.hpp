#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "../splits/pattern.hpp"
#include "charsmap.hpp"
#include "normal_form.hpp"
#include "normalizer.hpp"

// Not installed: what normalizers of SentencePiece's vocabularies do in turn, with the sources of characters
// as in https://github.com/huggingface/tokenizers/blob/main/tokenizers/src/tokenizer/normalizer.rs

namespace xgrad::tokenizers::detail {

/// Replaces each match of a text or of a pattern.
class Replace {
 public:
  /// The text must not be empty.
  Replace(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}
  Replace(Pattern from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}

  void operator()(const TextBuffer& from, TextBuffer& to) const;

  /// Throws ValueError for a result of more than `most` bytes.
  std::string operator()(std::string_view text, std::size_t most) const;

 private:
  template <class OnMatch>
  void for_each_match(std::string_view text, OnMatch&& on_match) const;

  std::variant<std::string, Pattern> from_;
  std::string to_;
};

/// Puts a text before one that is not empty.
struct Prepend {
  std::string text;

  void operator()(const TextBuffer& from, TextBuffer& to) const;
};

/// Removes white space at the ends.
struct Strip {
  bool left, right;

  void operator()(const TextBuffer& from, TextBuffer& to) const;
};

/// Removes all marks, spacing and enclosing ones, too.
struct StripAccents {
  void operator()(const TextBuffer& from, TextBuffer& to) const;
};

struct Lowercase {
  void operator()(const TextBuffer& from, TextBuffer& to) const;
};

/// Removes control characters and makes blanks of other spaces, as SentencePiece's rules "nmt":
/// https://github.com/huggingface/tokenizers/blob/main/tokenizers/src/normalizers/unicode.rs
struct Nmt {
  void operator()(const TextBuffer& from, TextBuffer& to) const;
};

/// Steps in turn.
class TextSteps {
 public:
  using Step = std::variant<Charsmap, Lowercase, Nmt, NormalForm, Prepend, Replace, Strip, StripAccents>;

  explicit TextSteps(std::vector<Step> steps) : steps_(std::move(steps)) {}

  TextSteps lowercased() const;

  /// Arguments as in unchanged().
  Passage operator()(std::string_view text, std::uint32_t first, TextBuffer& buffer) const;

 private:
  std::vector<Step> steps_;
};

/// What a tokenizer does to a text before its model reads it.
class Normalizer {
 public:
  Normalizer(BertNormalizer bert) : rules_(std::move(bert)) {}
  Normalizer(TextSteps steps) : rules_(std::move(steps)) {}

  /// Normalizes a part of the original text; arguments as in unchanged().
  Passage operator()(std::string_view text, std::uint32_t first, TextBuffer& buffer) const {
    return std::visit([&](const auto& rules) { return rules(text, first, buffer); }, rules_);
  }

  /// The normalised text.
  std::string operator()(std::string_view text) const;

  /// The same, of a text in lower case.
  Normalizer lowercased() const {
    return std::visit([](const auto& rules) { return Normalizer(rules.lowercased()); }, rules_);
  }

 private:
  std::variant<BertNormalizer, TextSteps> rules_;
};

}  // namespace xgrad::tokenizers::detail
