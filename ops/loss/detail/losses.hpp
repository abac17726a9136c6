#pragma once

// Shared code of losses.

#include "../../../base/detail/arrays/broadcast.hpp"
#include "../../pointwise/detail/weighted.hpp"
#include "../../reduce/reductions.hpp"
#include "../losses.hpp"

namespace xgrad::detail {

template <class T>
Variable<T> reduced_losses(const Variable<T>& losses, Reduction reduction) {
  if (reduction == Reduction::none) return losses;
  return reduction == Reduction::mean ? mean(losses) : sum(losses);
}

/// The losses times a weight, if there is one; a weight of 0 excludes even an infinite loss. Throws
/// ShapeError, in the name of `op`, unless it broadcasts to them.
template <class T>
Variable<T> weighted_losses(const char* op, const Variable<T>& losses, const Variable<T>& weight) {
  if (!weight.defined()) return losses;
  const Shape shape = broadcast_shape(op, losses.shape(), weight.shape(), "input", "weight");
  if (!same_shape(shape, losses.shape()))
    fail<ShapeError>(op, ": weight must broadcast to input, got input ", losses.shape(), " and weight ",
                     weight.shape());
  return weighted(weight, losses);
}

/// Throws ShapeError, in the name of `op`, unless one broadcasts to the other: (N, 1) and (N) would give (N,
/// N).
template <class T>
void check_operands(const char* op, const Variable<T>& input, const Variable<T>& target,
                    const char* input_name = "input", const char* target_name = "target") {
  const Shape shape = broadcast_shape(op, input.shape(), target.shape(), input_name, target_name);
  if (!same_shape(shape, input.shape()) && !same_shape(shape, target.shape())) {
    fail<ShapeError>(op, ": one of ", input_name, " and ", target_name, " must broadcast to the other, got ",
                     input_name, " ", input.shape(), " and ", target_name, " ", target.shape());
  }
}

}  // namespace xgrad::detail
