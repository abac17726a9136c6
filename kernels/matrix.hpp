#pragma once

#include <cstddef>
#include <span>

#include "../base/detail/arrays/vectorized.hpp"

// How kernels are handed arrays: plain pointers together with what says where the elements are.
namespace xgrad::kernels {

/// A matrix (rows, cols): element (r, c) is data[r * stride + c], or data[c * stride + r] if `transposed`.
/// BLAS calls the stride the leading dimension.
template <typename T>
struct Matrix {
  T* data;
  std::size_t rows, cols, stride;
  bool transposed = false;

  constexpr Matrix(T* data, std::size_t rows, std::size_t cols) : Matrix(data, rows, cols, cols) {}
  constexpr Matrix(T* data, std::size_t rows, std::size_t cols, std::size_t stride, bool transposed = false)
      : data(data), rows(rows), cols(cols), stride(stride), transposed(transposed) {}

  operator Matrix<const T>() const { return {data, rows, cols, stride, transposed}; }

  /// The same memory, read the other way.
  XGRAD_INLINE Matrix transpose() const { return {data, cols, rows, stride, !transposed}; }

  /// `count` rows or columns, from `first` on.
  XGRAD_INLINE Matrix some_rows(std::size_t first, std::size_t count) const {
    return {data + first * (transposed ? 1 : stride), count, cols, stride, transposed};
  }
  XGRAD_INLINE Matrix some_cols(std::size_t first, std::size_t count) const {
    return {data + first * (transposed ? stride : 1), rows, count, stride, transposed};
  }
};

/// The lengths of an array's axes.
using Lengths = std::span<const std::size_t>;

/// An array that is walked with a stride, in elements, for each axis; 0 where it is broadcast.
template <typename T>
struct Strided {
  T* data;
  std::span<const std::ptrdiff_t> strides;
};

}  // namespace xgrad::kernels
