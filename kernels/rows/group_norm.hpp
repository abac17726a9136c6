#pragma once

#include "layer_norm.hpp"

namespace xgrad::kernels {

/// What is normalised: each row of x (rows, channels, size), the channels of a group of one sample, where
/// `groups` rows are of a sample. `weight` and `bias` (groups, channels) may be null.
template <typename T>
struct GroupNormInput {
  std::size_t rows, groups, channels, size;
  const T *x, *weight, *bias;
};

/// y = (x - mean) rstd weight + bias on each row, with the statistics of layer_norm_rows.
template <typename T>
void group_norm_rows(const GroupNormInput<T>& input, std::type_identity_t<T> eps,
                     const LayerNormStatistics<T>& statistics, T* y);

/// Elements of scratch memory that the gradient needs.
template <typename T>
std::size_t group_norm_grad_scratch(const GroupNormInput<T>& input) {
  return 2 * input.rows * input.channels;
}

/// The gradients of layer_norm_rows, where dweight and dbias are sums over the samples and over each channel.
template <typename T>
void group_norm_grad_rows(const T* dy, const GroupNormInput<T>& input,
                          const LayerNormStatistics<const T>& statistics, const LayerNormGrads<T>& grads,
                          T* scratch);

}  // namespace xgrad::kernels
