#pragma once

// Shared code of the losses of classes.

#include "../../../kernels/rows/cross_entropy.hpp"
#include "../cross_entropy.hpp"

namespace xgrad::detail {

/// What the rows of logits (N, C) are compared with, and what their losses are divided by, if summed.
template <class T>
struct ClassTargets {
  /// Throws IndexError, in the name of `op`, for a target that is no class.
  ClassTargets(const char* op, const Ids& target, const CrossEntropyOptions<T>& options, std::size_t classes)
      : ids(target),
        ignore_index(options.ignore_index),
        weight(options.weight.defined() ? options.weight.value() : Array<T>::from_shape({0})),
        smoothing(static_cast<T>(options.label_smoothing)),
        reduction(options.reduction) {
    const T weights = weight_of_targets(op, classes);
    if (reduction == Reduction::mean) divisor = weights;
  }

  Ids ids;
  std::int64_t ignore_index;
  Array<T> weight;  // of the classes; of none: no weights
  T smoothing;
  Reduction reduction;
  T divisor = 1;

  bool reduced() const { return reduction != Reduction::none; }
  const char* reduction_name() const {
    return reduction == Reduction::mean ? "mean" : reduction == Reduction::sum ? "sum" : "none";
  }

  /// Those from a row on.
  kernels::CrossEntropyTarget<T> plain(std::size_t row = 0) const {
    return {ids.data() + row, ignore_index, weight.size() > 0 ? weight.data() : nullptr, smoothing};
  }

 private:
  /// The sum of the weights of the targets that count.
  T weight_of_targets(const char* op, std::size_t classes) const {
    const kernels::CrossEntropyTarget<T> to = plain();
    double sum = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::int64_t id = to.target[i];
      if (id == to.ignore_index) continue;
      if (id < 0 || id >= static_cast<std::int64_t>(classes)) {
        fail<IndexError>(op, ": target must be in [0, ", classes, "), got ", id, " (", classes, " classes)");
      }
      sum += to.weight != nullptr ? to.weight[id] : T{1};
    }
    return static_cast<T>(sum);
  }
};

/// Throws ValueError for a bad label_smoothing, ShapeError for a bad weight, in the name of `op`.
template <class T>
void check_class_options(const char* op, const CrossEntropyOptions<T>& options, std::size_t classes) {
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1))
    fail<ValueError>(op, ": label_smoothing must be in [0, 1], got ", options.label_smoothing);
  if (options.weight.defined() && options.weight.shape() != Shape{classes})
    fail<ShapeError>(op, ": weight must be (", classes, "), got ", options.weight.shape());
}

}  // namespace xgrad::detail
