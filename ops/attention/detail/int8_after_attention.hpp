#pragma once

#include "../../../graph/op.hpp"
#include "../../product/weight.hpp"

namespace xgrad::detail {

/// A linear layer with a weight of 8-bit integers, which must outlive it.
struct Int8LinearLayer {
  const Weight<float>& weight;
  const Variable<float>& bias;
};

/// The parameters of a layer norm.
struct NormLayer {
  const Variable<float>&weight, &bias;
  double eps;
};

/// The layers behind attention in a post-norm block.
struct AfterAttentionLayers {
  Int8LinearLayer out;
  NormLayer norm1;
  Int8LinearLayer up, down;
  NormLayer norm2;
};

/// z = norm2(y + down(gelu(up(y)))), y = norm1(x + out(context)), for context (..., in) and x and z (..., D),
/// as one op: what is between the layers does not leave the cache. gelu is exact to within 3e-5, far less
/// than what `down` rounds away. It has no gradient, as linear() of such weights. Throws
/// ShapeError unless all fit together.
Variable<float> int8_after_attention(const Variable<float>& context, const Variable<float>& x,
                                     const AfterAttentionLayers& layers);

}  // namespace xgrad::detail

namespace xgrad::ops {

inline constexpr Op int8_after_attention("int8_after_attention",
                                         {"context", "x", "out_bias", "norm1_weight", "norm1_bias", "up_bias",
                                          "down_bias", "norm2_weight", "norm2_bias"},
                                         {"eps"});

}  // namespace xgrad::ops
