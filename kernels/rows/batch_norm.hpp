#pragma once

#include "layer_norm.hpp"

namespace xgrad::kernels {

/// What is normalised: each channel of x (batch, channels, size). `weight` and `bias` (channels) may be null.
template <typename T>
struct BatchNormInput {
  std::size_t batch, channels, size;
  const T *x, *weight, *bias;
};

/// y = (x - mean) rstd weight + bias on each channel, with the statistics of all its elements, (channels)
/// each; `variance` is the biased one, and rstd nan where that overflows.
template <typename T>
void batch_norm(const BatchNormInput<T>& input, std::type_identity_t<T> eps,
                const LayerNormStatistics<T>& statistics, T* variance, T* y);

/// With xhat = (x - mean) rstd and the means over each channel:
/// dx = weight rstd (dy - mean(dy) - xhat mean(dy xhat)), dweight = sum of dy xhat, dbias = sum of dy.
template <typename T>
void batch_norm_grad(const T* dy, const BatchNormInput<T>& input,
                     const LayerNormStatistics<const T>& statistics, const LayerNormGrads<T>& grads);

}  // namespace xgrad::kernels
