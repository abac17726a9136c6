#include "permute.hpp"

#include <algorithm>

#include "../../base/detail/system/pieces.hpp"
#include "axes.hpp"

namespace xgrad::kernels {

namespace {

/// y (rows, cols), row stride `y_stride`, = transpose of x (cols, rows), row stride `x_stride`. Squares of x
/// are copied together first, where strides that are powers of 2 do not push each other out of the cache, and
/// lines of y are fetched before they are written. Bound by the latency of y's lines.
template <typename T>
void transpose_part(const T* x, std::ptrdiff_t x_stride, T* y, std::size_t y_stride, std::size_t rows,
                    std::size_t cols) {
  constexpr std::size_t side = 16, ahead = 2 * side;
  T square[side * side];
  for (std::size_t left = 0; left < cols; left += side) {
    const std::size_t width = std::min(side, cols - left);
    for (std::size_t top = 0; top < rows; top += side) {
      const std::size_t height = std::min(side, rows - top);
      for (std::size_t r = top + ahead; r < std::min(rows, top + ahead + side); ++r)
        __builtin_prefetch(y + r * y_stride + left, 1);
      for (std::size_t c = 0; c < width; ++c)
        std::copy_n(x + static_cast<std::ptrdiff_t>(left + c) * x_stride + top, height, square + c * side);
      for (std::size_t r = 0; r < height; ++r)
        for (std::size_t c = 0; c < width; ++c) y[(top + r) * y_stride + left + c] = square[c * side + r];
    }
  }
}

/// The same, divided into blocks of rows of y.
template <typename T>
void transpose(const T* x, std::ptrdiff_t x_stride, T* y, std::size_t y_stride, std::size_t rows,
               std::size_t cols) {
  constexpr std::size_t height = 64;
  parallel_pieces(ceil_div(rows, height), height * cols, [=](std::size_t begin, std::size_t end) {
    const std::size_t top = begin * height, bottom = std::min(rows, end * height);
    transpose_part(x + top, x_stride, y + top * y_stride, y_stride, bottom - top, cols);
  });
}

/// y[r * y_row + c] = x[r * x_row + c * x_col]; bound by bandwidth when x_col is 1, -1 or 0.
XGRAD_PARALLEL_KERNEL(copy_strided_rows, rows, cols,
                      (const T* x, std::ptrdiff_t x_row, std::ptrdiff_t x_col, T* y, std::ptrdiff_t y_row,
                       std::size_t rows, std::size_t cols),
                      (x, x_row, x_col, y, y_row, rows, cols)) {
  const auto n = static_cast<std::ptrdiff_t>(cols), first = static_cast<std::ptrdiff_t>(begin);
  x += first * x_row, y += first * y_row;
  for (; begin < end; ++begin, x += x_row, y += y_row) {
    if (x_col == 1) {
      XGRAD_INDEPENDENT
      for (std::ptrdiff_t i = 0; i < n; ++i) y[i] = x[i];
    } else if (x_col == -1) {
      XGRAD_INDEPENDENT
      for (std::ptrdiff_t i = 0; i < n; ++i) y[i] = x[-i];
    } else if (x_col == 0) {
      const T constant = *x;
      XGRAD_INDEPENDENT
      for (std::ptrdiff_t i = 0; i < n; ++i) y[i] = constant;
    } else {
      for (std::ptrdiff_t i = 0; i < n; ++i) y[i] = x[i * x_col];
    }
  }
}

/// The same; a row that is long enough is divided, too.
template <typename T>
void copy_strided(const T* x, std::ptrdiff_t x_row, std::ptrdiff_t x_col, T* y, std::ptrdiff_t y_row,
                  std::size_t rows, std::size_t cols) {
  if (is_one_piece(cols, 1)) return copy_strided_rows(x, x_row, x_col, y, y_row, rows, cols);
  for (std::size_t r = 0; r < rows; ++r, x += x_row, y += y_row) {
    parallel_pieces(cols, 1, [=](std::size_t begin, std::size_t end) {
      copy_strided_rows(x + static_cast<std::ptrdiff_t>(begin) * x_col, 0, x_col, y + begin, 0, 1,
                        end - begin);
    });
  }
}

/// y[i * stride] += x[i]; bound by bandwidth.
XGRAD_PARALLEL_KERNEL(add_to_strided, n, 1, (const T* x, T* y, std::ptrdiff_t stride, std::size_t n),
                      (x, y, stride, n)) {
  const auto first = static_cast<std::ptrdiff_t>(begin), size = static_cast<std::ptrdiff_t>(end);
  if (stride == 1) {
    XGRAD_INDEPENDENT
    for (std::ptrdiff_t i = first; i < size; ++i) y[i] += x[i];
  } else {
    for (std::ptrdiff_t i = first; i < size; ++i) y[i * stride] += x[i];
  }
}

/// Puts the axis along which x is contiguous, if it is not the last, second to last; false if there is none.
bool bring_unit_stride_beside_last(Axes<2>& axes) {
  const std::size_t last = axes.rank - 1;
  if (axes.stride(0, last) == 0 || axes.stride(0, last) == 1) return false;
  for (std::size_t axis = 0; axis < last; ++axis) {
    if (axes.stride(0, axis) != 1) continue;
    std::swap(axes.shape[axis], axes.shape[last - 1]);
    std::swap(axes.strides[axis], axes.strides[last - 1]);
    return true;
  }
  return false;
}

}  // namespace

/// Bound by latency: for arrays of some hundred elements.
XGRAD_PARALLEL_KERNEL(repeat_middle, outer, n* inner,
                      (const T* x, std::size_t outer, std::size_t n, std::size_t inner, T* y),
                      (x, outer, n, inner, y)) {
  x += begin * inner, y += begin * n * inner;
  for (; begin < end; ++begin, x += inner) {
    if (inner == 1) {
      const T constant = *x;
      XGRAD_INDEPENDENT
      for (std::size_t i = 0; i < n; ++i) y[i] = constant;
      y += n;
      continue;
    }
    for (std::size_t i = 0; i < n; ++i, y += inner) {
      XGRAD_INDEPENDENT
      for (std::size_t c = 0; c < inner; ++c) y[c] = x[c];
    }
  }
}

template <typename T>
void permute(Lengths shape, const Strided<const T>& x, T* y) {
  const Axes<1> merged = merge_axes<1>(shape, {x.strides}, 2);
  Axes<2> axes{};  // operand 0 is x, operand 1 is y
  axes.rank = merged.rank;
  std::ptrdiff_t y_stride = 1;
  for (std::size_t axis = merged.rank; axis-- > 0;) {
    axes.shape[axis] = merged.size(axis);
    axes.strides[axis] = {merged.stride(0, axis), y_stride};
    y_stride *= static_cast<std::ptrdiff_t>(merged.size(axis));
  }
  const bool transposes = bring_unit_stride_beside_last(axes);
  const std::size_t last = axes.rank - 1;
  const std::size_t rows = axes.size(last - 1), cols = axes.size(last);
  const std::ptrdiff_t x_row = axes.stride(0, last - 1), x_col = axes.stride(0, last);
  const std::ptrdiff_t y_row = axes.stride(1, last - 1);
  parallel_outer(axes, 2, [&](const auto& offset, std::size_t) {
    const T* from = x.data + offset[0];
    T* to = y + offset[1];
    if (transposes) return transpose(from, x_col, to, static_cast<std::size_t>(y_row), rows, cols);
    copy_strided(from, x_row, x_col, to, y_row, rows, cols);
  });
}

template <typename T>
void copy(Lengths shape, const Strided<const T>& x, const Strided<T>& y) {
  Axes<2> axes = merge_axes<2>(shape, {x.strides, y.strides}, 2);
  if (axes.stride(1, axes.rank - 1) != 1) axes.push(1, {1, 1});  // the last axis had length 1, and went
  const std::size_t last = axes.rank - 1;
  parallel_outer(axes, 2, [&](const auto& offset, std::size_t) {
    copy_strided(x.data + offset[0], axes.stride(0, last - 1), axes.stride(0, last), y.data + offset[1],
                 axes.stride(1, last - 1), axes.size(last - 1), axes.size(last));
  });
}

template <typename T>
void copy_rows(const Matrix<const T>& x, const Matrix<T>& y) {
  copy_strided(x.data, static_cast<std::ptrdiff_t>(x.stride), 1, y.data,
               static_cast<std::ptrdiff_t>(y.stride), x.rows, x.cols);
}

template <typename T>
void scatter_add(Lengths shape, const T* x, const Strided<T>& y) {
  const Axes<1> axes = merge_axes<1>(shape, {y.strides}, 1);
  const std::size_t n = axes.size(axes.rank - 1);
  const std::ptrdiff_t stride = axes.stride(0, axes.rank - 1);
  parallel_outer(axes, 1, [&](const auto& offset, std::size_t number) {
    add_to_strided(x + number * n, y.data + offset[0], stride, n);
  });
}

#define XGRAD_INSTANTIATE(T)                                               \
  template void permute(Lengths, const Strided<const T>&, T*);             \
  template void copy(Lengths, const Strided<const T>&, const Strided<T>&); \
  template void copy_rows(const Matrix<const T>&, const Matrix<T>&);       \
  template void scatter_add(Lengths, const T*, const Strided<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::kernels
