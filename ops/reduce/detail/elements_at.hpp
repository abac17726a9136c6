#pragma once

#include <utility>

#include "../../index/indexing.hpp"
#include "../../shape/shapes.hpp"
#include "../sorting.hpp"
#include "middle_axis.hpp"

namespace xgrad::detail {

/// The elements of x at these indices along the axis `dim`, one for each line, without the axis unless
/// keepdim.
template <class T>
Ranked<T> elements_at(const Variable<T>& x, Int dim, Ids ids, const MiddleAxis& m, bool keepdim) {
  Variable<T> values = gather(x, dim, ids);
  if (keepdim || x.dimension() == 0) return {std::move(values), std::move(ids)};
  const Shape shape = without_axis(x.shape(), m);
  ids.reshape(shape);
  return {reshape(values, shape), std::move(ids)};
}

}  // namespace xgrad::detail
