#pragma once

#include <optional>

#include "../base/array.hpp"

namespace xgrad::pretrained {

/// A batch of sequences of tokens.
struct Input {
  Ids input_ids;                           ///< (batch, length)
  std::optional<Ids> attention_mask = {};  ///< the same: 1 for tokens, 0 for padding; all tokens if absent
  std::optional<Ids> token_type_ids = {};  ///< the same: 0 for a first text, 1 for a second; all 0 if absent
};

}  // namespace xgrad::pretrained
