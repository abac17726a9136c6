#pragma once

#include <vector>

#include "../index/indexing.hpp"
#include "../shape/shapes.hpp"
#include "sorting.hpp"

// Elements of a rank along the axis `dim`, which may be negative, or among all elements. A nan in a line
// gives nan. The gradient goes to the elements that the result is made of. Errors: IndexError for a missing
// axis, ValueError over no elements. https://pytorch.org/docs/stable/torch.html#reduction-ops

namespace xgrad {

/// The element in the middle, of an even number the lower one, and its index.
/// https://pytorch.org/docs/stable/generated/torch.median.html
template <class T>
Variable<T> median(const Variable<T>& x);
template <class T>
Ranked<T> median(const Variable<T>& x, Int dim, ReduceOptions options = {});

/// What is between two elements.
enum class Interpolation {
  linear,    ///< as far between them as the rank is
  lower,     ///< the lower one
  higher,    ///< the higher one
  midpoint,  ///< their mean
  nearest,   ///< the nearer one; between both the one of even rank
};

struct QuantileOptions {
  detail::ByName by_name = {};
  Interpolation interpolation = Interpolation::linear;
  bool keepdim = false;  ///< keep the reduced axis, with length 1
};

/// The element of rank q (n - 1), counted from 0, between two of them as `interpolation` says. A list of q
/// gives a first axis. Throws ValueError for a q outside of [0, 1].
/// https://pytorch.org/docs/stable/generated/torch.quantile.html
template <class T>
Variable<T> quantile(const Variable<T>& x, const std::vector<std::type_identity_t<T>>& q, Int dim,
                     QuantileOptions options = {});
template <class T, detail::Number Q>
Variable<T> quantile(const Variable<T>& x, Q q, Int dim, QuantileOptions options = {}) {
  return select(quantile(x, std::vector<T>{static_cast<T>(q)}, dim, options), 0, 0);
}
template <class T, detail::Number Q>
Variable<T> quantile(const Variable<T>& x, Q q) {
  return quantile(reshape(x, x.size()), q, 0);
}

}  // namespace xgrad
