#include "gather.hpp"

#include "../../base/detail/system/pieces.hpp"
#include "axes.hpp"

namespace xgrad::kernels {

/// Bound by bandwidth.
XGRAD_VECTORIZED(bool, narrow_index,
                 (const std::int64_t* index, std::size_t length, std::uint32_t* y, std::size_t n),
                 (index, length, y, n)) {
  std::uint64_t outside = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto id = static_cast<std::uint64_t>(index[i]);
    outside |= id >= length ? 1U : 0U;
    y[i] = static_cast<std::uint32_t>(id);
  }
  return outside == 0;
}

/// Bound by latency.
XGRAD_PARALLEL_KERNEL(gather_row, n, 2,
                      (const T* x, std::ptrdiff_t stride, std::ptrdiff_t dim_stride,
                       const std::uint32_t* index, T* y, std::size_t n),
                      (x, stride, dim_stride, index, y, n)) {
  const auto first = static_cast<std::ptrdiff_t>(begin), size = static_cast<std::ptrdiff_t>(end);
  if (stride == 0 && dim_stride == 1) {
    for (std::ptrdiff_t i = first; i < size; ++i) y[i] = x[index[i]];
  } else {
    for (std::ptrdiff_t i = first; i < size; ++i)
      y[i] = x[i * stride + static_cast<std::ptrdiff_t>(index[i]) * dim_stride];
  }
}

template <typename T>
void gather(Lengths shape, const Strided<const T>& x, std::ptrdiff_t dim_stride, const std::uint32_t* index,
            T* y) {
  const Axes<1> axes = merge_axes<1>(shape, {x.strides}, 1);
  const std::size_t last = axes.rank - 1, n = axes.size(last);
  parallel_outer(axes, 1, [&](const auto& offset, std::size_t number) {
    gather_row(x.data + offset[0], axes.stride(0, last), dim_stride, index + number * n, y + number * n, n);
  });
}

template <typename T>
void gather_grad(Lengths shape, const T* dy, std::ptrdiff_t dim_stride, const std::uint32_t* index,
                 const Strided<T>& dx) {
  const Axes<1> axes = merge_axes<1>(shape, {dx.strides}, 1);
  const std::size_t last = axes.rank - 1, n = axes.size(last);
  const std::ptrdiff_t stride = axes.stride(0, last);
  for_each_outer(axes, 1, [&](const auto& offset, std::size_t number) {
    const std::size_t at = number * n;
    T* to = dx.data + offset[0];
    for (std::size_t i = 0; i < n; ++i) {
      to[static_cast<std::ptrdiff_t>(i) * stride + static_cast<std::ptrdiff_t>(index[at + i]) * dim_stride] +=
          dy[at + i];
    }
  });
}

#define XGRAD_INSTANTIATE(T)                                                                        \
  template void gather(Lengths, const Strided<const T>&, std::ptrdiff_t, const std::uint32_t*, T*); \
  template void gather_grad(Lengths, const T*, std::ptrdiff_t, const std::uint32_t*, const Strided<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::kernels
