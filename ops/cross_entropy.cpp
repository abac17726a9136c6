#include <xgrad/ops/cross_entropy.hpp>

#include <xtensor/xbuilder.hpp>

#include <xgrad/graph/record.hpp>
#include <xgrad/ops/arithmetic.hpp>
#include <xgrad/ops/kernels/binary.hpp>
#include <xgrad/ops/kernels/cross_entropy.hpp>
#include <xgrad/ops/kernels/reduce.hpp>
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

}  // namespace

template <class T>
Variable<T> cross_entropy(const Variable<T>& logits, const Ids& target, CrossEntropyOptions options) {
  const Shape& shape = logits.shape();
  if (shape.empty()) detail::fail<ShapeError>("cross_entropy: logits need an axis of classes, got ()");
  const std::size_t class_axis = shape.size() == 1 ? 0 : 1;
  Shape expected = shape;
  expected.erase(expected.begin() + class_axis);
  if (target.shape() != expected) {
    detail::fail<ShapeError>(
        "cross_entropy: target must have the shape of logits without the class axis, got logits ", shape,
        " and target ", target.shape());
  }
  const std::size_t count =
      count_targets(target, static_cast<std::int64_t>(shape[class_axis]), options.ignore_index);

  const bool reduced = options.reduction != Reduction::none;
  const T divisor = options.reduction == Reduction::mean ? static_cast<T>(count) : T{1};
  const Variable<T> y = losses(class_rows(logits), target, options.ignore_index, reduced, divisor);
  return reduced || same_shape(y.shape(), expected) ? y : reshape(y, expected);
}

template Variable<float> cross_entropy(const Variable<float>&, const Ids&, CrossEntropyOptions);
template Variable<double> cross_entropy(const Variable<double>&, const Ids&, CrossEntropyOptions);

}  // namespace xgrad
