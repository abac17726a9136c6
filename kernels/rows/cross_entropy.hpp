#pragma once

#include <cstddef>
#include <cstdint>

namespace xgrad::kernels {

/// What each row is compared with: the class target[r] with the share 1 - smoothing, and all classes evenly
/// with the rest, each times its `weight`, which may be null for ones.
template <typename T>
struct CrossEntropyTarget {
  const std::int64_t* target;
  std::int64_t ignore_index;  ///< every other target is in [0, cols)
  const T* weight;
  T smoothing;
};

/// log_probs = log_softmax(logits) on rows (rows, cols); losses[r] = -sum(q log_probs[r]), q as above. Where
/// the target is ignored, the loss is 0 and log_probs is not written.
template <typename T>
void cross_entropy_rows(const T* logits, const CrossEntropyTarget<T>& to, T* log_probs, T* losses,
                        std::size_t rows, std::size_t cols);

/// dlogits[r] = row_weight[r] (exp(log_probs[r]) sum(q) - q), and zeros where ignored.
template <typename T>
void cross_entropy_grad_rows(const T* log_probs, const CrossEntropyTarget<T>& to, const T* row_weight,
                             T* dlogits, std::size_t rows, std::size_t cols);

}  // namespace xgrad::kernels
