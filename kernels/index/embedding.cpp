#include "embedding.hpp"

#include <algorithm>

#include "../../base/detail/system/pieces.hpp"

namespace xgrad::kernels {

/// Bound by the latency of fetching rows from a large table.
template <typename T>
void gather_rows(const T* weight, const std::int64_t* ids, const Matrix<T>& y) {
  T* const to = y.data;
  const std::size_t dim = y.cols;
  parallel_pieces(y.rows, dim, [=](std::size_t begin, std::size_t end) {
    if (dim == 1) {  // a copy is a call
      for (std::size_t i = begin; i < end; ++i) to[i] = weight[ids[i]];
      return;
    }
    for (std::size_t i = begin; i < end; ++i) {
      std::copy_n(weight + static_cast<std::size_t>(ids[i]) * dim, dim, to + i * dim);
    }
  });
}

/// Bound by latency. In one thread, as several ids may name one row.
XGRAD_KERNEL(void, scatter_add_rows, (const Matrix<const T>& dy, const std::int64_t* ids, T* dweight),
             (dy, ids, dweight)) {
  const T* from = dy.data;
  const std::size_t count = dy.rows, dim = dy.cols;
  if (dim == 1) {
    for (std::size_t i = 0; i < count; ++i) dweight[ids[i]] += from[i];
    return;
  }
  for (std::size_t i = 0; i < count; ++i, from += dim) {
    T* row = dweight + static_cast<std::size_t>(ids[i]) * dim;
    XGRAD_INDEPENDENT
    for (std::size_t d = 0; d < dim; ++d) row[d] += from[d];
  }
}

#define XGRAD_INSTANTIATE(T) template void gather_rows(const T*, const std::int64_t*, const Matrix<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::kernels
