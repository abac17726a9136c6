#pragma once

#include <cstddef>
#include <utility>

#include <xgrad/ops/product/linear_map.hpp>

/// The sums of the first 1, 2, ... elements of each row.
template <class T>
xgrad::Array<T> running_sums(const xgrad::Array<T>& x) {
  xgrad::Array<T> y = x;
  const std::size_t n = x.shape().back();
  for (std::size_t i = 1; i < x.size(); ++i)
    if (i % n != 0) y.data()[i] += y.data()[i - 1];
  return y;
}

/// The sums of the last elements.
template <class T>
xgrad::Array<T> running_sums_from_the_end(const xgrad::Array<T>& x) {
  xgrad::Array<T> y = x;
  const std::size_t n = x.shape().back();
  for (std::size_t i = x.size(); i-- > 0;)
    if ((i + 1) % n != 0) y.data()[i] += y.data()[i + 1];
  return y;
}

template <class T>
xgrad::Variable<T> cumulated(const xgrad::Variable<T>& x) {
  return linear_map(x, running_sums<T>, running_sums_from_the_end<T>);
}
