#include "embedding.hpp"

#include <algorithm>

#include "pieces.hpp"

namespace xgrad::kernels {

/// Bound by the latency of fetching rows from a large table.
template <typename T>
void gather_rows(const T* weight, const std::int64_t* ids, T* y, std::size_t count, std::size_t dim) {
  parallel_pieces(count, dim, [=](std::size_t begin, std::size_t end) {
    if (dim == 1) {  // a copy is a call
      for (std::size_t i = begin; i < end; ++i) y[i] = weight[ids[i]];
      return;
    }
    for (std::size_t i = begin; i < end; ++i) {
      std::copy_n(weight + static_cast<std::size_t>(ids[i]) * dim, dim, y + i * dim);
    }
  });
}

/// Bound by latency. In one thread, as several ids may name one row.
XGRAD_KERNEL(void, scatter_add_rows,
             (const T* dy, const std::int64_t* ids, T* dweight, std::size_t count, std::size_t dim),
             (dy, ids, dweight, count, dim)) {
  if (dim == 1) {
    for (std::size_t i = 0; i < count; ++i) dweight[ids[i]] += dy[i];
    return;
  }
  for (std::size_t i = 0; i < count; ++i, dy += dim) {
    T* row = dweight + static_cast<std::size_t>(ids[i]) * dim;
    XGRAD_INDEPENDENT
    for (std::size_t d = 0; d < dim; ++d) row[d] += dy[d];
  }
}

#define XGRAD_INSTANTIATE(T) \
  template void gather_rows(const T*, const std::int64_t*, T*, std::size_t, std::size_t);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::kernels
