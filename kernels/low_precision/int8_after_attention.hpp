#pragma once

#include "int8.hpp"

namespace xgrad::kernels {

/// A linear layer with a weight of integers, and a bias, which may be null.
struct Int8Layer {
  const Int8Matrix* weight;
  const float* bias;
};

/// A layer norm, whose weight and bias may be null.
struct Int8LayersNorm {
  const float *weight, *bias;
  float eps;
};

/// The layers behind attention in a block of an encoder.
struct Int8AfterAttention {
  Int8Layer out;
  Int8LayersNorm norm1;
  Int8Layer up, down;
  Int8LayersNorm norm2;
};

/// z = norm2(y + down(gelu(up(y)))) with y = norm1(x + out(context)), for rows of context and of x and z
/// (rows, out's width). Some rows at a time go through all layers, so that what is between these stays in the
/// second cache level. A row depends neither on the other rows nor on the number of threads. Bound by flops.
void int8_after_attention_rows(const Int8AfterAttention& layers, const float* context, const float* x,
                               std::size_t rows, float* z);

}  // namespace xgrad::kernels
