#pragma once

#include <cstddef>
#include <span>

#include "../../graph/variable.hpp"
#include "../input.hpp"

namespace xgrad::pretrained {

/// Pooling of the hidden states of a text, those of padding left out, into one vector:
/// https://sbert.net/docs/package_reference/sentence_transformer/modules.html
enum class Pooling {
  mean,           ///< the mean over all tokens
  cls_token,      ///< the first token
  max,            ///< the maximum over all tokens, of each number
  mean_sqrt,      ///< the sum over all tokens / sqrt(their number)
  weighted_mean,  ///< the mean over all tokens with weights 1, 2, 3, ... (Muennighoff 2022, arXiv:2202.08904)
  last_token,     ///< the last token
};

/// The vector of each text (batch, hidden_size) from hidden states (batch, length, hidden_size). Leaves out
/// the first `left_out` tokens of each text, such as those of a prompt.
template <class T>
Variable<T> pool(const Variable<T>& hidden, const Input& input, Pooling pooling, std::size_t left_out = 0);

/// Several vectors of each text as one.
template <class T>
Variable<T> pool(const Variable<T>& hidden, const Input& input, std::span<const Pooling> poolings,
                 std::size_t left_out = 0);

}  // namespace xgrad::pretrained
