#include "binary.hpp"

#include <cmath>

#include "../../base/detail/bytes/bit_cast.hpp"
#include "../../base/detail/system/pieces.hpp"
#include "../index/axes.hpp"
#include "vectorized_math.hpp"

namespace xgrad::kernels {

namespace {

template <typename T>
XGRAD_INLINE T maximum_of(T a, T b) {
  const T y = a < b ? b : a;
  return b != b ? b : y;
}

template <typename T>
XGRAD_INLINE T minimum_of(T a, T b) {
  const T y = b < a ? b : a;
  return b != b ? b : y;
}

template <typename T>
XGRAD_INLINE T squared_difference_of(T a, T b) {
  return (a - b) * (a - b);
}

template <typename T>
XGRAD_INLINE T maximum_share_of(T a, T b) {
  const T y = a < b ? T(0) : T(1);
  return a == b ? T(0.5) : y;
}

template <typename T>
XGRAD_INLINE T masked_mul_of(T a, T b) {
  const T product = a * b;
  return b == T(0) ? T(0) : product;
}

template <typename T>
XGRAD_INLINE T xlogy_of(T a, T b) {
  const T product = a * vectorized::log(b);
  const T y = a == T(0) ? T(0) : product;
  return b != b ? b : y;
}

/// With the sign of b, that of the quotient rounded down.
template <typename T>
XGRAD_INLINE T remainder_of(T a, T b) {
  const T y = std::fmod(a, b);
  return y != T(0) && (y < T(0)) != (b < T(0)) ? y + b : y;
}

}  // namespace

/// y = f(a, b), n elements each, and the rows of a broadcast: both contiguous, b or a constant, any strides.
/// Bound by bandwidth; pow and xlogy by flops, calls of <cmath> by those.
#define XGRAD_BINARY(name, cost, f)                                                                   \
  XGRAD_PARALLEL_KERNEL(name, n, cost, (const T* a, const T* b, T* y, std::size_t n), (a, b, y, n)) { \
    XGRAD_INDEPENDENT                                                                                 \
    for (std::size_t i = begin; i < end; ++i) y[i] = f(a[i], b[i]);                                   \
  }                                                                                                   \
  XGRAD_PARALLEL_KERNEL(                                                                              \
      name##_rows, rows, n* cost,                                                                     \
      (const T* a, std::ptrdiff_t a_row, std::ptrdiff_t a_stride, const T* b, std::ptrdiff_t b_row,   \
       std::ptrdiff_t b_stride, T* y, std::size_t rows, std::size_t n),                               \
      (a, a_row, a_stride, b, b_row, b_stride, y, rows, n)) {                                         \
    const auto size = static_cast<std::ptrdiff_t>(n), first = static_cast<std::ptrdiff_t>(begin);     \
    a += first * a_row, b += first * b_row, y += begin * n;                                           \
    for (; begin < end; ++begin, a += a_row, b += b_row, y += n) {                                    \
      if (a_stride == 1 && b_stride == 1) {                                                           \
        XGRAD_INDEPENDENT                                                                             \
        for (std::ptrdiff_t i = 0; i < size; ++i) y[i] = f(a[i], b[i]);                               \
      } else if (a_stride == 1 && b_stride == 0) {                                                    \
        const T constant = *b;                                                                        \
        XGRAD_INDEPENDENT                                                                             \
        for (std::ptrdiff_t i = 0; i < size; ++i) y[i] = f(a[i], constant);                           \
      } else if (a_stride == 0 && b_stride == 1) {                                                    \
        const T constant = *a;                                                                        \
        XGRAD_INDEPENDENT                                                                             \
        for (std::ptrdiff_t i = 0; i < size; ++i) y[i] = f(constant, b[i]);                           \
      } else {                                                                                        \
        for (std::ptrdiff_t i = 0; i < size; ++i) y[i] = f(a[i * a_stride], b[i * b_stride]);         \
      }                                                                                               \
    }                                                                                                 \
  }

#define XGRAD_PLUS(a, b) a + b
#define XGRAD_MINUS(a, b) a - b
#define XGRAD_TIMES(a, b) a* b
#define XGRAD_OVER(a, b) a / b
#define XGRAD_EQUAL(a, b) a == b ? T(1) : T(0)

XGRAD_BINARY(add, 1, XGRAD_PLUS)
XGRAD_BINARY(sub, 1, XGRAD_MINUS)
XGRAD_BINARY(mul, 1, XGRAD_TIMES)
XGRAD_BINARY(div, 1, XGRAD_OVER)
XGRAD_BINARY(maximum, 1, maximum_of)
XGRAD_BINARY(minimum, 1, minimum_of)
XGRAD_BINARY(pow, 8, vectorized::pow)
XGRAD_BINARY(maximum_share, 1, maximum_share_of)
XGRAD_BINARY(masked_mul, 1, masked_mul_of)
XGRAD_BINARY(squared_difference, 1, squared_difference_of)
XGRAD_BINARY(equal, 1, XGRAD_EQUAL)
XGRAD_BINARY(xlogy, 2, xlogy_of)
XGRAD_BINARY(atan2, 64, std::atan2)
XGRAD_BINARY(fmod, 64, std::fmod)
XGRAD_BINARY(logaddexp, 4, vectorized::logaddexp)
XGRAD_BINARY(hypot, 64, std::hypot)
XGRAD_BINARY(remainder, 64, remainder_of)

XGRAD_PARALLEL_KERNEL(binary_cross_entropy, n, 5, (const T* p, const T* target, T* y, std::size_t n),
                      (p, target, y, n)) {
  XGRAD_INDEPENDENT
  for (std::size_t i = begin; i < end; ++i) {
    const T yes = vectorized::log(p[i]), no = vectorized::log1p(-p[i]);
    const T least = T(-100), log_yes = yes < least ? least : yes, log_no = no < least ? least : no;
    y[i] = (target[i] - T(1)) * log_no - target[i] * log_yes;
  }
}

XGRAD_PARALLEL_KERNEL(binary_cross_entropy_grad, n, 2,
                      (const T* dy, const T* p, const T* target, T* dp, std::size_t n),
                      (dy, p, target, dp, n)) {
  XGRAD_INDEPENDENT
  for (std::size_t i = begin; i < end; ++i) {
    const T slope = (T(1) - p[i]) * p[i], least = T(1e-12);
    dp[i] = dy[i] * ((p[i] - target[i]) / (slope < least ? least : slope));
  }
}

template <typename T>
void binary(Binary op, Lengths shape, const Strided<const T>& a, const Strided<const T>& b, T* y) {
  constexpr decltype(&add_rows<T>) kernels[] = {add_rows<T>,        sub_rows<T>,
                                                mul_rows<T>,        div_rows<T>,
                                                maximum_rows<T>,    minimum_rows<T>,
                                                pow_rows<T>,        maximum_share_rows<T>,
                                                masked_mul_rows<T>, squared_difference_rows<T>,
                                                equal_rows<T>,      xlogy_rows<T>,
                                                atan2_rows<T>,      fmod_rows<T>,
                                                logaddexp_rows<T>,  hypot_rows<T>,
                                                remainder_rows<T>};
  const auto rows_kernel = kernels[static_cast<std::size_t>(op)];
  const Axes<2> axes = merge_axes<2>(shape, {a.strides, b.strides}, 2);
  const std::size_t last = axes.rank - 1, row = axes.rank - 2;
  const std::size_t rows = axes.size(row), n = axes.size(last);
  const std::ptrdiff_t a_stride = axes.stride(0, last), b_stride = axes.stride(1, last);
  if (!is_one_piece(n, 1)) {  // each row is divided
    for_each_outer(axes, 1, [&](const auto& offset, std::size_t number) {
      parallel_pieces(n, 1, [&](std::size_t begin, std::size_t end) {
        const auto first = static_cast<std::ptrdiff_t>(begin);
        rows_kernel(a.data + offset[0] + first * a_stride, 0, a_stride, b.data + offset[1] + first * b_stride,
                    0, b_stride, y + number * n + begin, 1, end - begin);
      });
    });
    return;
  }
  const std::ptrdiff_t a_row = axes.stride(0, row), b_row = axes.stride(1, row);
  parallel_outer(axes, 2, [&](const auto& offset, std::size_t number) {
    parallel_pieces(rows, n, [&](std::size_t begin, std::size_t end) {
      const auto first = static_cast<std::ptrdiff_t>(begin);
      rows_kernel(a.data + offset[0] + first * a_row, a_row, a_stride, b.data + offset[1] + first * b_row,
                  b_row, b_stride, y + (number * rows + begin) * n, end - begin, n);
    });
  });
}

/// condition ? a : b without a branch, which a compiler would make of the expression: unpredictable
/// conditions would bound it.
template <typename T>
XGRAD_INLINE T chosen(bool condition, T a, T b) {
  using vectorized::Bits;
  const Bits<T> all = Bits<T>(0) - Bits<T>(condition);
  return bit_cast<T>((bit_cast<Bits<T>>(a) & all) | (bit_cast<Bits<T>>(b) & ~all));
}

/// The row of a broadcast: contiguous, or any strides. Bound by bandwidth.
XGRAD_PARALLEL_KERNEL(where_row, n, 1,
                      (const bool* condition, std::ptrdiff_t condition_stride, const T* a,
                       std::ptrdiff_t a_stride, const T* b, std::ptrdiff_t b_stride, T* y, std::size_t n),
                      (condition, condition_stride, a, a_stride, b, b_stride, y, n)) {
  const auto first = static_cast<std::ptrdiff_t>(begin), size = static_cast<std::ptrdiff_t>(end);
  if (condition_stride == 1 && a_stride == 0 && b_stride == 1) {
    const T constant = *a;
    XGRAD_INDEPENDENT
    for (std::ptrdiff_t i = first; i < size; ++i) y[i] = chosen(condition[i], constant, b[i]);
  } else if (condition_stride == 1 && a_stride == 1 && b_stride == 1) {
    XGRAD_INDEPENDENT
    for (std::ptrdiff_t i = first; i < size; ++i) y[i] = chosen(condition[i], a[i], b[i]);
  } else {
    for (std::ptrdiff_t i = first; i < size; ++i)
      y[i] = chosen(condition[i * condition_stride], a[i * a_stride], b[i * b_stride]);
  }
}

template <typename T>
void where(Lengths shape, const Strided<const bool>& condition, const Strided<const T>& a,
           const Strided<const T>& b, T* y) {
  const Axes<3> axes = merge_axes<3>(shape, {condition.strides, a.strides, b.strides}, 1);
  const std::size_t last = axes.rank - 1;
  const std::size_t n = axes.size(last);
  parallel_outer(axes, 1, [&](const auto& offset, std::size_t number) {
    where_row(condition.data + offset[0], axes.stride(0, last), a.data + offset[1], axes.stride(1, last),
              b.data + offset[2], axes.stride(2, last), y + number * n, n);
  });
}

// The rest is bound by bandwidth, too.

XGRAD_PARALLEL_KERNEL(accumulate, n, 1, (T * y, const T* x, std::size_t n), (y, x, n)) {
  XGRAD_INDEPENDENT
  for (std::size_t i = begin; i < end; ++i) y[i] += x[i];
}

XGRAD_PARALLEL_KERNEL(accumulate_three, n, 1, (T * y, const T* a, const T* b, const T* c, std::size_t n),
                      (y, a, b, c, n)) {
  XGRAD_INDEPENDENT
  for (std::size_t i = begin; i < end; ++i) y[i] = (y[i] + a[i]) + (b[i] + c[i]);
}

XGRAD_PARALLEL_KERNEL(scale, n, 1, (std::type_identity_t<T> alpha, const T* x, T* y, std::size_t n),
                      (alpha, x, y, n)) {
  XGRAD_INDEPENDENT
  for (std::size_t i = begin; i < end; ++i) y[i] = alpha * x[i];
}

XGRAD_PARALLEL_KERNEL(div_scalar, n, 1, (std::type_identity_t<T> divisor, const T* x, T* y, std::size_t n),
                      (divisor, x, y, n)) {
  XGRAD_INDEPENDENT
  for (std::size_t i = begin; i < end; ++i) y[i] = x[i] / divisor;
}

XGRAD_PARALLEL_KERNEL(add_scalar, n, 1, (std::type_identity_t<T> alpha, const T* x, T* y, std::size_t n),
                      (alpha, x, y, n)) {
  XGRAD_INDEPENDENT
  for (std::size_t i = begin; i < end; ++i) y[i] = x[i] + alpha;
}

XGRAD_PARALLEL_KERNEL(fill, n, 1, (std::type_identity_t<T> value, T* y, std::size_t n), (value, y, n)) {
  XGRAD_INDEPENDENT
  for (std::size_t i = begin; i < end; ++i) y[i] = value;
}

#define XGRAD_INSTANTIATE(T)                                                                                 \
  template void binary(Binary, Lengths, const Strided<const T>&, const Strided<const T>&, T*);               \
  template void where(Lengths, const Strided<const bool>&, const Strided<const T>&, const Strided<const T>&, \
                      T*);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::kernels
