#include "few_rows.hpp"

#include <algorithm>
#include <cstring>

#include "../../base/detail/bytes/bit_cast.hpp"
#include "../../base/detail/system/pieces.hpp"
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

/// The sum of the lanes, halves first.
template <std::size_t lanes, typename T>
XGRAD_INLINE T sum_of_lanes(const typename Lanes<T, lanes>::type& numbers) {
  if constexpr (lanes == 2) {
    return numbers[0] + numbers[1];
  } else {
    typename Lanes<T, lanes / 2>::type low, high;
    std::memcpy(&low, &numbers, sizeof low);
    std::memcpy(&high, reinterpret_cast<const char*>(&numbers) + sizeof low, sizeof high);
    return sum_of_lanes<lanes / 2, T>(low + high);
  }
}

/// Some lines of a matrix: line i begins at data + i * stride.
template <typename T>
struct Lines {
  const T* data;
  std::size_t stride;

  XGRAD_INLINE const T* operator[](std::size_t i) const { return data + i * stride; }
  XGRAD_INLINE Lines from(std::size_t i) const { return {data + i * stride, stride}; }
};

/// How many lines of b are multiplied at once.
constexpr std::size_t few_lines = 4;

/// sums[r * width + i] += the products of a register of line r of a and of line i of b, from number p on.
template <std::size_t height, std::size_t width, typename T, typename W>
XGRAD_INLINE void add_products(const Lines<T>& a, const Lines<W>& b, std::size_t p, Register<T>* sums) {
  Register<T> rows[height];
#pragma GCC unroll 8
  for (std::size_t r = 0; r < height; ++r) load_numbers(a[r] + p, rows[r]);
#pragma GCC unroll 4
  for (std::size_t i = 0; i < width; ++i) {
    Register<T> line;
    load_numbers(b[i] + p, line);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < height; ++r) sums[r * width + i] += rows[r] * line;
  }
}

/// c[r * ldc + i] = alpha times the product of line r of a and line i of b + beta c. The products of a pair
/// of lines are added in the same order for any height and width. The lines behind those of b are fetched: as
/// each is short, the processor alone would notice too late where the next ones begin.
template <std::size_t height, std::size_t width, bool is_first, typename T, typename W>
XGRAD_INLINE void multiply_lines(T alpha, const Lines<T>& a, const Lines<W>& b, std::size_t k, T beta, T* c,
                                 std::size_t ldc) {
  constexpr std::size_t lanes = register_lanes<T>;
  Register<T> sums[height * width]{};
  const Lines<W> next = b.from(width);
  std::size_t p = 0;
  for (; p + lanes <= k; p += lanes) {
    if constexpr (is_first) {
#pragma GCC unroll 4
      for (std::size_t i = 0; i < width; ++i) __builtin_prefetch(next[i] + p, 0, 2);
    }
    add_products<height, width>(a, b, p, sums);
  }
  if (p < k) {  // with zeros behind
    T rest_of_a[height * lanes] = {};
    W rest_of_b[width * lanes] = {};
    for (std::size_t r = 0; r < height; ++r)
      std::memcpy(rest_of_a + r * lanes, a[r] + p, (k - p) * sizeof(T));
    for (std::size_t i = 0; i < width; ++i) std::memcpy(rest_of_b + i * lanes, b[i] + p, (k - p) * sizeof(W));
    add_products<height, width>(Lines<T>{rest_of_a, lanes}, Lines<W>{rest_of_b, lanes}, 0, sums);
  }
#pragma GCC unroll 8
  for (std::size_t r = 0; r < height; ++r) {
#pragma GCC unroll 4
    for (std::size_t i = 0; i < width; ++i) {
      const T sum = alpha * sum_of_lanes<lanes, T>(sums[r * width + i]);
      T& y = c[r * ldc + i];
      y = beta == T(0) ? sum : sum + beta * y;
    }
  }
}

/// Of all rows of a and few_lines of b, which stay in the first cache level for the rows behind the first.
template <typename T, typename W>
XGRAD_INLINE void multiply_rows(T alpha, const Matrix<const T>& a, const Lines<W>& b, T beta,
                                const Matrix<T>& c) {
  const Lines<T> rows{a.data, a.stride};
  const auto multiply = [&](auto height, auto is_first, std::size_t r) XGRAD_INLINE_LAMBDA {
    multiply_lines<height, few_lines, is_first>(alpha, rows.from(r), b, a.cols, beta, c.data + r * c.stride,
                                                c.stride);
  };
  using std::integral_constant, std::bool_constant;
  static_assert(most_few_rows == 8);
  std::size_t r = a.rows % 4;
  if (r == 1) multiply(integral_constant<std::size_t, 1>(), bool_constant<true>(), 0);
  if (r == 2) multiply(integral_constant<std::size_t, 2>(), bool_constant<true>(), 0);
  if (r == 3) multiply(integral_constant<std::size_t, 3>(), bool_constant<true>(), 0);
  if (r == 0) {
    multiply(integral_constant<std::size_t, 4>(), bool_constant<true>(), 0);
    r = 4;
  }
  if (r < a.rows) multiply(integral_constant<std::size_t, 4>(), bool_constant<false>(), r);
}

/// Of more than 4 rows of a, all of which are multiplied by two lines at once: these are read once then, and
/// the next ones come all the while.
template <typename T>
XGRAD_INLINE std::size_t multiply_pairs(T alpha, const Matrix<const T>& a, const Lines<T>& b,
                                        std::size_t begin, std::size_t end, T beta, const Matrix<T>& c) {
  std::size_t i = begin;
  const auto multiply = [&](auto height) XGRAD_INLINE_LAMBDA {
    for (; i + 2 <= end; i += 2) {
      multiply_lines<height, 2, true>(alpha, Lines<T>{a.data, a.stride}, b.from(i), a.cols, beta, c.data + i,
                                      c.stride);
    }
  };
  static_assert(most_few_rows == 8);
  if (a.rows == 5) multiply(std::integral_constant<std::size_t, 5>());
  if (a.rows == 6) multiply(std::integral_constant<std::size_t, 6>());
  if (a.rows == 7) multiply(std::integral_constant<std::size_t, 7>());
  if (a.rows == 8) multiply(std::integral_constant<std::size_t, 8>());
  return i;
}

template <typename T, typename W>
XGRAD_INLINE void multiply_by_lines(T alpha, const Matrix<const T>& a, const Lines<W>& b, std::size_t begin,
                                    std::size_t end, T beta, const Matrix<T>& c) {
  std::size_t i = begin;
  if constexpr (std::is_same_v<T, W>) i = multiply_pairs(alpha, a, b, begin, end, beta, c);
  for (; i + few_lines <= end; i += few_lines)
    multiply_rows(alpha, a, b.from(i), beta, c.some_cols(i, few_lines));
  for (; i < end; ++i) {
    for (std::size_t r = 0; r < a.rows; ++r) {
      multiply_lines<1, 1, false>(alpha, Lines<T>{a.data, a.stride}.from(r), b.from(i), a.cols, beta,
                                  c.data + r * c.stride + i, c.stride);
    }
  }
}

XGRAD_KERNEL(void, multiply_transposed,
             (T alpha, const Matrix<const T>& a, const Matrix<const T>& b, std::size_t begin, std::size_t end,
              T beta, const Matrix<T>& c),
             (alpha, a, b, begin, end, beta, c)) {
  multiply_by_lines(alpha, a, Lines<T>{b.data, b.stride}, begin, end, beta, c);
}

XGRAD_VECTORIZED(void, multiply_bfloat16,
                 (const Matrix<const float>& x, const std::uint16_t* weight, std::size_t begin,
                  std::size_t end, const Matrix<float>& c),
                 (x, weight, begin, end, c)) {
  multiply_by_lines(1.0F, x, Lines<std::uint16_t>{weight, x.cols}, begin, end, 0.0F, c);
}

/// Sums of few rows and some columns, beside each other: rows of C may be as far apart as pages, all of which
/// the first cache level keeps in the same few places.
template <typename T>
struct FewSums {
  static constexpr std::size_t cols = 16 * register_lanes<T>;

  alignas(64) T numbers[most_few_rows * cols] = {};

  XGRAD_INLINE T* row(std::size_t r) { return numbers + r * cols; }
};

/// sums += some columns, `count` of a register, of a b, for `height` rows of a and `depth` of b. Those behind
/// them are fetched.
template <std::size_t height, std::size_t depth, typename T>
XGRAD_INLINE void add_columns(const T* a, std::size_t a_stride, const Lines<T>& b, std::size_t count,
                              T* sums) {
  Register<T> lines[depth]{};
#pragma GCC unroll 4
  for (std::size_t p = 0; p < depth; ++p) {
    __builtin_prefetch(b[depth + p], 0, 2);
    if (count == register_lanes<T>) {
      load_numbers(b[p], lines[p]);
    } else {
      std::memcpy(&lines[p], b[p], count * sizeof(T));
    }
  }
#pragma GCC unroll 4
  for (std::size_t r = 0; r < height; ++r) {
    Register<T> sum;
    load_numbers(sums + r * FewSums<T>::cols, sum);
#pragma GCC unroll 4
    for (std::size_t p = 0; p < depth; ++p) sum += a[r * a_stride + p] * lines[p];
    std::memcpy(sums + r * FewSums<T>::cols, &sum, sizeof sum);
  }
}

/// Of all rows of a.
template <std::size_t depth, typename T>
XGRAD_INLINE void add_lines(const Matrix<const T>& a, std::size_t p, const Lines<T>& b, std::size_t cols,
                            FewSums<T>& sums) {
  constexpr std::size_t width = register_lanes<T>;
  const auto add = [&](auto height, std::size_t r) XGRAD_INLINE_LAMBDA {
    const T* const factors = a.data + r * a.stride + p;
    std::size_t i = 0;
    for (; i + width <= cols; i += width)
      add_columns<height, depth>(factors, a.stride, Lines<T>{b.data + i, b.stride}, width, sums.row(r) + i);
    if (i < cols) {
      add_columns<height, depth>(factors, a.stride, Lines<T>{b.data + i, b.stride}, cols - i,
                                 sums.row(r) + i);
    }
  };
  std::size_t r = 0;
  for (; r + 4 <= a.rows; r += 4) add(std::integral_constant<std::size_t, 4>(), r);
  for (; r < a.rows; ++r) add(std::integral_constant<std::size_t, 1>(), r);
}

XGRAD_KERNEL(void, multiply_in_order,
             (T alpha, const Matrix<const T>& a, const Matrix<const T>& b, std::size_t begin, std::size_t end,
              T beta, const Matrix<T>& c),
             (alpha, a, b, begin, end, beta, c)) {
  for (std::size_t first = begin; first < end; first += FewSums<T>::cols) {
    const std::size_t cols = std::min(FewSums<T>::cols, end - first);
    FewSums<T> sums;
    std::size_t p = 0;
    for (; p + 4 <= a.cols; p += 4)
      add_lines<4>(a, p, Lines<T>{b.data + p * b.stride + first, b.stride}, cols, sums);
    for (; p < a.cols; ++p) add_lines<1>(a, p, Lines<T>{b.data + p * b.stride + first, b.stride}, cols, sums);
    for (std::size_t r = 0; r < a.rows; ++r) {
      const T* const sum = sums.row(r);
      T* const y = c.data + r * c.stride + first;
      XGRAD_INDEPENDENT
      for (std::size_t i = 0; i < cols; ++i)
        y[i] = beta == T(0) ? alpha * sum[i] : alpha * sum[i] + beta * y[i];
    }
  }
}

/// Calls f(begin, end) for columns of b (k, n), which begin at multiples of `unit`: more pieces than threads,
/// as another process may take the time of one.
template <typename F>
void in_columns(std::size_t n, std::size_t k, std::size_t unit, const F& f) {
  constexpr std::size_t piece_numbers = std::size_t{1} << 16;
  const std::size_t units = ceil_div(n, unit);
  const std::size_t pieces =
      available_threads() < 2 ? 1 : std::clamp<std::size_t>(n * k / piece_numbers, 1, units);
  parallel_for(pieces, [&](std::size_t piece, std::size_t) {
    f(piece * units / pieces * unit, std::min(n, (piece + 1) * units / pieces * unit));
  });
}

}  // namespace

/// Bound by the bandwidth of memory.
template <typename T>
void few_rows_gemm(T alpha, const Matrix<const T>& a, const Matrix<const T>& b, T beta, const Matrix<T>& c) {
  if (b.transposed) {
    in_columns(c.cols, a.cols, few_lines, [&](std::size_t begin, std::size_t end) {
      multiply_transposed<T>(alpha, a, b, begin, end, beta, c);
    });
  } else {
    in_columns(c.cols, a.cols, FewSums<T>::cols / 2, [&](std::size_t begin, std::size_t end) {
      multiply_in_order<T>(alpha, a, b, begin, end, beta, c);
    });
  }
}

/// Bound by the bandwidth of memory.
void few_rows_bfloat16(const Matrix<const float>& x, const std::uint16_t* weight, const Matrix<float>& c) {
  in_columns(c.cols, x.cols, few_lines,
             [&](std::size_t begin, std::size_t end) { multiply_bfloat16(x, weight, begin, end, c); });
}

#define XGRAD_INSTANTIATE(T) \
  template void few_rows_gemm(T, const Matrix<const T>&, const Matrix<const T>&, T, const Matrix<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::kernels
