#include "scan.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#include "../../base/detail/system/pieces.hpp"
#include "../pointwise/vectorized_math.hpp"

namespace xgrad::kernels {

namespace {

constexpr std::size_t width = 512;  // of the strips of columns, whose totals stay in the first-level cache

constexpr std::size_t grad_width = 64;  // the same where their products are kept, too

constexpr std::size_t kept_every = 16;  // elements of a column, the product in front is kept

/// Goes through n rows of w columns, which are `inner` apart: total[c] = first(place), then next(total[c],
/// place), which are written there.
template <bool reversed, typename T, typename First, typename Next>
XGRAD_INLINE void scan_columns(std::size_t n, std::size_t inner, std::size_t w, T* y, First first,
                               Next next) {
  double total[width];
  const std::size_t begin = reversed ? (n - 1) * inner : 0;
  for (std::size_t c = 0; c < w; ++c) y[begin + c] = static_cast<T>(total[c] = first(begin + c));
  for (std::size_t i = 1; i < n; ++i) {
    const std::size_t row = (reversed ? n - 1 - i : i) * inner;
    XGRAD_INDEPENDENT
    for (std::size_t c = 0; c < w; ++c) {
      total[c] = next(total[c], row + c);
      y[row + c] = static_cast<T>(total[c]);
    }
  }
}

/// The same for one column without gaps.
template <bool reversed, typename T, typename First, typename Next>
XGRAD_INLINE void scan_row(std::size_t n, T* y, First first, Next next) {
  std::size_t place = reversed ? n - 1 : 0;
  double total = first(place);
  y[place] = static_cast<T>(total);
  for (std::size_t i = 1; i < n; ++i) {
    place = reversed ? n - 1 - i : i;
    total = next(total, place);
    y[place] = static_cast<T>(total);
  }
}

/// Sums within blocks are added to the total of those before, so that an element does not wait for the last.
template <bool reversed, typename T>
XGRAD_INLINE void cumsum_row(const T* x, std::size_t n, T* y) {
  constexpr std::size_t block = 8;
  const auto place = [n](std::size_t i) XGRAD_INLINE_LAMBDA { return reversed ? n - 1 - i : i; };
  double total = 0;
  std::size_t i = 0;
  for (; i + block <= n; i += block) {
    T sums[block];
    sums[0] = x[place(i)];
    for (std::size_t k = 1; k < block; ++k) sums[k] = sums[k - 1] + x[place(i + k)];
    const T before = static_cast<T>(total);
    for (std::size_t k = 0; k < block; ++k) y[place(i + k)] = before + sums[k];
    total += sums[block - 1];
  }
  for (; i < n; ++i) y[place(i)] = static_cast<T>(total += x[place(i)]);
}

template <bool reversed, typename T>
XGRAD_INLINE void cumsum_strip(const T* x, std::size_t n, std::size_t inner, std::size_t w, T* y) {
  if (inner == 1) return cumsum_row<reversed>(x, n, y);
  scan_columns<reversed>(
      n, inner, w, y, [x](std::size_t at) XGRAD_INLINE_LAMBDA { return static_cast<double>(x[at]); },
      [x](double total, std::size_t at) XGRAD_INLINE_LAMBDA { return total + x[at]; });
}

template <bool reversed, typename T>
XGRAD_INLINE void recurrence_strip(const T* a, const T* b, std::size_t n, std::size_t inner, std::size_t w,
                                   T* y) {
  const auto first = [b](std::size_t at) XGRAD_INLINE_LAMBDA { return static_cast<double>(b[at]); };
  const T* const factor = a + (reversed ? inner : 0);
  const auto next = [b, factor](double total, std::size_t at)
                        XGRAD_INLINE_LAMBDA { return b[at] + factor[at] * total; };
  if (inner == 1) return scan_row<reversed>(n, y, first, next);
  scan_columns<reversed>(n, inner, w, y, first, next);
}

/// Where strip `number` begins, and how wide it is.
struct Strip {
  Strip(std::size_t number, std::size_t n, std::size_t inner, std::size_t w = width) {
    const std::size_t strips = ceil_div(inner, w), left = number % strips * w;
    offset = number / strips * n * inner + left;
    columns = std::min(w, inner - left);
  }

  std::size_t offset, columns;
};

/// Bound by bandwidth.
XGRAD_PARALLEL_KERNEL(cumsum_strips, strips, n* std::min(width, inner),
                      (const T* x, std::size_t n, std::size_t inner, bool reversed, T* y, std::size_t strips),
                      (x, n, inner, reversed, y, strips)) {
  for (; begin < end; ++begin) {
    const Strip strip(begin, n, inner);
    if (reversed) {
      cumsum_strip<true>(x + strip.offset, n, inner, strip.columns, y + strip.offset);
    } else {
      cumsum_strip<false>(x + strip.offset, n, inner, strip.columns, y + strip.offset);
    }
  }
}

/// Bound by the latency of a product in rows, else by bandwidth.
XGRAD_PARALLEL_KERNEL(cumprod_strips, strips, n* std::min(width, inner),
                      (const T* x, std::size_t n, std::size_t inner, T* y, std::size_t strips),
                      (x, n, inner, y, strips)) {
  for (; begin < end; ++begin) {
    const Strip strip(begin, n, inner);
    const T* const from = x + strip.offset;
    const auto first = [from](std::size_t at) XGRAD_INLINE_LAMBDA { return static_cast<double>(from[at]); };
    const auto next = [from](double total, std::size_t at) XGRAD_INLINE_LAMBDA { return total * from[at]; };
    if (inner == 1) {
      scan_row<false>(n, y + strip.offset, first, next);
    } else {
      scan_columns<false>(n, inner, strip.columns, y + strip.offset, first, next);
    }
  }
}

/// Bound by the latency of an exponential and a logarithm in rows, else by flops.
XGRAD_PARALLEL_KERNEL(logcumsumexp_strips, strips, 4 * n * std::min(width, inner),
                      (const T* x, std::size_t n, std::size_t inner, T* y, std::size_t strips),
                      (x, n, inner, y, strips)) {
  for (; begin < end; ++begin) {
    const Strip strip(begin, n, inner);
    const T* const from = x + strip.offset;
    const auto first = [from](std::size_t at) XGRAD_INLINE_LAMBDA { return static_cast<double>(from[at]); };
    const auto next = [from](double total, std::size_t at) XGRAD_INLINE_LAMBDA {
      return vectorized::logaddexp(total, static_cast<double>(from[at]));
    };
    if (inner == 1) {
      scan_row<false>(n, y + strip.offset, first, next);
    } else {
      scan_columns<false>(n, inner, strip.columns, y + strip.offset, first, next);
    }
  }
}

/// Bound by bandwidth.
XGRAD_PARALLEL_KERNEL(extreme_strips, strips, n* std::min(width, inner),
                      (const T* x, std::size_t n, std::size_t inner, bool largest, std::int64_t* ids,
                       std::size_t strips),
                      (x, n, inner, largest, ids, strips)) {
  const T sign = largest ? T(1) : T(-1);
  for (; begin < end; ++begin) {
    const Strip strip(begin, n, inner);
    T extreme[width];
    std::int64_t place[width];
    std::fill_n(extreme, strip.columns, -std::numeric_limits<T>::infinity());
    std::fill_n(place, strip.columns, 0);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t row = strip.offset + i * inner;
      XGRAD_INDEPENDENT
      for (std::size_t c = 0; c < strip.columns; ++c) {
        const T v = sign * x[row + c];
        const bool taken = (v >= extreme[c]) | (v != v);
        extreme[c] = taken ? v : extreme[c];
        place[c] = taken ? static_cast<std::int64_t>(i) : place[c];
        ids[row + c] = place[c];
      }
    }
  }
}

/// dx of w columns of x, whose elements are `step` apart: that of element i of column c is at i * step +
/// c * apart. The products in front of some elements are kept, and those between found again from them.
template <std::size_t most, typename T, typename Width>
XGRAD_INLINE void cumprod_grad_columns(const T* dy, const T* x, std::size_t n, std::size_t step,
                                       std::size_t apart, Width w, double* kept, T* dx) {
  constexpr std::size_t block = kept_every;
  double front[block * most], product[most], behind[most];
  std::fill_n(product, most, 1.0);
  for (std::size_t i = 0; i < n; ++i) {
    if (i % block == 0) std::copy_n(product, most, kept + i / block * most);
    for (std::size_t c = 0; c < w; ++c) product[c] *= x[i * step + c * apart];
  }
  std::fill_n(behind, most, 0.0);
  for (std::size_t end = n; end > 0;) {
    const std::size_t first = (end - 1) / block * block;
    std::copy_n(kept + first / block * most, most, product);
    for (std::size_t i = first; i < end; ++i) {
      for (std::size_t c = 0; c < w; ++c) {
        front[(i - first) * most + c] = product[c];
        product[c] *= x[i * step + c * apart];
      }
    }
    for (; end > first; --end) {
      const std::size_t row = (end - 1) * step;
      const double* const before = front + (end - 1 - first) * most;
      for (std::size_t c = 0; c < w; ++c) {
        const std::size_t at = row + c * apart;
        const double r = dy[at] + behind[c];
        behind[c] = x[at] * r;
        dx[at] = static_cast<T>(before[c] * r);
      }
    }
  }
}

/// Of rows without gaps, eight beside each other, so that none waits for its last product.
XGRAD_PARALLEL_KERNEL(cumprod_grad_rows, rows, n,
                      (const T* dy, const T* x, std::size_t n, T* dx, std::size_t rows),
                      (dy, x, n, dx, rows)) {
  constexpr std::size_t most = 8;
  std::vector<double> kept(ceil_div(n, kept_every) * most);
  for (; begin + most <= end; begin += most) {
    const std::size_t at = begin * n;
    cumprod_grad_columns<most>(dy + at, x + at, n, 1, n, std::integral_constant<std::size_t, most>(),
                               kept.data(), dx + at);
  }
  for (; begin < end; ++begin) {
    const std::size_t at = begin * n;
    cumprod_grad_columns<1>(dy + at, x + at, n, 1, 0, std::integral_constant<std::size_t, 1>(), kept.data(),
                            dx + at);
  }
}

/// Of strips of columns. Bound by bandwidth.
XGRAD_PARALLEL_KERNEL(cumprod_grad_strips, strips, n* std::min(grad_width, inner),
                      (const T* dy, const T* x, std::size_t n, std::size_t inner, T* dx, std::size_t strips),
                      (dy, x, n, inner, dx, strips)) {
  std::vector<double> kept(ceil_div(n, kept_every) * grad_width);
  for (; begin < end; ++begin) {
    const Strip strip(begin, n, inner, grad_width);
    cumprod_grad_columns<grad_width>(dy + strip.offset, x + strip.offset, n, inner, 1, strip.columns,
                                     kept.data(), dx + strip.offset);
  }
}

/// As cumprod_strips.
XGRAD_PARALLEL_KERNEL(recurrence_strips, strips, n* std::min(width, inner),
                      (const T* a, const T* b, std::size_t n, std::size_t inner, bool reversed, T* y,
                       std::size_t strips),
                      (a, b, n, inner, reversed, y, strips)) {
  for (; begin < end; ++begin) {
    const Strip strip(begin, n, inner);
    const T *const factors = a + strip.offset, *const terms = b + strip.offset;
    if (reversed) {
      recurrence_strip<true>(factors, terms, n, inner, strip.columns, y + strip.offset);
    } else {
      recurrence_strip<false>(factors, terms, n, inner, strip.columns, y + strip.offset);
    }
  }
}

}  // namespace

template <typename T>
void cumsum(const T* x, std::size_t outer, std::size_t n, std::size_t inner, bool reversed, T* y) {
  if (n > 0) cumsum_strips(x, n, inner, reversed, y, outer * ceil_div(inner, width));
}

template <typename T>
void cumprod(const T* x, std::size_t outer, std::size_t n, std::size_t inner, T* y) {
  if (n > 0) cumprod_strips(x, n, inner, y, outer * ceil_div(inner, width));
}

template <typename T>
void logcumsumexp(const T* x, std::size_t outer, std::size_t n, std::size_t inner, T* y) {
  if (n > 0) logcumsumexp_strips(x, n, inner, y, outer * ceil_div(inner, width));
}

template <typename T>
void cumulative_extreme(const T* x, std::size_t outer, std::size_t n, std::size_t inner, bool largest,
                        std::int64_t* ids) {
  if (n > 0) extreme_strips(x, n, inner, largest, ids, outer * ceil_div(inner, width));
}

template <typename T>
void cumprod_grad(const T* dy, const T* x, std::size_t outer, std::size_t n, std::size_t inner, T* dx) {
  if (inner == 1) return cumprod_grad_rows(dy, x, n, dx, outer);
  cumprod_grad_strips(dy, x, n, inner, dx, outer * ceil_div(inner, grad_width));
}

template <typename T>
void recurrence(const T* a, const T* b, std::size_t outer, std::size_t n, std::size_t inner, bool reversed,
                T* y) {
  if (n > 0) recurrence_strips(a, b, n, inner, reversed, y, outer * ceil_div(inner, width));
}

#define XGRAD_INSTANTIATE(T)                                                                              \
  template void cumsum(const T*, std::size_t, std::size_t, std::size_t, bool, T*);                        \
  template void cumprod(const T*, std::size_t, std::size_t, std::size_t, T*);                             \
  template void logcumsumexp(const T*, std::size_t, std::size_t, std::size_t, T*);                        \
  template void cumulative_extreme(const T*, std::size_t, std::size_t, std::size_t, bool, std::int64_t*); \
  template void cumprod_grad(const T*, const T*, std::size_t, std::size_t, std::size_t, T*);              \
  template void recurrence(const T*, const T*, std::size_t, std::size_t, std::size_t, bool, T*);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::kernels
