#include "cross_entropy.hpp"

#include <algorithm>
#include <memory>

#include "../../graph/fused.hpp"
#include "../../kernels/pointwise/binary.hpp"
#include "../../kernels/rows/reduce.hpp"
#include "../index/masked_fill.hpp"
#include "../norm/softmax.hpp"
#include "../pointwise/arithmetic.hpp"
#include "../pointwise/detail/weighted.hpp"
#include "../reduce/reductions.hpp"
#include "../shape/shapes.hpp"
#include "detail/class_targets.hpp"

namespace xgrad {
namespace {

/// The losses of the rows, 0 where the target is ignored, as ops that can be differentiated again.
template <class T>
Variable<T> losses_composed(const Variable<T>& logits, const detail::ClassTargets<T>& to) {
  const std::size_t classes = logits.shape()[1];
  const auto weight = [&](std::size_t c) { return to.weight.size() > 0 ? to.weight.data()[c] : T{1}; };
  Array<T> minus_q = xt::zeros<T>(logits.shape());
  Mask ignored = xt::zeros<bool>(Shape{to.ids.size(), 1});
  for (std::size_t r = 0; r < to.ids.size(); ++r) {
    ignored.data()[r] = to.ids.data()[r] == to.ignore_index;
    if (ignored.data()[r]) continue;
    T* row = minus_q.data() + r * classes;
    for (std::size_t c = 0; c < classes; ++c) row[c] = -to.smoothing / static_cast<T>(classes) * weight(c);
    const auto id = static_cast<std::size_t>(to.ids.data()[r]);
    row[id] -= (1 - to.smoothing) * weight(id);
  }
  // An ignored row has gradient 0, whatever it holds, and even if the divisor is 0.
  const Variable<T> log_probs = log_softmax(masked_fill(logits, ignored, 0));
  return sum(detail::masked_mul(log_probs, Variable<T>(std::move(minus_q))), 1);
}

/// The losses of the rows of logits (N, C), or their sum divided by the divisor.
template <class T>
Variable<T> losses(const Variable<T>& logits, const std::shared_ptr<const detail::ClassTargets<T>>& shared) {
  const detail::ClassTargets<T>& to = *shared;
  const std::size_t rows = logits.shape()[0], classes = logits.shape()[1];
  Variable<T> log_probs = detail::empty<T>(logits.shape());
  Variable<T> y = detail::empty<T>(Shape{rows});
  kernels::cross_entropy_rows(detail::data(logits), to.plain(), detail::data(log_probs), detail::data(y),
                              rows, classes);
  if (to.reduced()) {
    const Variable<T> row_losses = std::exchange(y, detail::empty<T>(Shape{}));
    kernels::sum_middle(detail::data(row_losses), 1, rows, 1, detail::data(y));
    *detail::data(y) /= to.divisor;
  }
  return fused<T>(
      ops::cross_entropy, std::move(y), Inputs(Unread(logits)),
      Attributes(shared->ids, shared->ignore_index, shared->smoothing, shared->reduction_name(),
                 shared->weight),
      Saved(log_probs),
      [shared](const Variable<T>& logits) {
        const Variable<T> rows = losses_composed(logits, *shared);
        return shared->reduced() ? div(sum(rows), shared->divisor) : rows;
      },
      [shared](const Variable<T>& dy, Needs, const Variable<T>&,
               const Variable<T>& log_probs) -> Grads<T, 1> {
        const detail::ClassTargets<T>& to = *shared;
        Variable<T> row_weights = dy;
        if (to.reduced()) {
          row_weights = detail::empty<T>(Shape{to.ids.size()});
          kernels::fill(*detail::data(dy) / to.divisor, detail::data(row_weights), to.ids.size());
        }
        Variable<T> dlogits = detail::empty<T>(log_probs.shape());
        kernels::cross_entropy_grad_rows(detail::data(log_probs), to.plain(),
                                         detail::data(std::as_const(row_weights)), detail::data(dlogits),
                                         to.ids.size(), log_probs.shape()[1]);
        return {dlogits};
      });
}

/// logits (N, C, d1, ...) as rows (N d1 ..., C).
template <class T>
Variable<T> class_rows(const Variable<T>& logits) {
  const std::size_t rank = logits.dimension();
  if (rank == 2) return logits;
  const std::size_t classes = logits.shape()[rank == 1 ? 0 : 1];
  if (rank == 1) return reshape(logits, {1, classes});
  Shape order(rank, 0);
  for (std::size_t k = 1; k + 1 < rank; ++k) order[k] = k + 1;
  order[rank - 1] = 1;
  Shape rows = logits.shape();
  rows[1] = 1;
  return reshape(permute(logits, order), {element_count(rows), classes});
}

/// The axis of the classes. Throws for logits without one and for a bad label_smoothing or weight.
template <class T>
std::size_t checked_class_axis(const Shape& logits, const CrossEntropyOptions<T>& options) {
  if (logits.empty()) detail::fail<ShapeError>("cross_entropy: logits need an axis of classes, got ()");
  const std::size_t axis = logits.size() == 1 ? 0 : 1;
  detail::check_class_options("cross_entropy", options, logits[axis]);
  return axis;
}

/// Whether this shape is `whole` without one of its axes.
bool is_without(const Shape& shape, const Shape& whole, std::size_t axis) {
  const auto cut = static_cast<std::ptrdiff_t>(axis);
  return shape.size() + 1 == whole.size() && std::equal(whole.begin(), whole.begin() + cut, shape.begin()) &&
         std::equal(whole.begin() + cut + 1, whole.end(), shape.begin() + cut);
}

/// log_softmax over the classes, each times its weight.
template <class T>
Variable<T> weighted_log_probs(const Variable<T>& logits, std::size_t class_axis, const Variable<T>& weight) {
  const Variable<T> log_probs = log_softmax(logits, static_cast<int>(class_axis));
  if (!weight.defined()) return log_probs;
  Shape along(logits.dimension() - class_axis, 1);
  along[0] = logits.shape()[class_axis];
  return detail::weighted(reshape(weight.detach(), along), log_probs);
}

}  // namespace

template <class T>
Variable<T> cross_entropy(const Variable<T>& logits, const Ids& target,
                          const CrossEntropyOptions<std::type_identity_t<T>>& options) {
  const Shape& shape = logits.shape();
  const std::size_t class_axis = checked_class_axis(shape, options);
  if (!is_without(target.shape(), shape, class_axis)) {
    detail::fail<ShapeError>(
        "cross_entropy: target must have the shape of logits without the class axis, got logits ", shape,
        " and target ", target.shape());
  }
  const auto to = std::allocate_shared<detail::ClassTargets<T>>(
      PoolAllocator<detail::ClassTargets<T>>(), "cross_entropy", target, options, shape[class_axis]);
  const Variable<T> y = losses<T>(class_rows(logits), to);
  return to->reduced() || same_shape(y.shape(), target.shape()) ? y : reshape(y, target.shape());
}

template <class T>
Variable<T> cross_entropy(const Variable<T>& logits, const Variable<T>& target,
                          const CrossEntropyOptions<std::type_identity_t<T>>& options) {
  const std::size_t class_axis = checked_class_axis(logits.shape(), options);
  if (!same_shape(target.shape(), logits.shape())) {
    detail::fail<ShapeError>("cross_entropy: target probabilities must have the shape of logits, got logits ",
                             logits.shape(), " and target ", target.shape());
  }
  if (options.ignore_index >= 0)
    detail::fail<ValueError>("cross_entropy: probabilities have no ignore_index, got ", options.ignore_index);
  const T share = static_cast<T>(options.label_smoothing);
  const Variable<T> smoothed =
      share == 0 ? target : target * (1 - share) + share / static_cast<T>(logits.shape()[class_axis]);
  const Variable<T> rows =
      -sum(detail::weighted(smoothed, weighted_log_probs(logits, class_axis, options.weight)),
           static_cast<int>(class_axis));
  if (options.reduction == Reduction::none) return rows;
  return options.reduction == Reduction::mean ? mean(rows) : sum(rows);
}

#define XGRAD_INSTANTIATE(T)                                                                         \
  template Variable<T> cross_entropy(const Variable<T>&, const Ids&, const CrossEntropyOptions<T>&); \
  template Variable<T> cross_entropy(const Variable<T>&, const Variable<T>&, const CrossEntropyOptions<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
