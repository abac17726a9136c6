#pragma once

#include <cstddef>

namespace xgrad::detail {

/// Sums of arrays of n elements, for components, which cannot call kernels.
template <class T>
struct ElementSums {
  /// y += a
  static void add(T* y, const T* a, std::size_t n);
  /// y = (y + a) + (b + c)
  static void add(T* y, const T* a, const T* b, const T* c, std::size_t n);
  /// y = alpha x; y may be x.
  static void scale(T alpha, const T* x, T* y, std::size_t n);
};

}  // namespace xgrad::detail
