#pragma once

#include "../matrix.hpp"

namespace xgrad::kernels {

/// y (rows, out) = x weight^T + bias, for x (rows, in), weight (out, in) and bias (out), which may be null.
template <typename T>
void linear_rows(const Matrix<const T>& x, const Matrix<const T>& weight, const T* bias, T* y);

/// y (rows, cols) += bias (cols).
template <typename T>
void add_to_rows(T* y, const T* bias, std::size_t rows, std::size_t cols);

/// y = max(0, x weight^T + bias).
template <typename T>
void linear_relu_rows(const Matrix<const T>& x, const Matrix<const T>& weight, const T* bias, T* y);

/// Where linear's gradients go, each of which may be null. `adds_dx`: dx is added to.
template <typename T>
struct LinearGrads {
  T* dx;
  bool adds_dx;
  T *dweight, *dbias;
};

/// dx = dy weight, dweight = dy^T x, dbias = the sums of dy's columns.
template <typename T>
void linear_grad_rows(const Matrix<const T>& dy, const Matrix<const T>& x, const Matrix<const T>& weight,
                      const LinearGrads<T>& grads);

}  // namespace xgrad::kernels
