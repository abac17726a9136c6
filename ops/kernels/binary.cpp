#include <xgrad/ops/kernels/axes.hpp>
#include <xgrad/ops/kernels/binary.hpp>
#include <xgrad/ops/kernels/vectorized.hpp>

namespace xgrad::kernels {

/// y = a op b, n elements each, and the rows of a broadcast: both contiguous, b or a constant, any strides.
/// Bound by bandwidth.
#define XGRAD_BINARY(name, op)                                                                         \
  XGRAD_KERNEL(void, name, (const T* a, const T* b, T* y, std::size_t n), (a, b, y, n)) {              \
    XGRAD_INDEPENDENT                                                                                  \
    for (std::size_t i = 0; i < n; ++i) y[i] = a[i] op b[i];                                           \
  }                                                                                                    \
  XGRAD_KERNEL(                                                                                        \
      void, name##_row,                                                                                \
      (const T* a, std::ptrdiff_t a_stride, const T* b, std::ptrdiff_t b_stride, T* y, std::size_t n), \
      (a, a_stride, b, b_stride, y, n)) {                                                              \
    const auto size = static_cast<std::ptrdiff_t>(n);                                                  \
    if (a_stride == 1 && b_stride == 1) {                                                              \
      XGRAD_INDEPENDENT                                                                                \
      for (std::ptrdiff_t i = 0; i < size; ++i) y[i] = a[i] op b[i];                                   \
    } else if (a_stride == 1 && b_stride == 0) {                                                       \
      const T constant = *b;                                                                           \
      XGRAD_INDEPENDENT                                                                                \
      for (std::ptrdiff_t i = 0; i < size; ++i) y[i] = a[i] op constant;                               \
    } else if (a_stride == 0 && b_stride == 1) {                                                       \
      const T constant = *a;                                                                           \
      XGRAD_INDEPENDENT                                                                                \
      for (std::ptrdiff_t i = 0; i < size; ++i) y[i] = constant op b[i];                               \
    } else {                                                                                           \
      for (std::ptrdiff_t i = 0; i < size; ++i) y[i] = a[i * a_stride] op b[i * b_stride];             \
    }                                                                                                  \
  }

XGRAD_BINARY(add, +)
XGRAD_BINARY(sub, -)
XGRAD_BINARY(mul, *)
XGRAD_BINARY(div, /)

template <typename T>
void binary(Binary op, std::size_t rank, const std::size_t* shape, const T* a,
            const std::ptrdiff_t* a_strides, const T* b, const std::ptrdiff_t* b_strides, T* y) {
  constexpr decltype(&add_row<T>) rows[] = {add_row<T>, sub_row<T>, mul_row<T>, div_row<T>};
  const auto row = rows[static_cast<std::size_t>(op)];
  const Axes<2> axes = merge_axes<2>(rank, shape, {a_strides, b_strides}, 1);
  const std::size_t last = axes.rank - 1;
  const std::size_t n = axes.size(last);
  for_each_outer(axes, 1, [&](const auto& offset) {
    row(a + offset[0], axes.stride(0, last), b + offset[1], axes.stride(1, last), y, n);
    y += n;
  });
}

XGRAD_KERNEL(void, accumulate, (T * y, const T* x, std::size_t n), (y, x, n)) {
  XGRAD_INDEPENDENT
  for (std::size_t i = 0; i < n; ++i) y[i] += x[i];
}

XGRAD_KERNEL(void, scale, (std::type_identity_t<T> alpha, const T* x, T* y, std::size_t n),
             (alpha, x, y, n)) {
  XGRAD_INDEPENDENT
  for (std::size_t i = 0; i < n; ++i) y[i] = alpha * x[i];
}

XGRAD_KERNEL(void, add_scalar, (std::type_identity_t<T> alpha, const T* x, T* y, std::size_t n),
             (alpha, x, y, n)) {
  XGRAD_INDEPENDENT
  for (std::size_t i = 0; i < n; ++i) y[i] = x[i] + alpha;
}

XGRAD_KERNEL(void, fill, (std::type_identity_t<T> value, T* y, std::size_t n), (value, y, n)) {
  XGRAD_INDEPENDENT
  for (std::size_t i = 0; i < n; ++i) y[i] = value;
}

template void binary(Binary, std::size_t, const std::size_t*, const float*, const std::ptrdiff_t*,
                     const float*, const std::ptrdiff_t*, float*);
template void binary(Binary, std::size_t, const std::size_t*, const double*, const std::ptrdiff_t*,
                     const double*, const std::ptrdiff_t*, double*);

}  // namespace xgrad::kernels
