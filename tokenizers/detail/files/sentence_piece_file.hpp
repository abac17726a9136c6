#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "../models/sentence_piece.hpp"

// Not installed.

namespace xgrad::tokenizers::detail {

/// A model file of sentencepiece (a ModelProto):
/// https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto
struct SentencePieceFile {
  struct Piece {
    std::string text;
    float score = 0;
    SentencePiece::Type type = SentencePiece::Type::normal;
  };

  /// Throws FileError for a file that is none, with an unknown kind, without an unknown token or without
  /// others, and with tokens that are empty, equal or not UTF-8.
  explicit SentencePieceFile(const std::string& path);

  std::vector<Piece> pieces;  // their ids are their places
  std::size_t unknown = 0;    // the place of the unknown one
  SentencePiece::Options options;
  std::string charsmap;                      // as in the file; empty for none
  std::string unknown_surface = " \u2047 ";  // what it is decoded to
};

}  // namespace xgrad::tokenizers::detail
