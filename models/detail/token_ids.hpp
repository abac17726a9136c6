#pragma once

#include "../../base/array.hpp"
#include "../../base/error.hpp"

namespace xgrad::detail {

/// Throws ShapeError in the name of `module` unless ids are (batch, seq) with at most max_len positions.
inline void check_token_ids(const char* module, const Ids& ids, std::size_t max_len) {
  if (ids.dimension() != 2) fail<ShapeError>(module, ": ids must be (batch, seq), got ", ids.shape());
  if (ids.shape(1) > max_len)
    fail<ShapeError>(module, ": ids must have at most max_len ", max_len, " positions, got ", ids.shape());
}

}  // namespace xgrad::detail
