#include "rotary.hpp"

#include <algorithm>

#include "../../base/detail/system/pieces.hpp"

namespace xgrad::kernels {

/// Bound by bandwidth.
XGRAD_PARALLEL_KERNEL(rotary_rows, rows, 2 * sizes.heads * sizes.head_dim,
                      (const RotarySizes& sizes, const T* x, const T* cos, const T* sin, T direction, T* y,
                       std::size_t rows),
                      (sizes, x, cos, sin, direction, y, rows)) {
  const std::size_t heads = sizes.heads, dim = sizes.head_dim, pairs = sizes.pairs;
  for (std::size_t r = begin; r < end; ++r) {
    const T* const c = cos + r % sizes.angle_rows * pairs;
    const T* const s = sin + r % sizes.angle_rows * pairs;
    for (std::size_t h = 0; h < heads; ++h) {
      const T* const from = x + (r * heads + h) * dim;
      T* const to = y + (r * heads + h) * dim;
      if (sizes.interleaved) {
        XGRAD_INDEPENDENT
        for (std::size_t i = 0; i < pairs; ++i) {
          const T a = from[2 * i], b = from[2 * i + 1], t = direction * s[i];
          to[2 * i] = a * c[i] - b * t;
          to[2 * i + 1] = b * c[i] + a * t;
        }
      } else {
        XGRAD_INDEPENDENT
        for (std::size_t i = 0; i < pairs; ++i) {
          const T a = from[i], b = from[pairs + i], t = direction * s[i];
          to[i] = a * c[i] - b * t;
          to[pairs + i] = b * c[i] + a * t;
        }
      }
      std::copy(from + 2 * pairs, from + dim, to + 2 * pairs);
    }
  }
}

template <typename T>
void rotary(const RotarySizes& sizes, const T* x, const T* cos, const T* sin, bool backwards, T* y) {
  rotary_rows<T>(sizes, x, cos, sin, backwards ? T(-1) : T(1), y, sizes.rows);
}

/// Angles are learned by few: one thread.
template <typename T>
void rotary_grad_angles(const RotarySizes& sizes, const T* dy, const T* x, T* dcos, T* dsin) {
  const std::size_t pairs = sizes.pairs, count = sizes.angle_rows * pairs;
  std::fill_n(dcos, count, T(0));
  std::fill_n(dsin, count, T(0));
  const std::size_t step = sizes.interleaved ? 2 : 1, other = sizes.interleaved ? 1 : pairs;
  for (std::size_t r = 0; r < sizes.rows; ++r) {
    T* const dc = dcos + r % sizes.angle_rows * pairs;
    T* const ds = dsin + r % sizes.angle_rows * pairs;
    for (std::size_t h = 0; h < sizes.heads; ++h) {
      const std::size_t at = (r * sizes.heads + h) * sizes.head_dim;
      for (std::size_t i = 0; i < pairs; ++i) {
        const std::size_t first = at + step * i, second = first + other;
        dc[i] += x[first] * dy[first] + x[second] * dy[second];
        ds[i] += x[first] * dy[second] - x[second] * dy[first];
      }
    }
  }
}

#define XGRAD_INSTANTIATE(T)                                                        \
  template void rotary(const RotarySizes&, const T*, const T*, const T*, bool, T*); \
  template void rotary_grad_angles(const RotarySizes&, const T*, const T*, T*, T*);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::kernels
