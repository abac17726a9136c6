#pragma once

#include <cstddef>
#include <type_traits>

namespace xgrad::kernels {

/// y = (x - mean) rstd weight + bias on each row of x (rows, cols), with rstd = 1 / sqrt(variance + eps) and
/// the biased variance. `mean` and `rstd` (rows) are kept for the gradient; `weight` and `bias` (cols) may be
/// null. With a `residual` (rows, cols) that is not null, of x + residual instead of x.
template <typename T>
void layer_norm_rows(const T* x, const T* residual, const T* weight, const T* bias,
                     std::type_identity_t<T> eps, T* y, T* mean, T* rstd, std::size_t rows, std::size_t cols);

/// Elements of scratch memory that the gradient needs.
std::size_t layer_norm_grad_scratch(std::size_t rows, std::size_t cols);

/// With xhat = (x - mean) rstd and g = dy weight:
/// dx = rstd (g - mean(g) - xhat mean(g xhat)), dweight = sum over rows of dy xhat, dbias = sum over rows of
/// dy. `residual`, `weight`, `dx`, `dweight` and `dbias` may be null; dx may be dy without a residual.
template <typename T>
void layer_norm_grad_rows(const T* dy, const T* x, const T* residual, const T* mean, const T* rstd,
                          const T* weight, T* dx, T* dweight, T* dbias, T* scratch, std::size_t rows,
                          std::size_t cols);

}  // namespace xgrad::kernels
