#pragma once

// The encoder that is measured, in xgrad.

#include <cstdint>

#include <xgrad/xgrad.hpp>

#include "protocol.hpp"

namespace bench {

inline constexpr std::int64_t pad_id = 0;
inline constexpr std::uint64_t seed = 0;  ///< of the weights

// [encoder]
/// Token and position embedding, post-norm blocks with a padding mask, mean over the sequence, a linear head.
class Encoder : public xgrad::Module<float> {
 public:
  explicit Encoder(const Size& size)
      : Module("Encoder"),
        token_embedding_(child("token_embedding", xgrad::Embedding<float>(size.vocab, size.d_model))),
        position_embedding_(
            child("position_embedding", xgrad::LearnedPositionalEncoding<float>(size.seq, size.d_model))),
        encoder_(child("encoder", xgrad::TransformerEncoder<float>({.d_model = size.d_model,
                                                                    .heads = size.heads,
                                                                    .d_ff = size.d_ff,
                                                                    .layers = size.layers,
                                                                    .dropout = size.dropout}))),
        class_head_(child("class_head", xgrad::Linear<float>(size.d_model, size.classes))) {}

  xgrad::Variable<float> operator()(const xgrad::Ids& ids) const {
    const auto scope = this->scope();
    const xgrad::Variable<float> embedded = position_embedding_(token_embedding_(ids));
    return class_head_(mean(encoder_(embedded, xgrad::padding_mask(ids, pad_id)), 1));
  }

 private:
  xgrad::Embedding<float> token_embedding_;
  xgrad::LearnedPositionalEncoding<float> position_embedding_;
  xgrad::TransformerEncoder<float> encoder_;
  xgrad::Linear<float> class_head_;
};
// [encoder]

}  // namespace bench
