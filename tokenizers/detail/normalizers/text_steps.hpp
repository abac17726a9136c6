#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "charsmap.hpp"
#include "normal_form.hpp"
#include "normalizer.hpp"

// Not installed: what normalizers of SentencePiece's vocabularies do in turn, with the sources of characters
// as in https://github.com/huggingface/tokenizers/blob/main/tokenizers/src/tokenizer/normalizer.rs

namespace xgrad::tokenizers::detail {

/// Replaces each text `from`, or each run of two blanks or more where it is empty.
class Replace {
 public:
  Replace(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}

  void operator()(const TextBuffer& from, TextBuffer& to) const;

 private:
  std::string from_, to_;
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

/// Steps in turn.
class TextSteps {
 public:
  using Step = std::variant<Charsmap, Lowercase, NormalForm, Replace, Strip, StripAccents>;

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
