#include "cross_entropy.hpp"

#include <algorithm>

#include "../../base/detail/system/pieces.hpp"
#include "softmax_row.hpp"

namespace xgrad::kernels {

/// Bound by the exponentials.
XGRAD_PARALLEL_KERNEL(cross_entropy_rows, rows, 4 * cols,
                      (const T* logits, const CrossEntropyTarget<T>& to, T* log_probs, T* losses,
                       std::size_t rows, std::size_t cols),
                      (logits, to, log_probs, losses, rows, cols)) {
  const T* weight = to.weight;
  logits += begin * cols, log_probs += begin * cols;
  for (std::size_t r = begin; r < end; ++r, logits += cols, log_probs += cols) {
    const std::int64_t id = to.target[r];
    if (id == to.ignore_index) {
      losses[r] = 0;
      continue;
    }
    log_softmax_row(logits, log_probs, cols);
    losses[r] = weight == nullptr ? -log_probs[id] : weight[id] == 0 ? T(0) : -log_probs[id] * weight[id];
    if (to.smoothing == T(0)) continue;
    const T all = weight != nullptr
                      ? sum_lanes<T>(cols,
                                     [=](std::size_t c) XGRAD_INLINE_LAMBDA {
                                       return weight[c] == 0 ? T(0) : weight[c] * log_probs[c];
                                     })
                      : sum_lanes<T>(cols, [=](std::size_t c) XGRAD_INLINE_LAMBDA { return log_probs[c]; });
    const T own = to.smoothing == T(1) ? T(0) : (T(1) - to.smoothing) * losses[r];
    losses[r] = own - to.smoothing / static_cast<T>(cols) * all;
  }
}

/// Bound by the exponentials.
XGRAD_PARALLEL_KERNEL(cross_entropy_grad_rows, rows, 2 * cols,
                      (const T* log_probs, const CrossEntropyTarget<T>& to, const T* row_weight, T* dlogits,
                       std::size_t rows, std::size_t cols),
                      (log_probs, to, row_weight, dlogits, rows, cols)) {
  const T* weight = to.weight;
  const T share = to.smoothing / static_cast<T>(cols);  // of each class in q
  const T weights = weight != nullptr
                        ? sum_lanes<T>(cols, [=](std::size_t c) XGRAD_INLINE_LAMBDA { return weight[c]; })
                        : static_cast<T>(cols);
  log_probs += begin * cols, dlogits += begin * cols;
  for (std::size_t r = begin; r < end; ++r, log_probs += cols, dlogits += cols) {
    const std::int64_t id = to.target[r];
    if (id == to.ignore_index) {
      std::fill_n(dlogits, cols, T(0));
      continue;
    }
    const T own = row_weight[r] * (T(1) - to.smoothing) * (weight != nullptr ? weight[id] : T(1));
    const T even = row_weight[r] * share, total = own + even * weights;
    if (weight != nullptr) {
      XGRAD_INDEPENDENT
      for (std::size_t c = 0; c < cols; ++c)
        dlogits[c] = total * vectorized::exp(log_probs[c]) - vectorized::rounded(even * weight[c]);
    } else {
      XGRAD_INDEPENDENT
      for (std::size_t c = 0; c < cols; ++c) dlogits[c] = total * vectorized::exp(log_probs[c]) - even;
    }
    dlogits[id] -= own;
  }
}

}  // namespace xgrad::kernels
