#include "softmax.hpp"

#include "../../base/detail/system/pieces.hpp"
#include "../lanes.hpp"
#include "softmax_row.hpp"

namespace xgrad::kernels {

// Each row goes through three or four loops but leaves memory once: bound by the exponentials, about 10 flops
// each.

XGRAD_PARALLEL_KERNEL(softmax_rows, rows, 4 * cols, (const T* x, T* y, std::size_t rows, std::size_t cols),
                      (x, y, rows, cols)) {
  x += begin * cols, y += begin * cols;
  for (; begin < end; ++begin, x += cols, y += cols) softmax_row(x, y, cols, max_lanes(x, cols));
}

XGRAD_PARALLEL_KERNEL(softmax_grad_rows, rows, cols,
                      (const T* dy, const T* y, T* dx, std::size_t rows, std::size_t cols),
                      (dy, y, dx, rows, cols)) {
  with_length(cols, [&](auto n) XGRAD_INLINE_LAMBDA {
    for (; begin < end; ++begin) softmax_grad_row(dy + begin * n, y + begin * n, dx + begin * n, n);
  });
}

XGRAD_PARALLEL_KERNEL(log_softmax_rows, rows, 4 * cols,
                      (const T* x, T* y, std::size_t rows, std::size_t cols), (x, y, rows, cols)) {
  x += begin * cols, y += begin * cols;
  for (; begin < end; ++begin, x += cols, y += cols) log_softmax_row(x, y, cols);
}

XGRAD_PARALLEL_KERNEL(log_softmax_grad_rows, rows, 2 * cols,
                      (const T* dy, const T* y, T* dx, std::size_t rows, std::size_t cols),
                      (dy, y, dx, rows, cols)) {
  dy += begin * cols, y += begin * cols, dx += begin * cols;
  for (; begin < end; ++begin, dy += cols, y += cols, dx += cols) {
    const T sum = sum_lanes<T>(cols, [dy](std::size_t i) XGRAD_INLINE_LAMBDA { return dy[i]; });
    XGRAD_INDEPENDENT
    for (std::size_t c = 0; c < cols; ++c) dx[c] = dy[c] - vectorized::exp(y[c]) * sum;
  }
}

}  // namespace xgrad::kernels
