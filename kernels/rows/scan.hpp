#pragma once

#include <cstddef>
#include <cstdint>

namespace xgrad::kernels {

// Along the middle axis of x (outer, n, inner), from its first element on or, reversed, from its last. Totals
// are kept in double.

/// y[i] = x[0] + ... + x[i].
template <typename T>
void cumsum(const T* x, std::size_t outer, std::size_t n, std::size_t inner, bool reversed, T* y);

/// y[i] = x[0] ... x[i].
template <typename T>
void cumprod(const T* x, std::size_t outer, std::size_t n, std::size_t inner, T* y);

/// y[i] = ln(e^x[0] + ... + e^x[i]).
template <typename T>
void logcumsumexp(const T* x, std::size_t outer, std::size_t n, std::size_t inner, T* y);

/// ids[i]: the last place of the largest of x[0], ..., x[i], or of the smallest. nan is beyond all else.
template <typename T>
void cumulative_extreme(const T* x, std::size_t outer, std::size_t n, std::size_t inner, bool largest,
                        std::int64_t* ids);

/// dx[i] = x[0] ... x[i - 1] r[i] with r[i] = dy[i] + x[i + 1] r[i + 1]: the gradient of cumprod.
template <typename T>
void cumprod_grad(const T* dy, const T* x, std::size_t outer, std::size_t n, std::size_t inner, T* dx);

/// y[i] = b[i] + a[i] y[i - 1], or reversed, y[i] = b[i] + a[i + 1] y[i + 1]; the first is b alone.
template <typename T>
void recurrence(const T* a, const T* b, std::size_t outer, std::size_t n, std::size_t inner, bool reversed,
                T* y);

}  // namespace xgrad::kernels
