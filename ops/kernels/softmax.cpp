#include <xgrad/ops/kernels/lanes.hpp>
#include <xgrad/ops/kernels/softmax.hpp>
#include <xgrad/ops/kernels/softmax_row.hpp>

namespace xgrad::kernels {

// Each row goes through three or four loops but leaves memory once: bound by the exponentials, about 10 flops
// each.

XGRAD_KERNEL(void, softmax_rows, (const T* x, T* y, std::size_t rows, std::size_t cols), (x, y, rows, cols)) {
  for (std::size_t r = 0; r < rows; ++r, x += cols, y += cols) softmax_row(x, y, cols, max_lanes(x, cols));
}

XGRAD_KERNEL(void, softmax_grad_rows, (const T* dy, const T* y, T* dx, std::size_t rows, std::size_t cols),
             (dy, y, dx, rows, cols)) {
  for (std::size_t r = 0; r < rows; ++r, dy += cols, y += cols, dx += cols) {
    softmax_grad_row(dy, y, dx, cols);
  }
}

XGRAD_KERNEL(void, log_softmax_rows, (const T* x, T* y, std::size_t rows, std::size_t cols),
             (x, y, rows, cols)) {
  for (std::size_t r = 0; r < rows; ++r, x += cols, y += cols) log_softmax_row(x, y, cols);
}

XGRAD_KERNEL(void, log_softmax_grad_rows,
             (const T* dy, const T* y, T* dx, std::size_t rows, std::size_t cols), (dy, y, dx, rows, cols)) {
  for (std::size_t r = 0; r < rows; ++r, dy += cols, y += cols, dx += cols) {
    const T sum = sum_lanes<T>(cols, [dy](std::size_t i) XGRAD_INLINE_LAMBDA { return dy[i]; });
    XGRAD_INDEPENDENT
    for (std::size_t c = 0; c < cols; ++c) dx[c] = dy[c] - vectorized::exp(y[c]) * sum;
  }
}

}  // namespace xgrad::kernels
