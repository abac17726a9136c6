#pragma once

#include "losses.hpp"

namespace xgrad {

struct CtcLossOptions {
  detail::ByName by_name = {};
  std::int64_t blank = 0;  ///< the class between labels
  Reduction reduction =
      Reduction::mean;  ///< mean: of the losses divided by the lengths of their targets, 0 counting as 1
  bool zero_infinity = false;  ///< targets too long for their inputs have the loss 0, not inf
};

/// loss = -ln of the probability of all paths that spell the targets, once repeated classes and then blanks
/// are left out, reduced (Graves et al. 2006): for log_probs (T, N, C) of log_softmax, or (T, C), targets (N,
/// S), or (S) joined without gaps, and the lengths (N) of inputs, up to T, and of targets; of one sample the
/// lengths are (). dlog_probs[t, c] = -dloss times the probability that a path is at c in step t; a loss of
/// inf has nan. PyTorch adds e^log_probs to it, which makes no difference behind log_softmax. Throws
/// IndexError for a target that is no class or the blank, ShapeError and ValueError for lengths that do not
/// fit. https://pytorch.org/docs/stable/generated/torch.nn.functional.ctc_loss.html
template <class T>
Variable<T> ctc_loss(const Variable<T>& log_probs, const Ids& targets, const Ids& input_lengths,
                     const Ids& target_lengths, CtcLossOptions options = {});
/// Targets and lengths are integers: xt::cast<std::int64_t>(targets).
template <class T, detail::NoIds E>
Variable<T> ctc_loss(const Variable<T>& log_probs, const E& targets, const Ids& input_lengths,
                     const Ids& target_lengths, CtcLossOptions options = {}) = delete;
template <class T, detail::NoIds E>
Variable<T> ctc_loss(const Variable<T>& log_probs, const Ids& targets, const E& input_lengths,
                     const Ids& target_lengths, CtcLossOptions options = {}) = delete;
template <class T, detail::NoIds E>
Variable<T> ctc_loss(const Variable<T>& log_probs, const Ids& targets, const Ids& input_lengths,
                     const E& target_lengths, CtcLossOptions options = {}) = delete;

namespace ops {

inline constexpr Op ctc_loss("ctc_loss", {"log_probs"},
                             {"targets", "input_lengths", "target_lengths", "blank", "zero_infinity"});

}  // namespace ops
}  // namespace xgrad
