#include "scan.hpp"

#include <algorithm>

#include "pieces.hpp"

namespace xgrad::kernels {

namespace {

constexpr std::size_t width = 512;  // of the strips of columns, whose totals stay in the first-level cache

constexpr std::size_t strips_of(std::size_t inner) { return (inner + width - 1) / width; }

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
  Strip(std::size_t number, std::size_t n, std::size_t inner) {
    const std::size_t strips = strips_of(inner), left = number % strips * width;
    offset = number / strips * n * inner + left;
    columns = std::min(width, inner - left);
  }

  std::size_t offset, columns;
};

/// Bound by bandwidth.
XGRAD_PARALLEL_KERNEL(cumsum_strips, strips, n* std::min(width, inner),
                      (const T* x, std::size_t n, std::size_t inner, bool reversed, T* y, std::size_t strips),
                      (x, n, inner, reversed, y, strips)) {
  for (; begin < strips; ++begin) {
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
  for (; begin < strips; ++begin) {
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

/// As cumprod_strips.
XGRAD_PARALLEL_KERNEL(recurrence_strips, strips, n* std::min(width, inner),
                      (const T* a, const T* b, std::size_t n, std::size_t inner, bool reversed, T* y,
                       std::size_t strips),
                      (a, b, n, inner, reversed, y, strips)) {
  for (; begin < strips; ++begin) {
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
  if (n > 0) cumsum_strips(x, n, inner, reversed, y, outer * strips_of(inner));
}

template <typename T>
void cumprod(const T* x, std::size_t outer, std::size_t n, std::size_t inner, T* y) {
  if (n > 0) cumprod_strips(x, n, inner, y, outer * strips_of(inner));
}

template <typename T>
void recurrence(const T* a, const T* b, std::size_t outer, std::size_t n, std::size_t inner, bool reversed,
                T* y) {
  if (n > 0) recurrence_strips(a, b, n, inner, reversed, y, outer * strips_of(inner));
}

#define XGRAD_INSTANTIATE(T)                                                       \
  template void cumsum(const T*, std::size_t, std::size_t, std::size_t, bool, T*); \
  template void cumprod(const T*, std::size_t, std::size_t, std::size_t, T*);      \
  template void recurrence(const T*, const T*, std::size_t, std::size_t, std::size_t, bool, T*);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::kernels
