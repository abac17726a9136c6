#pragma once

#include <cstddef>

namespace xgrad::kernels {

/// y (rows, out) = x weight^T + bias, for x (rows, in), weight (out, in) and bias (out), which may be null.
template <typename T>
void linear_rows(const T* x, const T* weight, const T* bias, T* y, std::size_t rows, std::size_t in,
                 std::size_t out);

/// y = max(0, x weight^T + bias).
template <typename T>
void linear_relu_rows(const T* x, const T* weight, const T* bias, T* y, std::size_t rows, std::size_t in,
                      std::size_t out);

/// dx = dy weight, or dx += dy weight if `adds_dx`, dweight = dy^T x, dbias = the sums of dy's columns; each
/// may be null.
template <typename T>
void linear_grad_rows(const T* dy, const T* x, const T* weight, T* dx, bool adds_dx, T* dweight, T* dbias,
                      std::size_t rows, std::size_t in, std::size_t out);

}  // namespace xgrad::kernels
