#pragma once

#include "../../base/detail/by_name.hpp"
#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

struct RotaryOptions {
  detail::ByName by_name = {};
  std::size_t num_heads = 1;  ///< number of heads in the last axis of x
  bool interleaved = false;   ///< pairs of neighbours, as GPT-J's; else element i and r + i, as Llama's
};

/// Rotates pairs (a, b) of elements of each head by the angles of its position, to (a cos - b sin, b cos + a
/// sin): rotary position embeddings (Su et al. 2021, arXiv:2104.09864).
///
/// x and y (..., L, H E) with H = num_heads; cos and sin (L, r) or (..., L, r) with 2 r <= E, of which the
/// first is for all sequences. The last E - 2 r elements of a head are not rotated. dx = dy, rotated back;
/// dcos = the sum of a da + b db and dsin = the sum of a db - b da over what shares an angle. Throws
/// ShapeError for other shapes, ValueError for num_heads 0. rotary_tables() makes cos and sin.
template <class T>
Variable<T> rotary(const Variable<T>& x, const Variable<T>& cos, const Variable<T>& sin,
                   RotaryOptions options = {});

namespace ops {

inline constexpr Op rotary("rotary", {"x", "cos", "sin"}, {"num_heads", "interleaved"});

}  // namespace ops
}  // namespace xgrad
