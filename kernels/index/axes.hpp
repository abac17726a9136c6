#pragma once

#include <array>
#include <cstddef>
#include <stdexcept>

#include "../../base/detail/system/pieces.hpp"
#include "../matrix.hpp"

namespace xgrad::kernels {

/// A nest of loops over an index, with the strides (in elements) of `N` operands on every axis.
template <std::size_t N>
struct Axes {
  static constexpr std::size_t max_rank = 32;  // that many axes of 2 or more hold 2^32 elements

  std::size_t rank = 0;
  std::array<std::size_t, max_rank> shape;
  std::array<std::array<std::ptrdiff_t, N>, max_rank> strides;

  std::size_t size(std::size_t axis) const { return shape[axis]; }
  std::ptrdiff_t stride(std::size_t operand, std::size_t axis) const { return strides[axis][operand]; }

  /// How many indices the axes [from, to) have.
  std::size_t count(std::size_t from, std::size_t to) const {
    std::size_t product = 1;
    for (; from < to; ++from) product *= shape[from];
    return product;
  }

  void push(std::size_t size, const std::array<std::ptrdiff_t, N>& stride) {
    if (rank == max_rank) throw std::length_error("kernels: more than 32 axes that cannot be merged");
    shape[rank] = size;
    strides[rank++] = stride;
  }
};

/// The same elements in the same order on fewer, longer axes: axes of size 1 go, and an axis joins the one
/// before when every operand steps through both as through one. At least `min_rank` axes come back, sizes 1
/// in front.
template <std::size_t N>
Axes<N> merge_axes(Lengths shape, const std::array<std::span<const std::ptrdiff_t>, N>& strides,
                   std::size_t min_rank) {
  Axes<N> merged;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    std::array<std::ptrdiff_t, N> stride;
    for (std::size_t i = 0; i < N; ++i) stride[i] = strides[i][axis];
    if (shape[axis] == 1) continue;
    bool joins = merged.rank > 0;
    for (std::size_t i = 0; joins && i < N; ++i) {
      joins = merged.strides[merged.rank - 1][i] == stride[i] * static_cast<std::ptrdiff_t>(shape[axis]);
    }
    if (joins) {
      merged.shape[merged.rank - 1] *= shape[axis];
      merged.strides[merged.rank - 1] = stride;
    } else {
      merged.push(shape[axis], stride);
    }
  }
  if (merged.rank >= min_rank) return merged;
  Axes<N> padded;
  for (std::size_t axis = merged.rank; axis < min_rank; ++axis) padded.push(1, {});
  for (std::size_t axis = 0; axis < merged.rank; ++axis)
    padded.push(merged.shape[axis], merged.strides[axis]);
  return padded;
}

/// Calls visit(offsets, number) with the operands' offsets, in order, for the indices number `begin` to `end`
/// of all but the last `inner` axes.
template <std::size_t N, typename Visit>
void for_each_outer(const Axes<N>& axes, std::size_t inner, std::size_t begin, std::size_t end,
                    const Visit& visit) {
  const std::size_t outer = axes.rank - inner;
  std::array<std::size_t, Axes<N>::max_rank> index{};
  std::array<std::ptrdiff_t, N> offsets{};
  for (std::size_t axis = outer, rest = begin; rest > 0; rest /= axes.size(axis)) {
    --axis;
    index[axis] = rest % axes.size(axis);
    for (std::size_t i = 0; i < N; ++i)
      offsets[i] += axes.stride(i, axis) * static_cast<std::ptrdiff_t>(index[axis]);
  }
  while (begin < end) {
    visit(offsets, begin++);
    for (std::size_t axis = outer; axis-- > 0;) {
      for (std::size_t i = 0; i < N; ++i) offsets[i] += axes.stride(i, axis);
      if (++index[axis] < axes.size(axis)) break;
      for (std::size_t i = 0; i < N; ++i) {
        offsets[i] -= axes.stride(i, axis) * static_cast<std::ptrdiff_t>(axes.size(axis));
      }
      index[axis] = 0;
    }
  }
}

/// The same for all indices.
template <std::size_t N, typename Visit>
void for_each_outer(const Axes<N>& axes, std::size_t inner, const Visit& visit) {
  const std::size_t outer = axes.rank - inner;
  if (axes.count(outer, axes.rank) > 0) for_each_outer(axes, inner, 0, axes.count(0, outer), visit);
}

/// The same in several threads, where what visit does with the inner axes, about an addition for each
/// element, is not enough for more than one; where it is, visit has to divide its own.
template <std::size_t N, typename Visit>
void parallel_outer(const Axes<N>& axes, std::size_t inner, const Visit& visit) {
  const std::size_t outer = axes.rank - inner, count = axes.count(0, outer);
  const std::size_t size = axes.count(outer, axes.rank);
  if (size == 0) return;
  if (is_undivided(count, size) || !is_one_piece(size, 1))
    return for_each_outer(axes, inner, 0, count, visit);
  parallel_pieces(count, size, [&](std::size_t begin, std::size_t end) {
    for_each_outer(axes, inner, begin, end, visit);
  });
}

}  // namespace xgrad::kernels
