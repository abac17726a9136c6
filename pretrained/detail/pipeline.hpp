#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "added_tokens.hpp"
#include "byte_pairs.hpp"
#include "normalizer.hpp"
#include "token_table.hpp"
#include "word_piece.hpp"

// Not installed: what a tokenizer's files say, checked.

namespace xgrad::pretrained::detail {

/// What an encoding is made of: a text, the first or the second, or a special token.
struct TemplatePart {
  enum class Kind { first, second, special } kind;
  std::uint32_t token;  // index of the special one
  std::int64_t type_id;
};

using Template = std::vector<TemplatePart>;

/// How the offsets of byte-level tokens leave out the blanks that belong to them.
struct TrimOffsets {
  bool add_prefix_space;  // a single blank at the front was not in the text
};

struct WordPieceDecoder {
  std::string prefix;
  bool cleanup;
};

struct ByteLevelDecoder {};

enum class Role { cls, sep, pad, unk, mask };
inline constexpr std::array role_names{"cls", "sep", "pad", "unk", "mask"};

struct Pipeline {
  TokenTable tokens;
  AddedTokens added, added_normalized;  // found in the text as it is, and in the normalised one
  std::optional<BertNormalizer> normalizer;
  std::variant<WordPiece, BytePairs> model;
  Template single, pair;
  std::optional<TrimOffsets> trim_offsets;
  std::variant<std::monostate, WordPieceDecoder, ByteLevelDecoder> decoder;  // nothing: blanks between tokens
  std::array<std::optional<std::uint32_t>, role_names.size()> roles;         // indices of the special tokens
  std::optional<std::size_t> max_length;
};

/// Reads tokenizer.json, or vocab.txt, or vocab.json and merges.txt, and tokenizer_config.json if it is
/// there. Throws FileError.
Pipeline read_pipeline(const std::string& folder);

}  // namespace xgrad::pretrained::detail
