#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "../../tokenizer.hpp"
#include "../models/added_tokens.hpp"
#include "../models/byte_pairs.hpp"
#include "../models/character_pairs.hpp"
#include "../models/marian.hpp"
#include "../models/sentence_piece.hpp"
#include "../models/token_table.hpp"
#include "../models/unigram.hpp"
#include "../models/word_piece.hpp"
#include "../normalizers/text_steps.hpp"

// Not installed: validated content of a tokenizer's files.

namespace xgrad::tokenizers::detail {

/// A part of an encoding: the first or the second text, or a special token.
struct TemplatePart {
  enum class Kind { first, second, special } kind;
  std::uint32_t token;  // index of the special one
  std::int64_t type_id;
};

using Template = std::vector<TemplatePart>;

/// How the offsets of byte-level tokens exclude their blanks.
struct TrimOffsets {
  bool add_prefix_space;  // a single leading blank was added to the text
};

struct WordPieceDecoder {
  std::string prefix;
  bool cleanup;
};

struct ByteLevelDecoder {};

struct MetaspaceDecoder {
  std::string blank;
  bool drops_first;  // blanks of the first token
};

/// Bytes of tokens such as "<0x0A>"; a run of them that is no UTF-8 becomes as many U+FFFD.
struct ByteFallbackDecoder {};

/// All tokens as one.
struct FuseDecoder {};

/// Removes at most so many of a character at the ends of each token.
struct StripDecoder {
  char32_t character;
  std::size_t start, stop;
};

using DecoderStep = std::variant<WordPieceDecoder, ByteLevelDecoder, MetaspaceDecoder, ByteFallbackDecoder,
                                 FuseDecoder, StripDecoder, Replace>;

/// What is done to tokens in turn before they are put together; without anything, blanks are put between
/// them.
using DecoderSteps = std::vector<DecoderStep>;

/// sentencepiece's own rules; types of the tokens by their indices.
struct SentencePieceDecoder {
  std::vector<SentencePiece::Type> types;
  std::string unknown;    // stands for the unknown token
  bool drops_blank;       // the first one of a text
  bool drops_all_blanks;  // of tokens before any other text
  /// As Marian: special tokens are shown with a blank behind, and white space at the ends is removed.
  bool shows_special = false;
};

enum class Role { cls, sep, pad, unk, mask };
inline constexpr std::array role_names{"cls", "sep", "pad", "unk", "mask"};

struct Pipeline {
  TokenTable tokens;
  AddedTokens added, added_normalized;  // matched in the original text, and in the normalised one
  std::optional<Normalizer> normalizer;
  std::variant<WordPiece, BytePairs, CharacterPairs, Unigram, SentencePiece, Marian> model;
  Template single, pair;
  std::optional<TrimOffsets> trim_offsets;
  std::variant<DecoderSteps, SentencePieceDecoder> decoder;
  std::array<std::optional<std::uint32_t>, role_names.size()> roles;  // indices of the special tokens
  std::optional<std::size_t> max_length;
  Side truncation_side = Side::right, padding_side = Side::right;
  std::vector<std::string> notes = {};  // for the user
};

/// The normalizer of a tokenizer.json. Throws FileError.
std::optional<Normalizer> read_normalizer(const std::optional<Json>& part);

/// Reads tokenizer.json, or vocab.txt, or vocab.json and merges.txt, or a model of sentencepiece, and what
/// TokenizerConfig reads. With `lowers` texts are lowered before anything else; `reads_target` takes the
/// second of Marian's models. Throws FileError.
Pipeline read_pipeline(const std::string& folder, bool lowers, bool reads_target);

/// Reads the text of a tokenizer.json, which errors call `path`. Throws FileError.
Pipeline read_pipeline_of_json(const std::string& path, std::string_view text, bool lowers);

}  // namespace xgrad::tokenizers::detail
