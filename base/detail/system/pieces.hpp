#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "../arrays/vectorized.hpp"
#include "parallel.hpp"

// Parallel loops over memory, in pieces that depend only on sizes.
namespace xgrad::kernels {

/// Number of elements per piece of a loop as cheap as an addition: about ten microseconds.
constexpr std::size_t piece_work = std::size_t{1} << 16;

/// The number of pieces of this size for n items.
constexpr std::size_t ceil_div(std::size_t n, std::size_t size) { return (n + size - 1) / size; }

/// True if n items, each as expensive as `cost` additions, are too few to wake a thread.
inline bool is_one_piece(std::size_t n, std::size_t cost) { return n * cost < 2 * piece_work; }

/// True if they are too few to divide at all: less than 64 KiB, part of which another core would fetch.
inline bool is_undivided(std::size_t n, std::size_t cost) { return n * cost < piece_work / 4; }

/// Part i of `parts`.
struct Part {
  std::size_t i, parts;

  /// The range [first, second) of n items.
  std::pair<std::size_t, std::size_t> operator()(std::size_t n) const {
    return {border(i, n), border(i + 1, n)};
  }

 private:
  std::size_t border(std::size_t k, std::size_t n) const {
    const std::size_t multiple = n < 64 * parts ? 1 : 16;       // whole vectors
    const std::uint64_t before = std::uint64_t{k} * n / parts;  // 64 bits: the product exceeds 32
    return k == parts ? n : static_cast<std::size_t>(before) / multiple * multiple;
  }
};

/// Calls f(part) for the parts of work as expensive as n * cost additions, possibly on several arrays. Parts
/// are of equal length and even in number, so that two threads have the same halves of the rows in every
/// kernel.
template <typename F>
void parallel_parts(std::size_t n, std::size_t cost, const F& f) {
  if (is_undivided(n, cost)) return f(Part{0, 1});
  const std::size_t parts = std::min(n, std::max<std::size_t>(n * cost / (2 * piece_work), 1) * 2);
  const Helpers who = is_one_piece(n, cost) ? Helpers::awake : Helpers::woken;
  parallel_for(
      parts,
      [&](std::size_t i, std::size_t) {
        f(Part{i, parts});
      },
      available_threads(), who);
}

/// Calls f(begin, end) for pieces of [0, n).
template <typename F>
void parallel_pieces(std::size_t n, std::size_t cost, const F& f) {
  parallel_parts(n, cost, [&](const Part& part) {
    const auto [begin, end] = part(n);
    f(begin, end);
  });
}

}  // namespace xgrad::kernels

#define XGRAD_LIST(...) __VA_ARGS__

/// Head of the definition of a kernel like those of XGRAD_KERNEL that loops over its parameter `count`,
/// possibly in pieces. The body computes one piece, [begin, end):
///
///     XGRAD_PARALLEL_KERNEL(neg, n, 1, (const T* x, T* y, std::size_t n), (x, y, n)) {
///       for (std::size_t i = begin; i < end; ++i) y[i] = -x[i];
///     }
#define XGRAD_PARALLEL_KERNEL(name, count, cost, params, args)                               \
  XGRAD_KERNEL_VERSIONS(void, name, (XGRAD_LIST params, std::size_t begin, std::size_t end), \
                        (XGRAD_LIST args, begin, end))                                       \
  template <typename T>                                                                      \
  void name params {                                                                         \
    if (is_undivided(count, cost)) return name##_versions<T>(XGRAD_LIST args, 0, count);     \
    parallel_pieces(count, cost, [=](std::size_t begin, std::size_t end) {                   \
      name##_versions<T>(XGRAD_LIST args, begin, end);                                       \
    });                                                                                      \
  }                                                                                          \
  template decltype(name<float>) name<float>;                                                \
  template decltype(name<double>) name<double>;                                              \
  template <typename T>                                                                      \
  static inline void name##_body(XGRAD_LIST params, std::size_t begin, std::size_t end)

#pragma GCC diagnostic ignored "-Wunused-parameter"  // a body that computes [begin, end) may not use count
