// Pieces of text with hidden tokens.
#include "../../apps/pretrained/common/masked_pieces.hpp"

#include <gtest/gtest.h>

#include <xgrad/base/random.hpp>

#include "folder.hpp"

namespace masked_pieces_test {

using apps::MaskedPiece, apps::Piece, apps::TokenMask;

constexpr std::int64_t cls = 2, sep = 3, word = 75;

TEST(MaskedPieces, PartsHaveTheirOwnBeginAndEnd) {
  std::vector<Piece> parts;
  apps::append_parts({cls, 10, 11, 12, 13, 14, sep}, 4, parts);
  EXPECT_EQ(parts, (std::vector<Piece>{{cls, 10, 11, sep}, {cls, 12, 13, sep}, {cls, 14, sep}}));
}

TEST(MaskedPieces, TheSharesOfHiddenTokensAreThoseOfBert) {
  const auto tokenizer =
      xgrad::tokenizers::Tokenizer::from_folder(xgrad_tests::model_folder("bert_pretraining"));
  const TokenMask mask(tokenizer);
  xgrad::Generator generator(1);
  const xgrad::UseGenerator use(generator);
  Piece piece(20002, word);
  piece.front() = cls;
  piece.back() = sep;
  const MaskedPiece masked = mask(piece);
  int hidden = 0, masks = 0, same = 0;
  for (std::size_t i = 0; i < piece.size(); ++i) {
    if (masked.labels[i] == TokenMask::ignored) {
      EXPECT_EQ(masked.ids[i], piece[i]);
      continue;
    }
    EXPECT_EQ(masked.labels[i], piece[i]);
    ++hidden;
    masks += masked.ids[i] == tokenizer.mask_id() ? 1 : 0;
    same += masked.ids[i] == piece[i] ? 1 : 0;
  }
  EXPECT_EQ(hidden, 3000);
  EXPECT_NEAR(masks, 2400, 90);
  EXPECT_NEAR(same, 300, 70);
}

TEST(MaskedPieces, OneTokenIsHiddenAtLeastAndNeverTheEnds) {
  const auto tokenizer =
      xgrad::tokenizers::Tokenizer::from_folder(xgrad_tests::model_folder("bert_pretraining"));
  const TokenMask mask(tokenizer);
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(mask({cls, word, sep}).labels, (Piece{TokenMask::ignored, word, TokenMask::ignored}));
}

TEST(MaskedPieces, BatchesArePaddedAndTheirPaddingIsIgnored) {
  const MaskedPiece pieces[] = {{{cls, 4, sep}, {-100, 9, -100}}, {{cls, 5, 4, sep}, {-100, 7, 8, -100}}};
  const apps::MaskedBatch batch = apps::batch_of(pieces, 1);
  EXPECT_EQ(batch.input.input_ids, (xgrad::Ids{{cls, 4, sep, 1}, {cls, 5, 4, sep}}));
  EXPECT_EQ(*batch.input.attention_mask, (xgrad::Ids{{1, 1, 1, 0}, {1, 1, 1, 1}}));
  EXPECT_EQ(batch.labels, (xgrad::Ids{{-100, 9, -100, -100}, {-100, 7, 8, -100}}));
  EXPECT_EQ(batch.tokens, 7u);
  EXPECT_EQ(batch.hidden, 3u);
}

}  // namespace masked_pieces_test
