#pragma once

#include <algorithm>
#include <cstddef>

#include "parallel.hpp"
#include "vectorized.hpp"

// Loops over memory, divided among the threads into pieces that depend on sizes alone.
namespace xgrad::kernels {

/// How many elements of a loop as cheap as an addition make a piece: about ten microseconds.
constexpr std::size_t piece_work = std::size_t{1} << 16;

/// How many pieces of this size hold n items.
constexpr std::size_t ceil_div(std::size_t n, std::size_t size) { return (n + size - 1) / size; }

/// True if n items that cost as much as `cost` additions each are not enough for two pieces.
inline bool is_one_piece(std::size_t n, std::size_t cost) { return n * cost < 2 * piece_work; }

/// Calls f(begin, end) for the pieces of [0, n).
template <typename F>
void parallel_pieces(std::size_t n, std::size_t cost, const F& f) {
  if (is_one_piece(n, cost)) return f(std::size_t{0}, n);
  parallel_chunks(n, std::max<std::size_t>(piece_work / cost, 1),
                  [&f](std::size_t begin, std::size_t end, std::size_t) { f(begin, end); });
}

}  // namespace xgrad::kernels

#define XGRAD_LIST(...) __VA_ARGS__

/// Head of the definition of a kernel like those of XGRAD_KERNEL that loops over `count`, one of its
/// parameters, and may do so in pieces. The body computes one, from `begin` on; `count` is its end there:
///
///     XGRAD_PARALLEL_KERNEL(neg, n, 1, (const T* x, T* y, std::size_t n), (x, y, n)) {
///       for (std::size_t i = begin; i < n; ++i) y[i] = -x[i];
///     }
#define XGRAD_PARALLEL_KERNEL(name, count, cost, params, args)                                        \
  XGRAD_KERNEL_VERSIONS(void, name, (XGRAD_LIST params, std::size_t begin), (XGRAD_LIST args, begin)) \
  template <typename T>                                                                               \
  void name params {                                                                                  \
    XGRAD_CAPTURED(#name, args, name<T> args);                                                        \
    if (is_one_piece(count, cost)) return name##_versions<T>(XGRAD_LIST args, 0);                     \
    parallel_pieces(count, cost, [=](std::size_t begin, std::size_t count) {                          \
      name##_versions<T>(XGRAD_LIST args, begin);                                                     \
    });                                                                                               \
  }                                                                                                   \
  template decltype(name<float>) name<float>;                                                         \
  template decltype(name<double>) name<double>;                                                       \
  template <typename T>                                                                               \
  static inline void name##_body(XGRAD_LIST params, std::size_t begin)
