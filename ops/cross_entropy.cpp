#include <xgrad/ops/cross_entropy.hpp>

#include <xtensor/xbuilder.hpp>

#include <xgrad/graph/record.hpp>
#include <xgrad/ops/arithmetic.hpp>
#include <xgrad/ops/kernels/binary.hpp>
#include <xgrad/ops/kernels/cross_entropy.hpp>
#include <xgrad/ops/kernels/reduce.hpp>
#include <xgrad/ops/masked_fill.hpp>
#include <xgrad/ops/reductions.hpp>
#include <xgrad/ops/shapes.hpp>
#include <xgrad/ops/softmax.hpp>

namespace xgrad {
namespace {

/// -log_softmax(logits)[target] of each row, 0 where the target is ignored, as ops that can be differentiated
/// again.
template <class T>
Variable<T> losses_composed(const Variable<T>& logits, const Ids& target, std::int64_t ignore_index) {
  const std::size_t classes = logits.shape()[1];
  Array<T> minus_onehot = xt::zeros<T>(logits.shape());
  for (std::size_t r = 0; r < target.size(); ++r) {
    const std::int64_t id = target.data()[r];
    if (id != ignore_index) minus_onehot.data()[r * classes + static_cast<std::size_t>(id)] = T{-1};
  }
  return sum(log_softmax(logits) * minus_onehot, 1);
}

/// The losses of the rows of logits (N, C), or their sum divided by `divisor`.
template <class T>
Variable<T> losses(const Variable<T>& logits, const Ids& target, std::int64_t ignore_index, bool reduced,
                   T divisor) {
  const std::size_t rows = logits.shape()[0], classes = logits.shape()[1];
  Variable<T> log_probs = detail::empty<T>(logits.shape());
  Variable<T> y = detail::empty<T>(Shape{rows});
  kernels::cross_entropy_rows(detail::data(logits), target.data(), ignore_index, detail::data(log_probs),
                              detail::data(y), rows, classes);
  if (reduced) {
    const Variable<T> row_losses = std::exchange(y, detail::empty<T>(Shape{}));
    kernels::sum_middle(detail::data(row_losses), 1, rows, 1, detail::data(y));
    *detail::data(y) /= divisor;
  }
  if (!records(logits)) return y;
  return record<T>("cross_entropy", std::move(y), on(logits), save(logits, log_probs),
                   [target, ignore_index, reduced, divisor](Variable<T> dy, Needs needs, Variable<T> logits,
                                                            Variable<T> log_probs) -> Grads<T, 1> {
                     if (grad_enabled()) {
                       return replay<T, 1>(dy, needs, {logits}, [&](const Variable<T>& logits) {
                         const Variable<T> rows = losses_composed(logits, target, ignore_index);
                         return reduced ? div(sum(rows), divisor) : rows;
                       });
                     }
                     Variable<T> row_weights = dy;
                     if (reduced) {
                       row_weights = detail::empty<T>(Shape{target.size()});
                       kernels::fill(dy.item() / divisor, detail::data(row_weights), target.size());
                     }
                     Variable<T> dlogits = detail::empty<T>(log_probs.shape());
                     kernels::cross_entropy_grad_rows(detail::data(log_probs), target.data(), ignore_index,
                                                      detail::data(row_weights), detail::data(dlogits),
                                                      target.size(), log_probs.shape()[1]);
                     return {dlogits};
                   });
}

/// The number of targets that count. Throws IndexError for one that is no class.
std::size_t count_targets(const Ids& target, std::int64_t classes, std::int64_t ignore_index) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < target.size(); ++i) {
    const std::int64_t id = target.data()[i];
    if (id == ignore_index) continue;
    if (id < 0 || id >= classes) {
      detail::fail<IndexError>("cross_entropy: target must be in [0, ", classes, "), got ", id, " (", classes,
                               " classes)");
    }
    ++count;
  }
  return count;
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
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1))
    detail::fail<ValueError>("cross_entropy: label_smoothing must be in [0, 1], got ",
                             options.label_smoothing);
  if (options.weight.defined() && options.weight.shape() != Shape{logits[axis]})
    detail::fail<ShapeError>("cross_entropy: weight must be (", logits[axis], "), got ",
                             options.weight.shape());
  return axis;
}

/// log_softmax over the classes, each times its weight.
template <class T>
Variable<T> weighted_log_probs(const Variable<T>& logits, std::size_t class_axis, const Variable<T>& weight) {
  const Variable<T> log_probs = log_softmax(logits, static_cast<int>(class_axis));
  if (!weight.defined()) return log_probs;
  Shape along(logits.dimension() - class_axis, 1);
  along[0] = logits.shape()[class_axis];
  return log_probs * reshape(weight.detach(), along);
}

}  // namespace

template <class T>
Variable<T> cross_entropy(const Variable<T>& logits, const Ids& target,
                          const CrossEntropyOptions<std::type_identity_t<T>>& options) {
  const Shape& shape = logits.shape();
  const std::size_t class_axis = checked_class_axis(shape, options);
  Shape expected = shape;
  expected.erase(expected.begin() + class_axis);
  if (target.shape() != expected) {
    detail::fail<ShapeError>(
        "cross_entropy: target must have the shape of logits without the class axis, got logits ", shape,
        " and target ", target.shape());
  }
  const std::size_t count =
      count_targets(target, static_cast<std::int64_t>(shape[class_axis]), options.ignore_index);
  if (!options.weight.defined() && options.label_smoothing == 0) {
    const bool reduced = options.reduction != Reduction::none;
    const T divisor = options.reduction == Reduction::mean ? static_cast<T>(count) : T{1};
    const Variable<T> y = losses(class_rows(logits), target, options.ignore_index, reduced, divisor);
    return reduced || same_shape(y.shape(), expected) ? y : reshape(y, expected);
  }

  const int axis = static_cast<int>(class_axis);
  const Variable<T> hard = nll_loss(
      log_softmax(logits, axis), target,
      {.weight = options.weight, .ignore_index = options.ignore_index, .reduction = options.reduction});
  if (options.label_smoothing == 0) return hard;
  const Mask ignored = xt::equal(target, options.ignore_index);
  Variable<T> smooth =
      masked_fill(-sum(weighted_log_probs(logits, class_axis, options.weight), axis), ignored, 0);
  if (options.reduction != Reduction::none) smooth = sum(smooth);
  if (options.reduction == Reduction::mean) {
    const Variable<T> ones(Array<T>(shape, T{-1}));  // their loss is the weight of the targets that count
    const Variable<T> weights = nll_loss(
        ones, target,
        {.weight = options.weight, .ignore_index = options.ignore_index, .reduction = Reduction::sum});
    smooth = smooth / weights;
  }
  const T share = static_cast<T>(options.label_smoothing), classes = static_cast<T>(shape[class_axis]);
  return hard * (1 - share) + smooth * (share / classes);
}

template <class T>
Variable<T> cross_entropy(const Variable<T>& logits, const Variable<T>& target,
                          const CrossEntropyOptions<std::type_identity_t<T>>& options) {
  const std::size_t class_axis = checked_class_axis(logits.shape(), options);
  if (!same_shape(target.shape(), logits.shape())) {
    detail::fail<ShapeError>("cross_entropy: target probabilities must have the shape of logits, got logits ",
                             logits.shape(), " and target ", target.shape());
  }
  const T share = static_cast<T>(options.label_smoothing);
  const Variable<T> smoothed =
      share == 0 ? target : target * (1 - share) + share / static_cast<T>(logits.shape()[class_axis]);
  const Variable<T> rows =
      -sum(smoothed * weighted_log_probs(logits, class_axis, options.weight), static_cast<int>(class_axis));
  if (options.reduction == Reduction::none) return rows;
  return options.reduction == Reduction::mean ? mean(rows) : sum(rows);
}

#define XGRAD_INSTANTIATE(T)                                                                         \
  template Variable<T> cross_entropy(const Variable<T>&, const Ids&, const CrossEntropyOptions<T>&); \
  template Variable<T> cross_entropy(const Variable<T>&, const Variable<T>&, const CrossEntropyOptions<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
