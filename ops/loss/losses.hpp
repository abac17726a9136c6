#pragma once

#include "../../base/detail/by_name.hpp"
#include "../../base/dims.hpp"
#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

// Where two operands broadcast, one must have the shape of the result: otherwise ShapeError. What has the
// weight or the probability 0 has the loss 0, even if it is infinite (nan in PyTorch).
// https://pytorch.org/docs/stable/nn.functional.html#loss-functions

namespace xgrad {

/// Reduction of the losses of the elements: none, their mean or their sum.
enum class Reduction { none, mean, sum };

/// loss = (input - target)^2, reduced; dinput = 2 (input - target) dloss, dtarget = -dinput, divided by the
/// number of elements for the mean. One must broadcast to the other.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.mse_loss.html
template <class T>
Variable<T> mse_loss(const Variable<T>& input, const std::type_identity_t<Variable<T>>& target,
                     Reduction reduction = Reduction::mean);

/// loss = |input - target|, reduced; dinput = sign(input - target) dloss, dtarget = -dinput, divided by the
/// number of elements for the mean. One must broadcast to the other.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.l1_loss.html
template <class T>
Variable<T> l1_loss(const Variable<T>& input, const std::type_identity_t<Variable<T>>& target,
                    Reduction reduction = Reduction::mean);

/// loss = d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2), reduced, for d = input - target (Huber
/// 1964); dinput = min(max(d, -delta), delta) dloss, dtarget = -dinput, divided by the number of elements for
/// the mean. One must broadcast to the other. Throws ValueError unless delta > 0.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.huber_loss.html
template <class T>
Variable<T> huber_loss(const Variable<T>& input, const std::type_identity_t<Variable<T>>& target,
                       Reduction reduction = Reduction::mean, std::type_identity_t<T> delta = 1);

/// huber_loss with delta = beta, divided by beta; l1_loss for beta = 0. Throws ValueError for beta < 0.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.smooth_l1_loss.html
template <class T>
Variable<T> smooth_l1_loss(const Variable<T>& input, const std::type_identity_t<Variable<T>>& target,
                           Reduction reduction = Reduction::mean, std::type_identity_t<T> beta = 1);

/// Reduction of the divergences of the elements.
enum class KlReduction {
  none,
  mean,       ///< divides by the number of elements, PyTorch's default
  sum,        ///< the sum over all distributions
  batchmean,  ///< divides by the length of the first axis: the mean divergence
};

struct KlDivOptions {
  detail::ByName by_name = {};
  bool log_target = false;  ///< target is a logarithm, as input is
};

/// The Kullback-Leibler divergence: loss = target (ln target - input), 0 where target = 0 whatever input is,
/// reduced, for input the logarithm of a probability; with log_target, target is a logarithm, too, and loss =
/// e^target (target - input). dinput = -target dloss, or -e^target dloss. dtarget = (ln target + 1 - input)
/// dloss, nan where target is 0, as in PyTorch; or e^target (target - input + 1) dloss. One must broadcast to
/// the other. https://pytorch.org/docs/stable/generated/torch.nn.functional.kl_div.html
template <class T>
Variable<T> kl_div(const Variable<T>& input, const std::type_identity_t<Variable<T>>& target,
                   KlReduction reduction = KlReduction::mean, KlDivOptions options = {});

template <class T>
struct BinaryCrossEntropyOptions {
  detail::ByName by_name = {};
  Variable<T> weight = {};      ///< of each element; it broadcasts
  Variable<T> pos_weight = {};  ///< of the term y ln sigmoid(x); it broadcasts
  Reduction reduction = Reduction::mean;
};

/// loss = -weight (pos_weight y ln sigmoid(x) + (1 - y) ln(1 - sigmoid(x))), reduced, for x = input and y =
/// target, without overflow; with pos_weight 1 dinput = weight (sigmoid(x) - y) dloss. The mean divides by
/// the number of elements.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.binary_cross_entropy_with_logits.html
template <class T>
Variable<T> binary_cross_entropy_with_logits(
    const Variable<T>& input, const std::type_identity_t<Variable<T>>& target,
    const BinaryCrossEntropyOptions<std::type_identity_t<T>>& options = {});

template <class T>
struct ProbabilityCrossEntropyOptions {
  detail::ByName by_name = {};
  Variable<T> weight = {};  ///< of each element; it broadcasts
  Reduction reduction = Reduction::mean;
};

/// loss = -weight (y ln p + (1 - y) ln(1 - p)), reduced, for p = input in [0, 1] and y = target; logarithms
/// are at least -100. dinput = weight (p - y) / max(p (1 - p), 1e-12) dloss, dtarget = weight (ln(1 - p) - ln
/// p) dloss. Throws ValueError for a p outside [0, 1]. With logits, binary_cross_entropy_with_logits is more
/// precise. https://pytorch.org/docs/stable/generated/torch.nn.functional.binary_cross_entropy.html
template <class T>
Variable<T> binary_cross_entropy(const Variable<T>& input, const std::type_identity_t<Variable<T>>& target,
                                 const ProbabilityCrossEntropyOptions<std::type_identity_t<T>>& options = {});

template <class T>
struct NllLossOptions {
  detail::ByName by_name = {};
  Variable<T> weight = {};           ///< of each class (C); it gets no gradient
  std::int64_t ignore_index = -100;  ///< targets with this id are ignored
  Reduction reduction =
      Reduction::mean;  ///< mean: divides by the sum of the weights of the targets not ignored
};

/// loss = -weight[target] log_probs[target], reduced, for log_probs (C), (N, C) or (N, C, d1, ...) and target
/// (), (N) or (N, d1, ...). dlog_probs = -weight[target] dloss at the target, 0 elsewhere; divided by the sum
/// of the weights for the mean. The mean over no target is nan. Throws IndexError for a target out of range.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.nll_loss.html
template <class T>
Variable<T> nll_loss(const Variable<T>& log_probs, const Ids& target,
                     const NllLossOptions<std::type_identity_t<T>>& options = {});
/// Targets are integers: xt::cast<std::int64_t>(target).
template <class T, detail::NoIds E>
Variable<T> nll_loss(const Variable<T>& log_probs, const E& target,
                     const NllLossOptions<std::type_identity_t<T>>& options = {}) = delete;

namespace ops {

inline constexpr Op binary_cross_entropy("binary_cross_entropy", {"input", "target"});
inline constexpr Op huber("huber", {"d"}, {"delta"});

}  // namespace ops
}  // namespace xgrad
