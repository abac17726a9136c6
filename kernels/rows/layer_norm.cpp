#include "layer_norm.hpp"

#include <algorithm>

#include "../../base/detail/system/pieces.hpp"
#include "reduce.hpp"
#include "row_statistics.hpp"

namespace xgrad::kernels {

namespace {

/// y = (x - mean) rstd weight + bias; the last two may be null.
template <typename T>
XGRAD_INLINE void normalize_row(const T* x, const T* weight, const T* bias, T* y, T mean, T rstd,
                                std::size_t n) {
  if (weight && bias) {
    XGRAD_INDEPENDENT
    for (std::size_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * rstd * weight[i] + bias[i];
  } else if (weight) {
    XGRAD_INDEPENDENT
    for (std::size_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * rstd * weight[i];
  } else if (bias) {
    XGRAD_INDEPENDENT
    for (std::size_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * rstd + bias[i];
  } else {
    XGRAD_INDEPENDENT
    for (std::size_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * rstd;
  }
}

/// dx = rstd (g - mean(g) - xhat mean(g xhat)) with g = dy weight, or dy, the gradient of xhat.
template <bool weighted, bool centred, typename T>
XGRAD_INLINE void normalize_grad_row(const T* dy, const T* weight, const T* x, T mean, T rstd, T* dx,
                                     std::size_t n) {
  const auto g = [=](std::size_t i) XGRAD_INLINE_LAMBDA { return weighted ? dy[i] * weight[i] : dy[i]; };
  const auto xhat = [=](std::size_t i) XGRAD_INLINE_LAMBDA { return (x[i] - mean) * rstd; };
  const T g_mean = centred ? sum_lanes<T>(n, g) / T(n) : T(0);
  const T gx_mean = sum_lanes<T>(n, [=](std::size_t i) XGRAD_INLINE_LAMBDA { return g(i) * xhat(i); }) / T(n);
  // written out: clang checks for overlaps where lambdas that a loop calls read the arrays
  XGRAD_INDEPENDENT
  for (std::size_t i = 0; i < n; ++i)
    dx[i] = rstd * ((weighted ? dy[i] * weight[i] : dy[i]) - g_mean - (x[i] - mean) * rstd * gx_mean);
}

template <bool weighted, typename T>
XGRAD_INLINE void normalize_grad_row(const T* dy, const T* weight, const T* x, const T* mean, T rstd, T* dx,
                                     std::size_t n) {
  if (mean) {
    normalize_grad_row<weighted, true>(dy, weight, x, *mean, rstd, dx, n);
  } else {
    normalize_grad_row<weighted, false>(dy, weight, x, T(0), rstd, dx, n);
  }
}

/// y = x - a; y may be x.
template <typename T>
XGRAD_INLINE void subtract(const T* x, T a, T* y, std::size_t n) {
  XGRAD_INDEPENDENT
  for (std::size_t i = 0; i < n; ++i) y[i] = x[i] - a;
}

/// x, or x + residual, which y then holds.
template <typename T>
XGRAD_INLINE const T* sum_row(const T* x, const T* residual, T* y, std::size_t n) {
  if (!residual) return x;
  XGRAD_INDEPENDENT
  for (std::size_t i = 0; i < n; ++i) y[i] = x[i] + residual[i];
  return y;
}

/// Blocks of 16 rows, which stay in cache between their sum with the residual, their column sums (tiles of 64
/// columns on the stack, then added to dweight and dbias) and their dx. Bound by bandwidth.
XGRAD_KERNEL(void, normalize_grad_rows,
             (const T* dy, const LayerNormInput<T>& input, const LayerNormStatistics<const T>& statistics,
              const LayerNormGrads<T>& grads),
             (dy, input, statistics, grads)) {
  with_length(input.cols, [&](auto cols) XGRAD_INLINE_LAMBDA {
    constexpr std::size_t height = 16, width = 64;
    const std::size_t rows = input.rows;
    const T *const x = input.x, *const residual = input.residual, *const weight = input.weight;
    const T *const mean = statistics.mean, *const rstd = statistics.rstd;
    T *const dx = grads.dx, *const dweight = grads.dweight, *const dbias = grads.dbias;
    if (dweight) std::fill_n(dweight, cols, T(0));
    if (dbias) std::fill_n(dbias, cols, T(0));
    for (std::size_t top = 0; top < rows; top += height) {
      const std::size_t bottom = std::min(rows, top + height);
      T rests[height] = {};
      for (std::size_t r = top; mean && r < bottom; ++r) {
        if (has_large_offset(mean[r], rstd[r]))
          rests[r - top] =
              mean_deviation<T>(x + r * cols, residual ? residual + r * cols : nullptr, cols, mean[r]);
      }
      for (std::size_t left = 0; (dweight || dbias) && left < cols; left += width) {
        const std::size_t n = std::min(width, cols - left);
        T weight_sum[width] = {}, bias_sum[width] = {}, sum[width];
        for (std::size_t r = top; r < bottom; ++r) {
          const std::size_t at = r * cols + left;
          const T* dy_row = dy + at;
          const T* x_row = sum_row(x + at, residual ? residual + at : nullptr, sum, n);
          const T mu = mean ? mean[r] : T(0), rest = rests[r - top], scale = rstd[r];
          XGRAD_INDEPENDENT
          for (std::size_t i = 0; i < n; ++i) {
            weight_sum[i] += dy_row[i] * ((x_row[i] - mu - rest) * scale);
            bias_sum[i] += dy_row[i];
          }
        }
        XGRAD_INDEPENDENT
        for (std::size_t i = 0; dweight && i < n; ++i) dweight[left + i] += weight_sum[i];
        XGRAD_INDEPENDENT
        for (std::size_t i = 0; dbias && i < n; ++i) dbias[left + i] += bias_sum[i];
      }
      for (std::size_t r = top; dx && r < bottom; ++r) {
        const std::size_t at = r * cols;
        const T* dy_row = dy + at;
        const T* x_row = sum_row(x + at, residual ? residual + at : nullptr, dx + at, cols);
        const T* row_mean = mean ? mean + r : nullptr;
        if (rests[r - top] != T(0)) {
          subtract(x_row, *row_mean, dx + at, cols);
          x_row = dx + at, row_mean = rests + (r - top);
        }
        if (weight) {
          normalize_grad_row<true>(dy_row, weight, x_row, row_mean, rstd[r], dx + at, cols);
        } else {
          normalize_grad_row<false>(dy_row, weight, x_row, row_mean, rstd[r], dx + at, cols);
        }
      }
    }
  });
}

/// Three or four loops over a row, which leaves memory once: bound by bandwidth.
XGRAD_PARALLEL_KERNEL(normalize_rows, rows, 8 * input.cols,
                      (const LayerNormInput<T>& input, std::type_identity_t<T> eps,
                       const LayerNormStatistics<T>& statistics, T* y, std::size_t rows),
                      (input, eps, statistics, y, rows)) {
  with_length(input.cols, [&](auto cols) XGRAD_INLINE_LAMBDA {
    T* to = y + begin * cols;
    for (std::size_t r = begin; r < end; ++r, to += cols) {
      const T* row =
          sum_row(input.x + r * cols, input.residual ? input.residual + r * cols : nullptr, to, cols);
      const auto [mean, rstd, rest] = row_statistics(row, cols, statistics.mean != nullptr, eps);
      if (statistics.mean) statistics.mean[r] = mean;
      statistics.rstd[r] = rstd;
      if (rest == T(0)) {
        normalize_row(row, input.weight, input.bias, to, mean, rstd, cols);
      } else {
        subtract(row, mean, to, cols);
        normalize_row<T>(to, input.weight, input.bias, to, rest, rstd, cols);
      }
    }
  });
}

/// Rows that one thread works on at once.
std::size_t rows_at_once(std::size_t cols) {
  constexpr std::size_t elements = std::size_t{1} << 13;
  return elements / (cols + 1) + 1;
}

}  // namespace

template <typename T>
void layer_norm_rows(const LayerNormInput<T>& input, std::type_identity_t<T> eps,
                     const LayerNormStatistics<T>& statistics, T* y) {
  normalize_rows(input, eps, statistics, y, input.rows);
}

std::size_t layer_norm_grad_scratch(std::size_t rows, std::size_t cols) {
  return rows / rows_at_once(cols) * 2 * cols;
}

template <typename T>
void layer_norm_grad_rows(const T* dy, const LayerNormInput<T>& input,
                          const LayerNormStatistics<const T>& statistics, const LayerNormGrads<T>& grads,
                          T* scratch) {
  const std::size_t rows = input.rows, cols = input.cols;
  const std::size_t grain = rows_at_once(cols), pieces = rows / grain;
  if (pieces < 2) return normalize_grad_rows(dy, input, statistics, grads);
  parallel_chunks(rows, grain, [&](std::size_t begin, std::size_t end, std::size_t) {
    const std::size_t at = begin * cols;
    T* const sums = scratch + begin / grain * cols;  // dweight's in all pieces, then dbias's
    const LayerNormInput<T> part{end - begin,  cols,
                                 input.x + at, input.residual ? input.residual + at : nullptr,
                                 input.weight, input.bias};
    normalize_grad_rows<T>(dy + at, part,
                           {statistics.mean ? statistics.mean + begin : nullptr, statistics.rstd + begin},
                           {grads.dx ? grads.dx + at : nullptr, grads.dweight ? sums : nullptr,
                            grads.dbias ? sums + pieces * cols : nullptr});
  });
  if (grads.dweight) sum_middle(scratch, 1, pieces, cols, grads.dweight);
  if (grads.dbias) sum_middle(scratch + pieces * cols, 1, pieces, cols, grads.dbias);
}

#define XGRAD_INSTANTIATE(T)                                                                     \
  template void layer_norm_rows(const LayerNormInput<T>&, T, const LayerNormStatistics<T>&, T*); \
  template void layer_norm_grad_rows(const T*, const LayerNormInput<T>&,                         \
                                     const LayerNormStatistics<const T>&, const LayerNormGrads<T>&, T*);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::kernels
