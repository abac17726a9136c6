#pragma once

#include "../../../graph/variable.hpp"

namespace xgrad::detail {

/// Whether an element is nan: only then may a product have had the factors 0 and infinity.
template <class T>
bool has_nan(const Variable<T>& x);

/// weight x, but 0 where weight is 0 and x infinite, where x has no gradient either: what a weight of 0
/// excludes does not count. The weight's gradient is 0 there, too. They broadcast.
template <class T>
Variable<T> weighted(const Variable<T>& weight, const Variable<T>& x);

}  // namespace xgrad::detail
