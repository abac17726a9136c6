#pragma once

#include <cstddef>
#include <type_traits>

namespace xgrad::kernels {

/// What is normalised: the rows of x (rows, cols), or of x + residual where `residual` is not null. `weight`
/// and `bias` (cols) may be null.
template <typename T>
struct LayerNormInput {
  std::size_t rows, cols;
  const T *x, *residual, *weight, *bias;
};

/// The mean of each row and rstd = 1 / sqrt(variance + eps), with the biased variance: (rows) each. Without a
/// mean, where that is null, rows are not centred: mean is 0 below, and the variance is the mean square.
template <typename T>
struct LayerNormStatistics {
  T *mean, *rstd;
};

/// Where the gradients go, each of which may be null.
template <typename T>
struct LayerNormGrads {
  T *dx, *dweight, *dbias;
};

/// y = (x - mean) rstd weight + bias on each row; the statistics are kept for the gradient.
template <typename T>
void layer_norm_rows(const LayerNormInput<T>& input, std::type_identity_t<T> eps,
                     const LayerNormStatistics<T>& statistics, T* y);

/// Elements of scratch memory that the gradient needs.
std::size_t layer_norm_grad_scratch(std::size_t rows, std::size_t cols);

/// With xhat = (x - mean) rstd and g = dy weight:
/// dx = rstd (g - mean(g) - xhat mean(g xhat)), dweight = sum over rows of dy xhat, dbias = sum over rows of
/// dy; mean(g) is left out where rows are not centred. dx may be dy without a residual.
template <typename T>
void layer_norm_grad_rows(const T* dy, const LayerNormInput<T>& input,
                          const LayerNormStatistics<const T>& statistics, const LayerNormGrads<T>& grads,
                          T* scratch);

}  // namespace xgrad::kernels
