#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../models/merges.hpp"
#include "../models/token_table.hpp"
#include "json.hpp"

// Not installed: vocabularies and merges as files have them. All functions throw FileError.

namespace xgrad::tokenizers::detail {

/// Collects the model's tokens within the limits.
class TokenCollector {
 public:
  explicit TokenCollector(std::string path) : path_(std::move(path)) {}

  /// A text that comes again takes the last id.
  void add(std::string_view text, std::int64_t id);

  /// The tokens, of which there must be one.
  TokenIds take();

 private:
  std::string path_;
  TokenIds ids_;
  std::size_t bytes_ = 0;
};

/// vocab.txt: a token a line.
TokenIds read_vocab_txt(const std::string& path);

/// {"the": 5, ...}
TokenIds read_vocab(const std::string& path, const Json& vocab);

/// The tokens of [["<s>", 0], ["▁the", -3.5], ...], whose ids are their places, and their scores.
TokenIds read_scored_vocab(const std::string& path, const Json& vocab, std::vector<double>& scores);

/// merges.txt: two tokens a line.
MergeTexts read_merges_txt(const std::string& path);

/// ["a b", ...] or [["a", "b"], ...]
MergeTexts read_merges(const Json& list);

}  // namespace xgrad::tokenizers::detail
