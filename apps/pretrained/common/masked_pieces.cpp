#include "masked_pieces.hpp"

#include <algorithm>
#include <cmath>

#include <xgrad/base/random.hpp>
#include <xgrad/train/data.hpp>

namespace apps {

void append_parts(const Piece& piece, std::size_t max_length, std::vector<Piece>& parts) {
  std::span<const std::int64_t> rest(piece.begin() + 1, piece.end() - 1);
  while (!rest.empty()) {
    const auto taken = rest.first(std::min(max_length - 2, rest.size()));
    Piece& part = parts.emplace_back(Piece{piece.front()});
    part.insert(part.end(), taken.begin(), taken.end());
    part.push_back(piece.back());
    rest = rest.subspan(taken.size());
  }
}

std::vector<Piece> pieces_of(const xgrad::tokenizers::Tokenizer& tokenizer,
                             const std::vector<std::string>& texts, std::size_t max_length) {
  std::vector<Piece> pieces;
  for (const std::string& text : texts) {
    Piece whole{tokenizer.cls_id()};
    const std::vector<std::int64_t> ids = tokenizer.encode(text, {.add_special_tokens = false}).ids;
    whole.insert(whole.end(), ids.begin(), ids.end());
    whole.push_back(tokenizer.sep_id());
    append_parts(whole, max_length, pieces);
  }
  return pieces;
}

TokenMask::TokenMask(const xgrad::tokenizers::Tokenizer& tokenizer)
    : mask_id_(tokenizer.mask_id()), vocabulary_(static_cast<std::int64_t>(tokenizer.size())) {}

MaskedPiece TokenMask::operator()(const Piece& piece) const {
  const std::size_t tokens = piece.size() - 2;
  const auto share = static_cast<std::size_t>(std::lround(0.15 * static_cast<double>(tokens)));
  const std::size_t chosen = std::max<std::size_t>(share, 1);
  const xgrad::Ids order = xgrad::randperm(static_cast<std::int64_t>(tokens));
  const xgrad::Array<double> draws = xgrad::uniform<double>({chosen});
  const xgrad::Ids random = xgrad::randint(0, vocabulary_, {chosen});
  MaskedPiece masked{piece, Piece(piece.size(), ignored)};
  for (std::size_t i = 0; i < chosen; ++i) {
    const auto place = static_cast<std::size_t>(order(i)) + 1;
    masked.labels[place] = piece[place];
    if (draws(i) < 0.9) masked.ids[place] = draws(i) < 0.8 ? mask_id_ : random(i);
  }
  return masked;
}

MaskedBatch batch_of(std::span<const MaskedPiece> pieces, std::int64_t pad_id) {
  std::vector<std::vector<std::int64_t>> ids, labels, mask;
  MaskedBatch batch;
  for (const MaskedPiece& piece : pieces) {
    ids.push_back(piece.ids);
    labels.push_back(piece.labels);
    mask.emplace_back(piece.ids.size(), 1);
    batch.tokens += piece.ids.size();
    batch.hidden +=
        piece.labels.size() - static_cast<std::size_t>(std::ranges::count(piece.labels, TokenMask::ignored));
  }
  batch.input = {xgrad::pad_sequence(ids, pad_id), xgrad::pad_sequence(mask)};
  batch.labels = xgrad::pad_sequence(labels, TokenMask::ignored);
  return batch;
}

}  // namespace apps
