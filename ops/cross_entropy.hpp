#pragma once

#include <xgrad/graph/variable.hpp>

namespace xgrad {

enum class Reduction { none, mean, sum };

struct CrossEntropyOptions {
  std::int64_t ignore_index = -100;       ///< a target that counts for nothing
  Reduction reduction = Reduction::mean;  ///< mean: over the targets that are not ignored
};

/// loss = -log_softmax(logits)[target], for logits (C), (N, C) or (N, C, d1, ...) and target (), (N) or (N,
/// d1, ...).
///
/// dlogits = (softmax(logits) - onehot(target)) dloss, 0 where ignored; under the mean divided by the count.
/// The mean over no target at all is nan. Throws IndexError "cross_entropy: target must be in [0, 3), got 5
/// (3 classes)". https://pytorch.org/docs/stable/generated/torch.nn.functional.cross_entropy.html
template <class T>
Variable<T> cross_entropy(const Variable<T>& logits, const Ids& target, CrossEntropyOptions options = {});

}  // namespace xgrad
