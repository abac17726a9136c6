#pragma once

#include "../../base/detail/by_name.hpp"
#include "../../graph/op.hpp"
#include "../product/weight.hpp"
#include "losses.hpp"

namespace xgrad {

template <class T>
struct LinearCrossEntropyOptions {
  detail::ByName by_name = {};
  Variable<T> linear_bias = {};           ///< added to the logits (C)
  Variable<T> weight = {};                ///< of each class (C); it gets no gradient
  std::int64_t ignore_index = -100;       ///< targets with this id are ignored
  Reduction reduction = Reduction::mean;  ///< mean: over the weights of the targets not ignored
  double label_smoothing = 0;             ///< share of each target that all classes get evenly, in [0, 1]
};

/// loss = cross_entropy(linear(x, weight, linear_bias), target), of which only some rows of logits are held
/// at once: beside weight and its gradient, memory does not grow with the number of classes (Hsu et al. 2024,
/// arXiv:2410.10989, section 3.2).
///
/// x (..., in), weight (C, in), target (...) in [0, C); the loss is a number, or (...) without reduction.
/// With dlogits as in cross_entropy: dx = dlogits weight, dweight = dlogits^T x, dlinear_bias = the sum of
/// dlogits' rows. A mean or a sum computes these with the loss, and its backward multiplies them by dloss;
/// without a reduction the backward computes the logits again. A weight of fewer bits has no gradient, and
/// with one of integers nothing has: throws ValueError where that would be recorded. Throws ShapeError,
/// ValueError and IndexError as linear and cross_entropy do.
/// https://pytorch.org/docs/main/generated/torch.nn.functional.linear_cross_entropy.html
template <class T>
Variable<T> linear_cross_entropy(const Variable<T>& x, const std::type_identity_t<Weight<T>>& weight,
                                 const Ids& target,
                                 const LinearCrossEntropyOptions<std::type_identity_t<T>>& options = {});

namespace ops {

inline constexpr Op linear_cross_entropy("linear_cross_entropy", {"x", "weight", "linear_bias"},
                                         {"target", "ignore_index", "label_smoothing", "reduction",
                                          "class_weight"});

}  // namespace ops
}  // namespace xgrad
