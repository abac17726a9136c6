#pragma once

// Pieces of text with hidden tokens, which a language model learns to predict (Devlin et al. 2019,
// arXiv:1810.04805, section 3.1).

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <xgrad/pretrained/input.hpp>
#include <xgrad/tokenizers/tokenizer.hpp>

namespace apps {

/// The ids of a piece of text, [CLS] and [SEP] around them.
using Piece = std::vector<std::int64_t>;

/// Appends the piece in parts of at most `max_length` tokens, which is 3 or more, [CLS] and [SEP] around
/// each.
void append_parts(const Piece& piece, std::size_t max_length, std::vector<Piece>& parts);

/// The texts in pieces of at most `max_length` tokens, which is 3 or more; no piece is of two texts.
std::vector<Piece> pieces_of(const xgrad::tokenizers::Tokenizer& tokenizer,
                             const std::vector<std::string>& texts, std::size_t max_length);

struct MaskedPiece {
  Piece ids;
  Piece labels;  ///< what was there, and -100 where nothing is to be predicted
};

/// Hides tokens.
class TokenMask {
 public:
  explicit TokenMask(const xgrad::tokenizers::Tokenizer& tokenizer);

  /// Draws 15 % of the tokens, at least one, from the default generator: 80 % of these become [MASK], 10 % a
  /// random token, and 10 % stay.
  MaskedPiece operator()(const Piece& piece) const;

  static constexpr std::int64_t ignored = -100;

 private:
  std::int64_t mask_id_, vocabulary_;
};

struct MaskedBatch {
  xgrad::pretrained::Input input;
  xgrad::Ids labels;
  std::size_t tokens = 0;  ///< without padding
  std::size_t hidden = 0;
};

MaskedBatch batch_of(std::span<const MaskedPiece> pieces, std::int64_t pad_id);

}  // namespace apps
