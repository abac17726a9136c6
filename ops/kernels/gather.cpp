#include <xgrad/ops/kernels/axes.hpp>
#include <xgrad/ops/kernels/gather.hpp>
#include <xgrad/ops/kernels/vectorized.hpp>

namespace xgrad::kernels {

namespace {

/// Calls visit(offset into x, number of the element) in row-major order. Bound by latency.
template <typename Visit>
void for_each_gathered(std::size_t rank, const std::size_t* shape, const std::ptrdiff_t* strides,
                       std::ptrdiff_t dim_stride, const std::uint32_t* index, Visit visit) {
  const Axes<1> axes = merge_axes<1>(rank, shape, {strides}, 1);
  const std::size_t last = axes.rank - 1, n = axes.size(last);
  const std::ptrdiff_t stride = axes.stride(0, last);
  std::size_t number = 0;
  for_each_outer(axes, 1, [&](const auto& offset) {
    for (std::size_t i = 0; i < n; ++i, ++number) {
      visit(offset[0] + static_cast<std::ptrdiff_t>(i) * stride + std::ptrdiff_t{index[number]} * dim_stride,
            number);
    }
  });
}

}  // namespace

/// Bound by bandwidth.
XGRAD_VECTORIZED bool narrow_index(const std::int64_t* index, std::size_t length, std::uint32_t* y,
                                   std::size_t n) {
  std::uint64_t outside = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto id = static_cast<std::uint64_t>(index[i]);
    outside |= id >= length ? 1U : 0U;
    y[i] = static_cast<std::uint32_t>(id);
  }
  return outside == 0;
}

template <typename T>
void gather(std::size_t rank, const std::size_t* shape, const std::ptrdiff_t* strides,
            std::ptrdiff_t dim_stride, const T* x, const std::uint32_t* index, T* y) {
  for_each_gathered(rank, shape, strides, dim_stride, index,
                    [=](std::ptrdiff_t offset, std::size_t i) { y[i] = x[offset]; });
}

template <typename T>
void gather_grad(std::size_t rank, const std::size_t* shape, const std::ptrdiff_t* strides,
                 std::ptrdiff_t dim_stride, const T* dy, const std::uint32_t* index, T* dx) {
  for_each_gathered(rank, shape, strides, dim_stride, index,
                    [=](std::ptrdiff_t offset, std::size_t i) { dx[offset] += dy[i]; });
}

#define XGRAD_INSTANTIATE(T)                                                                             \
  template void gather(std::size_t, const std::size_t*, const std::ptrdiff_t*, std::ptrdiff_t, const T*, \
                       const std::uint32_t*, T*);                                                        \
  template void gather_grad(std::size_t, const std::size_t*, const std::ptrdiff_t*, std::ptrdiff_t,      \
                            const T*, const std::uint32_t*, T*);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::kernels
