#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <type_traits>

#include "../base/detail/arrays/vectorized.hpp"

namespace xgrad::kernels {

/// `width` numbers in a register; a vector of one would live in memory.
template <typename T, std::size_t width>
struct Lanes {
  typedef T type __attribute__((vector_size(width * sizeof(T))));
};
template <typename T>
struct Lanes<T, 1> {
  using type = T;
};

/// f(n), where n is a constant if it is a usual length of short rows: loops over them then have neither
/// checks nor remainders. Clang's loops over more than 8 numbers gain nothing from it.
template <typename F>
XGRAD_INLINE void with_length(std::size_t n, const F& f) {
  if (n == 4) return f(std::integral_constant<std::size_t, 4>());
  if (n == 8) return f(std::integral_constant<std::size_t, 8>());
#if !defined(__clang__)
  if (n == 16) return f(std::integral_constant<std::size_t, 16>());
  if (n == 32) return f(std::integral_constant<std::size_t, 32>());
  if (n == 64) return f(std::integral_constant<std::size_t, 64>());
#endif
  f(n);
}

/// combine(initial, value(begin), ..., value(end - 1)) in many accumulators: the compiler may not reorder a
/// floating-point reduction by itself. `initial` must be neutral, and `combine` takes vectors, too.
template <std::size_t lanes = 32, typename T, typename Value, typename Combine>
XGRAD_INLINE T reduce_lanes(std::size_t begin, std::size_t end, T initial, Value value, Combine combine) {
  static_assert(lanes >= 8 && (lanes & (lanes - 1)) == 0);
  T total = initial;
  if (end - begin >= lanes) {
#if defined(__wasm_simd128__)  // whose compiler keeps vectors in registers, but an array in memory
    using Vector = typename Lanes<T, 8>::type;
    Vector vectors[lanes / 8];
    for (Vector& vector : vectors) vector = initial - Vector{};  // minus, as -0 + 0 is 0
    for (; begin + lanes <= end; begin += lanes) {
#pragma clang loop unroll(full)
      for (std::size_t v = 0; v < lanes / 8; ++v) {
        Vector values;
#pragma clang loop unroll(full)
        for (std::size_t l = 0; l < 8; ++l) values[l] = value(begin + 8 * v + l);
        vectors[v] = combine(vectors[v], values);
      }
    }
    for (std::size_t count = lanes / 16; count > 0; count /= 2) {
      for (std::size_t v = 0; v < count; ++v) vectors[v] = combine(vectors[v], vectors[v + count]);
    }
    const Vector lane = vectors[0];
#else
    T lane[lanes];
    for (std::size_t l = 0; l < lanes; ++l) lane[l] = initial;
    for (; begin + lanes <= end; begin += lanes) {
#pragma GCC unroll 1  // a loop that is unrolled before it is vectorised stays scalar
      for (std::size_t l = 0; l < lanes; ++l) lane[l] = combine(lane[l], value(begin + l));
    }
    for (std::size_t width = lanes / 2; width >= 8; width /= 2) {
      for (std::size_t l = 0; l < width; ++l) lane[l] = combine(lane[l], lane[l + width]);
    }
#endif
    // written out, for a loop over so few would wait for the memory of each lane
    const T even = combine(combine(lane[0], lane[4]), combine(lane[2], lane[6]));
    total = combine(even, combine(combine(lane[1], lane[5]), combine(lane[3], lane[7])));
  }
  if constexpr (lanes > 8) {
    return combine(total, reduce_lanes<8>(begin, end, initial, value, combine));
  } else {
    for (; begin < end; ++begin) total = combine(total, value(begin));
    return total;
  }
}

/// Sum of value(0), ..., value(n - 1), of type T: in lanes within a block, in double between blocks, so that
/// the error stays at a few units in the last place for millions of terms.
template <typename T, typename Value>
XGRAD_INLINE T sum_lanes(std::size_t n, Value value) {
  constexpr std::size_t block = 1024;
  const auto plus = [](auto a, auto b) XGRAD_INLINE_LAMBDA { return a + b; };
  if (n <= block) return reduce_lanes(0, n, T(0), value, plus);
  double total = 0;
  for (std::size_t i = 0; i < n; i += block) {
    total += reduce_lanes(i, std::min(n, i + block), T(0), value, plus);
  }
  return static_cast<T>(total);
}

/// Maximum of x[0], ..., x[n - 1], which skips nan; -inf if there is nothing else.
template <typename T>
XGRAD_INLINE T max_lanes(const T* x, std::size_t n) {
  return reduce_lanes(
      0, n, -std::numeric_limits<T>::infinity(), [x](std::size_t i) XGRAD_INLINE_LAMBDA { return x[i]; },
      [](auto m, auto v) XGRAD_INLINE_LAMBDA { return v > m ? v : m; });
}

}  // namespace xgrad::kernels
