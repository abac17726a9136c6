#pragma once

#include <optional>

#include "../base/array.hpp"

namespace xgrad::pretrained {

/// A batch of sequences of tokens.
struct Input {
  Ids input_ids;                           ///< (batch, length)
  std::optional<Ids> attention_mask = {};  ///< the same shape: 1 for tokens, 0 for padding; all 1 if absent
  std::optional<Ids> token_type_ids = {};  ///< the same shape: 0: first text, 1: second; all 0 if absent
};

}  // namespace xgrad::pretrained
