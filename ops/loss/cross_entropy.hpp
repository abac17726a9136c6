#pragma once

#include "../../base/detail/by_name.hpp"
#include "../../graph/op.hpp"
#include "losses.hpp"

namespace xgrad {

template <class T>
struct CrossEntropyOptions {
  detail::ByName by_name = {};
  Variable<T> weight = {};                ///< of each class (C); it gets no gradient
  std::int64_t ignore_index = -100;       ///< targets with this id are ignored
  Reduction reduction = Reduction::mean;  ///< mean: over the weights of the targets not ignored
  double label_smoothing = 0;             ///< share of each target that all classes get evenly, in [0, 1]
};

/// loss = -log_softmax(logits)[target], for logits (C), (N, C) or (N, C, d1, ...) and target (), (N) or (N,
/// d1, ...).
///
/// dlogits = (softmax(logits) - onehot(target)) dloss, 0 where ignored; divided by the count for the mean.
/// The mean over no target is nan. Throws IndexError
/// "cross_entropy: target must be in [0, 3), got 5 (3 classes)".
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.cross_entropy.html
template <class T>
Variable<T> cross_entropy(const Variable<T>& logits, const Ids& target,
                          const CrossEntropyOptions<std::type_identity_t<T>>& options = {});

/// cross_entropy for targets that are probabilities of the classes, in the shape of logits: -sum(target
/// weight log_softmax) over the classes; the mean divides by the number of such sums, and nothing is ignored.
/// Throws ValueError for an ignore_index of 0 or more.
template <class T>
Variable<T> cross_entropy(const Variable<T>& logits, const Variable<T>& target,
                          const CrossEntropyOptions<std::type_identity_t<T>>& options = {});
template <class T, detail::FloatExpression E>
Variable<T> cross_entropy(const Variable<T>& logits, const E& target,
                          const CrossEntropyOptions<std::type_identity_t<T>>& options = {}) {
  return cross_entropy(logits, Variable<T>(target), options);
}
/// A mask is neither.
template <class T, detail::NoIds E>
requires(!detail::FloatExpression<E>) Variable<T> cross_entropy(
    const Variable<T>& logits, const E& target,
    const CrossEntropyOptions<std::type_identity_t<T>>& options = {})
= delete;

namespace ops {

inline constexpr Op cross_entropy("cross_entropy", {"logits"},
                                  {"target", "ignore_index", "label_smoothing", "reduction", "weight"});

}  // namespace ops
}  // namespace xgrad
