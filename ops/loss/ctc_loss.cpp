#include "ctc_loss.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "../../graph/fused.hpp"
#include "../../kernels/rows/ctc.hpp"
#include "../index/indexing.hpp"
#include "../index/where.hpp"
#include "../pointwise/arithmetic.hpp"
#include "../shape/shapes.hpp"
#include "detail/losses.hpp"

namespace xgrad {
namespace {

/// What the paths of a batch go through.
struct CtcTargets {
  Ids classes;  // (N, width)
  Ids targets, input_lengths, target_lengths;
  CtcLossOptions options;

  std::size_t samples() const { return classes.shape()[0]; }
  std::size_t width() const { return classes.shape()[1]; }
  std::size_t places(std::size_t n) const {
    return 2 * static_cast<std::size_t>(target_lengths.data()[n]) + 1;
  }
  kernels::CtcPaths paths() const {
    return {classes.data(), input_lengths.data(), target_lengths.data(), width(), options.blank};
  }
};

/// Throws ValueError unless all lengths are in [0, most].
void check_lengths(const char* name, const Ids& lengths, std::size_t most) {
  for (std::size_t n = 0; n < lengths.size(); ++n) {
    const std::int64_t length = lengths.data()[n];
    if (length < 0 || static_cast<std::uint64_t>(length) > most)
      detail::fail<ValueError>("ctc_loss: ", name, " must be in [0, ", most, "], got ", length);
  }
}

/// Checks all but log_probs, which have so many steps, samples and classes.
CtcTargets ctc_targets(std::size_t steps, std::size_t samples, std::size_t classes, const Ids& targets,
                       const Ids& input_lengths, const Ids& target_lengths, const CtcLossOptions& options) {
  const bool joined = targets.dimension() == 1;
  if (input_lengths.size() != samples || target_lengths.size() != samples ||
      !(joined || (targets.dimension() == 2 && targets.shape()[0] == samples))) {
    detail::fail<ShapeError>("ctc_loss: targets must be (N, S) or joined, lengths (N), for N samples, got N ",
                             samples, ", targets ", targets.shape(), ", input_lengths ",
                             input_lengths.shape(), " and target_lengths ", target_lengths.shape());
  }
  const auto count = static_cast<std::int64_t>(classes);
  if (options.blank < 0 || options.blank >= count)
    detail::fail<IndexError>("ctc_loss: blank must be in [0, ", classes, "), got ", options.blank);
  check_lengths("input_lengths", input_lengths, steps);
  check_lengths("target_lengths", target_lengths, joined ? targets.size() : targets.shape()[1]);
  std::int64_t longest = 0, total = 0;
  for (const std::int64_t length : target_lengths) {
    longest = std::max(longest, length);
    total += length;
  }
  if (joined && total != static_cast<std::int64_t>(targets.size())) {
    detail::fail<ValueError>("ctc_loss: target_lengths must add up to the number of targets ", targets.size(),
                             ", got ", total);
  }
  const std::size_t width = 2 * static_cast<std::size_t>(longest) + 1;
  CtcTargets made{Ids({samples, width}, options.blank), targets, input_lengths, target_lengths, options};
  const std::int64_t* label = targets.data();
  for (std::size_t n = 0; n < samples; ++n) {
    if (!joined) label = targets.data() + n * targets.shape()[1];
    for (std::size_t place = 1; place < made.places(n); place += 2, ++label) {
      if (*label < 0 || *label >= count || *label == options.blank) {
        detail::fail<IndexError>("ctc_loss: targets must be in [0, ", classes, ") and not the blank ",
                                 options.blank, ", got ", *label);
      }
      made.classes(n, place) = *label;
    }
  }
  return made;
}

/// x (N, W) moved on by `count` places, behind `first`.
template <class T>
Variable<T> moved_on(const Variable<T>& x, std::size_t count, T first) {
  const std::size_t rows = x.shape()[0], width = x.shape()[1], kept = width - std::min(width, count);
  const Variable<T> head(Array<T>({rows, width - kept}, first));
  return kept == 0 ? head : cat({head, narrow(x, 1, 0, static_cast<std::ptrdiff_t>(kept))}, 1);
}

/// The losses as ops that can be differentiated again; `constant` says which are those of `losses` instead.
template <class T>
Variable<T> losses_composed(const Variable<T>& log_probs, const CtcTargets& to, const Mask& constant,
                            const Variable<T>& losses) {
  const T never = T(-1e30);  // in place of -inf, whose differences are nan
  const std::size_t steps = log_probs.shape()[0], samples = to.samples(), width = to.width();
  const Shape plane{samples, width};
  Ids every = Ids::from_shape({steps, samples, width});
  for (std::size_t t = 0; t < steps; ++t)
    std::copy(to.classes.begin(), to.classes.end(), every.data() + t * to.classes.size());
  const Variable<T> emitted = gather(log_probs, 2, every);
  Array<T> start = Array<T>(plane, never), skip = Array<T>(plane, never), end = Array<T>(plane, never);
  for (std::size_t n = 0; n < samples; ++n) {
    const std::size_t places = to.places(n);
    for (std::size_t s = 0; s < places; ++s) {
      if (s < 2) start(n, s) = T(0);
      if (s + 2 >= places) end(n, s) = T(0);
      const std::int64_t own = to.classes(n, s);
      if (s >= 2 && own != to.options.blank && own != to.classes(n, s - 2)) skip(n, s) = T(0);
    }
  }
  const Variable<T> may_skip(std::move(skip));
  Variable<T> alpha(std::move(start));
  for (std::size_t t = 0; t < steps; ++t) {
    const Variable<T> coming =
        t == 0
            ? alpha
            : logsumexp(stack({alpha, moved_on(alpha, 1, never), moved_on(alpha, 2, never) + may_skip}), 0);
    Mask ended = Mask::from_shape({samples, 1});
    for (std::size_t n = 0; n < samples; ++n)
      ended.data()[n] = to.input_lengths.data()[n] <= static_cast<std::int64_t>(t);
    alpha = where(ended, alpha, coming + select(emitted, 0, static_cast<std::ptrdiff_t>(t)));
  }
  return where(constant, losses, -logsumexp(alpha + Variable<T>(std::move(end)), 1));
}

/// The losses of the samples.
template <class T>
Variable<T> ctc_losses(const Variable<T>& log_probs, const std::shared_ptr<const CtcTargets>& to) {
  const std::size_t steps = log_probs.shape()[0], classes = log_probs.shape()[2], samples = to->samples();
  Variable<T> alpha = detail::empty<T>(Shape{samples, steps, to->width()}, "ctc_loss");
  Variable<T> losses = detail::empty<T>(Shape{samples});
  kernels::ctc(to->paths(), detail::data(log_probs), detail::data(alpha), detail::data(losses), steps,
               samples, classes);
  Variable<T> y = detail::empty<T>(Shape{samples});
  Mask constant = Mask::from_shape({samples});
  for (std::size_t n = 0; n < samples; ++n) {
    const T loss = losses.value().data()[n];
    const bool infinite = loss == std::numeric_limits<T>::infinity();
    detail::data(y)[n] = infinite && to->options.zero_infinity ? T(0) : loss;
    constant.data()[n] = infinite || to->input_lengths.data()[n] == 0;
  }
  const Variable<T> values(y.value());
  return fused<T>(
      ops::ctc_loss, std::move(y), Inputs(log_probs),
      Attributes(to->targets, to->input_lengths, to->target_lengths, to->options.blank,
                 to->options.zero_infinity),
      Saved(alpha, losses),
      [to, constant, values](const Variable<T>& log_probs) {
        return losses_composed(log_probs, *to, constant, values);
      },
      [to](const Variable<T>& dy, Needs, const Variable<T>& log_probs, const Variable<T>& alpha,
           const Variable<T>& losses) -> Grads<T, 1> {
        const Shape& shape = log_probs.shape();
        Variable<T> dlog_probs = detail::empty<T>(shape);
        kernels::ctc_grad(to->paths(), detail::data(log_probs), detail::data(alpha), detail::data(losses),
                          detail::data(dy), to->options.zero_infinity, detail::data(dlog_probs), shape[0],
                          shape[1], shape[2]);
        return {dlog_probs};
      });
}

}  // namespace

template <class T>
Variable<T> ctc_loss(const Variable<T>& log_probs, const Ids& targets, const Ids& input_lengths,
                     const Ids& target_lengths, CtcLossOptions options) {
  const Shape& shape = log_probs.shape();
  const bool single = shape.size() == 2;
  if (!single && shape.size() != 3)
    detail::fail<ShapeError>("ctc_loss: log_probs must be (T, N, C) or (T, C), got ", shape);
  const Variable<T> batch = single ? unsqueeze(log_probs, 1) : log_probs;
  const std::size_t samples = batch.shape()[1];
  const auto to = std::make_shared<const CtcTargets>(
      ctc_targets(shape[0], samples, batch.shape()[2], targets, input_lengths, target_lengths, options));
  Variable<T> losses = ctc_losses(batch, to);
  if (options.reduction == Reduction::mean) {
    Array<T> lengths = Array<T>::from_shape({samples});
    for (std::size_t n = 0; n < samples; ++n)
      lengths.data()[n] = static_cast<T>(std::max<std::int64_t>(to->target_lengths.data()[n], 1));
    losses = losses / Variable<T>(std::move(lengths));
  }
  return detail::reduced_losses(single ? squeeze(losses, 0) : losses, options.reduction);
}

#define XGRAD_INSTANTIATE(T) \
  template Variable<T> ctc_loss(const Variable<T>&, const Ids&, const Ids&, const Ids&, CtcLossOptions);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
