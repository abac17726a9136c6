#include "losses.hpp"

#include <limits>

#include "../../graph/kernel_backward.hpp"
#include "../../kernels/pointwise/binary.hpp"
#include "../../kernels/pointwise/elementwise.hpp"
#include "../../kernels/rows/reduce.hpp"
#include "../index/indexing.hpp"
#include "../index/masked_fill.hpp"
#include "../pointwise/arithmetic.hpp"
#include "../pointwise/detail/pointwise.hpp"
#include "../pointwise/elementwise.hpp"
#include "../pointwise/logarithms.hpp"
#include "../shape/shapes.hpp"
#include "detail/losses.hpp"

namespace xgrad {
namespace {

using detail::check_operands, detail::reduced_losses;

template <class T>
Variable<T> difference(const char* op, const Variable<T>& input, const Variable<T>& target) {
  check_operands(op, input, target);
  return input - target;
}

/// d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2).
template <class T>
Variable<T> huber(const Variable<T>& d, T delta) {
  return detail::unary(
      ops::huber, kernels::huber<T>, kernels::huber_grad<T>, d, d,
      [delta](const Variable<T>& dy, const Variable<T>& d) { return dy * clamp(d, -delta, delta); }, delta);
}

/// -(target ln p + (1 - target) ln(1 - p)), logarithms at least -100.
template <class T>
Variable<T> binary_cross_entropies(const Variable<T>& p, const Variable<T>& target) {
  Variable<T> y = detail::empty<T>(p.shape());
  kernels::binary_cross_entropy(detail::data(p), detail::data(target), detail::data(y), y.size());
  const auto dtarget = [](const Variable<T>& dy, const Variable<T>& p) {
    return dy * (clamp(log1p(-p), T{-100}) - clamp(log(p), T{-100}));
  };
  return record<T>(ops::binary_cross_entropy, std::move(y), Inputs(p, target), Saved(p, target),
                   KernelBackward(
                       [dtarget](const Variable<T>& dy, Needs needs, const Variable<T>& p,
                                 const Variable<T>& target) -> Grads<T, 2> {
                         Grads<T, 2> grads;
                         if (needs[0]) {
                           grads[0] = detail::empty<T>(p.shape());
                           kernels::binary_cross_entropy_grad(detail::data(dy), detail::data(p),
                                                              detail::data(target), detail::data(grads[0]),
                                                              p.size());
                         }
                         if (needs[1]) grads[1] = dtarget(dy, p);
                         return grads;
                       },
                       [dtarget](const Variable<T>& dy, Needs needs, const Variable<T>& p,
                                 const Variable<T>& target) -> Grads<T, 2> {
                         const Variable<T> slope = clamp((T{1} - p) * p, T(1e-12));
                         return {needs[0] ? dy * (p - target) / slope : Variable<T>(),
                                 needs[1] ? dtarget(dy, p) : Variable<T>()};
                       }));
}

/// e^target (target - input), 0 where e^target is 0 of infinities.
template <class T>
Variable<T> divergences_of_logs(const Variable<T>& input, const Variable<T>& target) {
  const Variable<T> y = exp(target) * (target - input);
  if (!detail::has_nan(y)) return y;
  const Mask impossible = xt::equal(target.value(), -std::numeric_limits<T>::infinity());
  const Variable<T> finite = masked_fill(target, impossible, T{0});
  return exp(target) * (finite - masked_fill(input, Mask(impossible && xt::isinf(input.value())), T{0}));
}

/// -(pos_weight target ln sigmoid(x) + (1 - target) ln(1 - sigmoid(x))); pos_weight may be undefined.
template <class T>
Variable<T> logit_cross_entropies(const Variable<T>& x, const Variable<T>& target,
                                  const Variable<T>& pos_weight) {
  const T never = std::numeric_limits<T>::infinity();
  const Variable<T> positive = softplus(-x, T{1}, never);
  Variable<T> factor;
  if (pos_weight.defined()) factor = (pos_weight - T{1}) * target + T{1};
  const Variable<T> y = (T{1} - target) * x + (factor.defined() ? positive * factor : positive);
  if (!detail::has_nan(y)) return y;
  // Of infinite logits: (1 - target) x + softplus(-x) is not (1 - target) softplus(x) + target softplus(-x).
  return detail::weighted(T{1} - target, softplus(x, T{1}, never)) +
         detail::weighted(pos_weight.defined() ? pos_weight * target : target, positive);
}

}  // namespace

template <class T>
Variable<T> mse_loss(const Variable<T>& input, const std::type_identity_t<Variable<T>>& target,
                     Reduction reduction) {
  check_operands("mse_loss", input, target);
  return reduced_losses(detail::squared_difference(input, target), reduction);
}

template <class T>
Variable<T> l1_loss(const Variable<T>& input, const std::type_identity_t<Variable<T>>& target,
                    Reduction reduction) {
  return reduced_losses(abs(difference("l1_loss", input, target)), reduction);
}

template <class T>
Variable<T> huber_loss(const Variable<T>& input, const std::type_identity_t<Variable<T>>& target,
                       Reduction reduction, std::type_identity_t<T> delta) {
  if (!(delta > 0)) detail::fail<ValueError>("huber_loss: delta must be positive, got ", delta);
  return reduced_losses(huber(difference("huber_loss", input, target), delta), reduction);
}

template <class T>
Variable<T> smooth_l1_loss(const Variable<T>& input, const std::type_identity_t<Variable<T>>& target,
                           Reduction reduction, std::type_identity_t<T> beta) {
  if (!(beta >= 0)) detail::fail<ValueError>("smooth_l1_loss: beta must not be negative, got ", beta);
  const Variable<T> d = difference("smooth_l1_loss", input, target);
  return reduced_losses(beta == 0 ? abs(d) : huber(d, beta) / beta, reduction);
}

template <class T>
Variable<T> kl_div(const Variable<T>& input, const std::type_identity_t<Variable<T>>& target,
                   KlReduction reduction, KlDivOptions options) {
  check_operands("kl_div", input, target);
  const Variable<T> losses = options.log_target ? divergences_of_logs(input, target)
                                                : xlogy(target, target) - detail::weighted(target, input);
  if (reduction == KlReduction::none) return losses;
  if (reduction == KlReduction::mean) return mean(losses);
  const Variable<T> total = sum(losses);
  if (reduction == KlReduction::sum) return total;
  return total / (input.dimension() == 0 ? T{1} : static_cast<T>(input.shape()[0]));
}

template <class T>
Variable<T> binary_cross_entropy(const Variable<T>& input, const std::type_identity_t<Variable<T>>& target,
                                 const ProbabilityCrossEntropyOptions<std::type_identity_t<T>>& options) {
  if (!same_shape(input.shape(), target.shape())) {
    detail::fail<ShapeError>("binary_cross_entropy: input and target must have the same shape, got ",
                             input.shape(), " and ", target.shape());
  }
  if (input.size() > 0) {
    T least, most;
    kernels::min_middle(detail::data(input), 1, input.size(), 1, &least);
    kernels::max_middle(detail::data(input), 1, input.size(), 1, &most);
    if (least < 0 || most > 1) {
      detail::fail<ValueError>("binary_cross_entropy: input must be in [0, 1], got ",
                               least < 0 ? least : most);
    }
  }
  const Variable<T> losses =
      detail::weighted_losses("binary_cross_entropy", binary_cross_entropies(input, target), options.weight);
  return reduced_losses(losses, options.reduction);
}

template <class T>
Variable<T> binary_cross_entropy_with_logits(
    const Variable<T>& input, const std::type_identity_t<Variable<T>>& target,
    const BinaryCrossEntropyOptions<std::type_identity_t<T>>& options) {
  if (!same_shape(input.shape(), target.shape())) {
    detail::fail<ShapeError>(
        "binary_cross_entropy_with_logits: input and target must have the same shape, got ", input.shape(),
        " and ", target.shape());
  }
  const Variable<T> losses =
      detail::weighted_losses("binary_cross_entropy_with_logits",
                              logit_cross_entropies(input, target, options.pos_weight), options.weight);
  return reduced_losses(losses, options.reduction);
}

template <class T>
Variable<T> nll_loss(const Variable<T>& log_probs, const Ids& target,
                     const NllLossOptions<std::type_identity_t<T>>& options) {
  const Shape& shape = log_probs.shape();
  if (shape.empty()) detail::fail<ShapeError>("nll_loss: log_probs need an axis of classes, got ()");
  const std::size_t class_axis = shape.size() == 1 ? 0 : 1, classes = shape[class_axis];
  Shape expected = shape, column = shape;
  expected.erase(expected.begin() + class_axis);
  column[class_axis] = 1;
  if (target.shape() != expected) {
    detail::fail<ShapeError>(
        "nll_loss: target must have the shape of log_probs without the class axis, got log_probs ", shape,
        " and target ", target.shape());
  }
  if (options.weight.defined() && options.weight.shape() != Shape{classes}) {
    detail::fail<ShapeError>("nll_loss: weight must be (", classes, "), got ", options.weight.shape());
  }

  Ids index = Ids::from_shape(column);
  Mask ignored = Mask::from_shape(expected);
  Array<T> weights = Array<T>::from_shape(expected);
  const T* class_weight = options.weight.defined() ? options.weight.value().data() : nullptr;
  bool any_ignored = false;
  for (std::size_t i = 0; i < target.size(); ++i) {
    const std::int64_t id = target.data()[i];
    const bool ignore = id == options.ignore_index;
    if (!ignore && (id < 0 || id >= static_cast<std::int64_t>(classes)))
      detail::fail<IndexError>("nll_loss: target must be in [0, ", classes, "), got ", id, " (", classes,
                               " classes)");
    const T weight = ignore ? T{0} : class_weight != nullptr ? class_weight[id] : T{1};
    ignored.data()[i] = weight == 0;
    any_ignored |= weight == 0;
    index.data()[i] = ignore ? 0 : id;
    weights.data()[i] = weight;
  }
  const Variable<T> count(std::move(weights));
  const Variable<T> picked = classes > 0
                                 ? reshape(gather(log_probs, static_cast<int>(class_axis), index), expected)
                                 : Variable<T>(Array<T>(expected, T{0}));
  // An ignored -inf is no loss; -0 times -0 is 0.
  const Variable<T> weighted = (any_ignored ? masked_fill(picked, ignored, T(-0.0)) : picked) * -count;
  if (options.reduction == Reduction::none) return weighted;
  return options.reduction == Reduction::mean ? sum(weighted) / sum(count) : sum(weighted);
}

#define XGRAD_INSTANTIATE(T)                                                                      \
  template Variable<T> mse_loss(const Variable<T>&, const Variable<T>&, Reduction);               \
  template Variable<T> l1_loss(const Variable<T>&, const Variable<T>&, Reduction);                \
  template Variable<T> huber_loss(const Variable<T>&, const Variable<T>&, Reduction, T);          \
  template Variable<T> smooth_l1_loss(const Variable<T>&, const Variable<T>&, Reduction, T);      \
  template Variable<T> kl_div(const Variable<T>&, const Variable<T>&, KlReduction, KlDivOptions); \
  template Variable<T> binary_cross_entropy(const Variable<T>&, const Variable<T>&,               \
                                            const ProbabilityCrossEntropyOptions<T>&);            \
  template Variable<T> binary_cross_entropy_with_logits(const Variable<T>&, const Variable<T>&,   \
                                                        const BinaryCrossEntropyOptions<T>&);     \
  template Variable<T> nll_loss(const Variable<T>&, const Ids&, const NllLossOptions<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
