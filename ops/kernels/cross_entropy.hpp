#pragma once

#include <cstddef>
#include <cstdint>

namespace xgrad::kernels {

/// log_probs = log_softmax(logits) on rows (rows, cols); losses[r] = -log_probs[r, target[r]], and 0 where
/// the target is `ignore_index`. Every other target is in [0, cols).
template <typename T>
void cross_entropy_rows(const T* logits, const std::int64_t* target, std::int64_t ignore_index, T* log_probs,
                        T* losses, std::size_t rows, std::size_t cols);

/// dlogits[r] = row_weight[r] (exp(log_probs[r]) - onehot(target[r])), and zeros where ignored.
template <typename T>
void cross_entropy_grad_rows(const T* log_probs, const std::int64_t* target, std::int64_t ignore_index,
                             const T* row_weight, T* dlogits, std::size_t rows, std::size_t cols);

}  // namespace xgrad::kernels
