#include <algorithm>
#include <xgrad/ops/kernels/cross_entropy.hpp>
#include <xgrad/ops/kernels/softmax_row.hpp>

namespace xgrad::kernels {

/// Bound by the exponentials.
XGRAD_KERNEL(void, cross_entropy_rows,
             (const T* logits, const std::int64_t* target, std::int64_t ignore_index, T* log_probs, T* losses,
              std::size_t rows, std::size_t cols),
             (logits, target, ignore_index, log_probs, losses, rows, cols)) {
  for (std::size_t r = 0; r < rows; ++r, logits += cols, log_probs += cols) {
    log_softmax_row(logits, log_probs, cols);
    losses[r] = target[r] == ignore_index ? T(0) : -log_probs[target[r]];
  }
}

/// Bound by the exponentials.
XGRAD_KERNEL(void, cross_entropy_grad_rows,
             (const T* log_probs, const std::int64_t* target, std::int64_t ignore_index, const T* row_weight,
              T* dlogits, std::size_t rows, std::size_t cols),
             (log_probs, target, ignore_index, row_weight, dlogits, rows, cols)) {
  for (std::size_t r = 0; r < rows; ++r, log_probs += cols, dlogits += cols) {
    if (target[r] == ignore_index) {
      std::fill_n(dlogits, cols, T(0));
      continue;
    }
    const T weight = row_weight[r];
    XGRAD_INDEPENDENT
    for (std::size_t c = 0; c < cols; ++c) dlogits[c] = weight * vectorized::exp(log_probs[c]);
    dlogits[target[r]] -= weight;
  }
}

}  // namespace xgrad::kernels
