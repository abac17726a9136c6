#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "pieces.hpp"
#include "sentence_piece.hpp"
#include "token_table.hpp"

// Not installed.

namespace xgrad::tokenizers::detail {

/// Marian's models: those of SentencePiece with tokens of a vocabulary beside them, after a code of a
/// language at the beginning of a text, such as ">>fra<<".
class Marian {
 public:
  /// The model must have a vocabulary. A code that is none of these is the token `unknown`.
  Marian(SentencePiece model, TokenIndices codes, std::uint32_t unknown)
      : model_(std::move(model)), codes_(std::move(codes)), unknown_(unknown) {}

  /// Returns Pieces::end_word() of the last word.
  bool operator()(const Passage& passage, Pieces& pieces) const {
    const std::string_view text = passage.text;
    const std::size_t found = text.starts_with(">>") ? text.find("<<") : text.npos;
    if (found == text.npos) return model_(passage, pieces);
    const std::size_t end = found + 2;
    const auto code = codes_.find(text.substr(0, end));
    pieces.add(passage, code == codes_.end() ? unknown_ : code->second, 0, end);
    return pieces.end_word() && model_(passage.part(end, text.size()), pieces);
  }

 private:
  SentencePiece model_;
  TokenIndices codes_;
  std::uint32_t unknown_;
};

}  // namespace xgrad::tokenizers::detail
