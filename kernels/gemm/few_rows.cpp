#include "few_rows.hpp"

#include <algorithm>
#include <cstring>

#include "../../base/detail/bit_cast.hpp"
#include "../../base/detail/pieces.hpp"
#include "../lanes.hpp"

namespace xgrad::kernels {
namespace {

/// Numbers in one of the largest registers.
template <typename T>
constexpr std::size_t register_lanes = 64 / sizeof(T);
template <typename T>
using Register = typename Lanes<T, register_lanes<T>>::type;

template <typename T>
XGRAD_INLINE void load_numbers(const T* from, Register<T>& to) {
  std::memcpy(&to, from, sizeof to);
}
XGRAD_INLINE void load_numbers(const std::uint16_t* from, Register<float>& to) {
  typename Lanes<std::uint16_t, register_lanes<float>>::type halves;
  std::memcpy(&halves, from, sizeof halves);
  const auto bits =
      __builtin_convertvector(halves, typename Lanes<std::uint32_t, register_lanes<float>>::type) << 16;
  std::memcpy(&to, &bits, sizeof to);
}

template <typename T>
XGRAD_INLINE T number_of(T x) {
  return x;
}
XGRAD_INLINE float number_of(std::uint16_t x) { return bit_cast<float>(std::uint32_t{x} << 16); }

/// Some lines of a matrix: line i begins at data + i * stride.
template <typename T>
struct Lines {
  const T* data;
  std::size_t stride;

  XGRAD_INLINE const T* operator[](std::size_t i) const { return data + i * stride; }
};

/// c[r * ldc + i] = alpha times the product of line r of a and line i of b + beta c. The products of a pair
/// of lines are added in the same order for any height and width.
template <std::size_t height, std::size_t width, typename T, typename W>
XGRAD_INLINE void multiply_lines(T alpha, const Lines<T>& a, const Lines<W>& b, std::size_t k, T beta, T* c,
                                 std::size_t ldc) {
  constexpr std::size_t lanes = register_lanes<T>;
  Register<T> sums[height][width]{};
  std::size_t p = 0;
  for (; p + lanes <= k; p += lanes) {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < width; ++i) {
      Register<T> line;
      load_numbers(b[i] + p, line);
#pragma GCC unroll 8
      for (std::size_t r = 0; r < height; ++r) {
        Register<T> row;
        load_numbers(a[r] + p, row);
        sums[r][i] += row * line;
      }
    }
  }
  for (std::size_t r = 0; r < height; ++r) {
    for (std::size_t i = 0; i < width; ++i) {
      T lane[lanes];
      std::memcpy(lane, &sums[r][i], sizeof lane);
      for (std::size_t half = lanes / 2; half > 0; half /= 2) {
        for (std::size_t l = 0; l < half; ++l) lane[l] += lane[l + half];
      }
      T sum = lane[0];
      for (std::size_t q = p; q < k; ++q) sum += a[r][q] * number_of(b[i][q]);
      T& y = c[r * ldc + i];
      y = beta == T(0) ? alpha * sum : alpha * sum + beta * y;
    }
  }
}

/// Of all rows of a and the lines of b from `begin` to `end`.
template <std::size_t height, typename T, typename W>
XGRAD_INLINE void multiply_by_lines(T alpha, const Lines<T>& a, const Lines<W>& b, std::size_t begin,
                                    std::size_t end, std::size_t k, T beta, const Matrix<T>& c) {
  constexpr std::size_t width = height > 4 ? 2 : 4;  // so many sums stay in registers
  std::size_t i = begin;
  for (; i + width <= end; i += width)
    multiply_lines<height, width>(alpha, a, Lines<W>{b[i], b.stride}, k, beta, c.data + i, c.stride);
  for (; i < end; ++i)
    multiply_lines<height, 1>(alpha, a, Lines<W>{b[i], b.stride}, k, beta, c.data + i, c.stride);
}

/// Calls f(height) for a height that is at most most_few_rows.
template <typename F>
XGRAD_INLINE void with_height(std::size_t height, const F& f) {
  switch (height) {
    case 1:
      return f(std::integral_constant<std::size_t, 1>());
    case 2:
      return f(std::integral_constant<std::size_t, 2>());
    case 3:
      return f(std::integral_constant<std::size_t, 3>());
    case 4:
      return f(std::integral_constant<std::size_t, 4>());
    case 5:
      return f(std::integral_constant<std::size_t, 5>());
    case 6:
      return f(std::integral_constant<std::size_t, 6>());
    case 7:
      return f(std::integral_constant<std::size_t, 7>());
    default:
      return f(std::integral_constant<std::size_t, 8>());
  }
}

XGRAD_KERNEL(void, multiply_transposed,
             (T alpha, const Matrix<const T>& a, const Matrix<const T>& b, std::size_t begin, std::size_t end,
              T beta, const Matrix<T>& c),
             (alpha, a, b, begin, end, beta, c)) {
  with_height(a.rows, [&](auto height) XGRAD_INLINE_LAMBDA {
    multiply_by_lines<height>(alpha, Lines<T>{a.data, a.stride}, Lines<T>{b.data, b.stride}, begin, end,
                              a.cols, beta, c);
  });
}

XGRAD_VECTORIZED(void, multiply_bfloat16,
                 (const Matrix<const float>& x, const std::uint16_t* weight, std::size_t begin,
                  std::size_t end, const Matrix<float>& c),
                 (x, weight, begin, end, c)) {
  with_height(x.rows, [&](auto height) XGRAD_INLINE_LAMBDA {
    multiply_by_lines<height>(1.0F, Lines<float>{x.data, x.stride}, Lines<std::uint16_t>{weight, x.cols},
                              begin, end, x.cols, 0.0F, c);
  });
}

/// c (height, cols) = alpha a b + beta c, where the rows of b are read one after the other, `depth` of them
/// for each time that c is read and written.
template <std::size_t height, std::size_t depth, typename T>
XGRAD_INLINE void add_lines(T alpha, const T* a, std::size_t a_stride, const T* b, std::size_t b_stride,
                            T beta, T* c, std::size_t ldc, std::size_t cols) {
  T factors[height][depth];
  for (std::size_t r = 0; r < height; ++r) {
    for (std::size_t p = 0; p < depth; ++p) factors[r][p] = alpha * a[r * a_stride + p];
  }
  for (std::size_t r = 0; r < height; ++r) {
    T* const row = c + r * ldc;
    XGRAD_INDEPENDENT
    for (std::size_t i = 0; i < cols; ++i) {
      T sum = beta == T(0) ? T(0) : beta * row[i];
#pragma GCC unroll 4
      for (std::size_t p = 0; p < depth; ++p) sum += factors[r][p] * b[p * b_stride + i];
      row[i] = sum;
    }
  }
}

/// Columns that stay in the first cache level, of c and of the rows of b that are added at once.
constexpr std::size_t few_rows_cols = 256, few_rows_depth = 4;

XGRAD_KERNEL(void, multiply_columns_in_order,
             (T alpha, const Matrix<const T>& a, const Matrix<const T>& b, std::size_t begin, std::size_t end,
              T beta, const Matrix<T>& c),
             (alpha, a, b, begin, end, beta, c)) {
  with_height(a.rows, [&](auto height) XGRAD_INLINE_LAMBDA {
    for (std::size_t first = begin; first < end; first += few_rows_cols) {
      const std::size_t cols = std::min(few_rows_cols, end - first);
      T factor = beta;
      std::size_t p = 0;
      for (; p + few_rows_depth <= a.cols; p += few_rows_depth, factor = T(1))
        add_lines<height, few_rows_depth>(alpha, a.data + p, a.stride, b.data + p * b.stride + first,
                                          b.stride, factor, c.data + first, c.stride, cols);
      for (; p < a.cols; ++p, factor = T(1))
        add_lines<height, 1>(alpha, a.data + p, a.stride, b.data + p * b.stride + first, b.stride, factor,
                             c.data + first, c.stride, cols);
    }
  });
}

}  // namespace

/// Bound by the bandwidth of memory.
template <typename T>
void few_rows_gemm(T alpha, const Matrix<const T>& a, const Matrix<const T>& b, T beta, const Matrix<T>& c) {
  parallel_pieces(c.cols, a.cols * a.rows, [&](std::size_t begin, std::size_t end) {
    if (b.transposed) {
      multiply_transposed<T>(alpha, a, b, begin, end, beta, c);
    } else {
      multiply_columns_in_order<T>(alpha, a, b, begin, end, beta, c);
    }
  });
}

/// Bound by the bandwidth of memory.
void few_rows_bfloat16(const Matrix<const float>& x, const std::uint16_t* weight, const Matrix<float>& c) {
  parallel_pieces(c.cols, x.cols * x.rows,
                  [&](std::size_t begin, std::size_t end) { multiply_bfloat16(x, weight, begin, end, c); });
}

#define XGRAD_INSTANTIATE(T) \
  template void few_rows_gemm(T, const Matrix<const T>&, const Matrix<const T>&, T, const Matrix<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::kernels
