#pragma once

#include <cstddef>

namespace xgrad::kernels {

// Rows of a (rows, cols) matrix; the output may be any of the inputs. An entry -inf has probability 0
// exactly; a row of -inf alone, or with nan or +inf in it, is nan.

/// y = exp(x - max) / sum(exp(x - max)).
template <typename T>
void softmax_rows(const T* x, T* y, std::size_t rows, std::size_t cols);
/// dx = y (dy - sum(dy y)).
template <typename T>
void softmax_grad_rows(const T* dy, const T* y, T* dx, std::size_t rows, std::size_t cols);

/// y = x - max - log(sum(exp(x - max))).
template <typename T>
void log_softmax_rows(const T* x, T* y, std::size_t rows, std::size_t cols);
/// dx = dy - exp(y) sum(dy).
template <typename T>
void log_softmax_grad_rows(const T* dy, const T* y, T* dx, std::size_t rows, std::size_t cols);

}  // namespace xgrad::kernels
