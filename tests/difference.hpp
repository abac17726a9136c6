#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include <xgrad/base/array.hpp>

namespace xgrad_tests {

/// The largest |a - b|; infinite where the shapes differ or a difference is not a number.
template <class T>
double largest_difference(const xgrad::Array<T>& a, const xgrad::Array<T>& b) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (a.shape() != b.shape()) return infinity;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a.data()[i]) - b.data()[i]);
    largest = std::isnan(difference) ? infinity : std::max(largest, difference);
  }
  return largest;
}

/// The largest |b|; infinite where one is not a number.
template <class T>
double largest_element(const xgrad::Array<T>& b) {
  return largest_difference(b, xgrad::Array<T>(b.shape(), T(0)));
}

/// The largest |a - b| in parts of the largest |b|; 0 where a and b are the same.
template <class T>
double relative_difference(const xgrad::Array<T>& a, const xgrad::Array<T>& b) {
  const double difference = largest_difference(a, b);
  return difference == 0 || std::isinf(difference) ? difference : difference / largest_element(b);
}

}  // namespace xgrad_tests
