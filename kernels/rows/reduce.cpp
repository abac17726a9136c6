#include "reduce.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "../../base/detail/system/pieces.hpp"
#include "../lanes.hpp"

namespace xgrad::kernels {

namespace {

/// The larger or the smaller of the two; nan if either is.
template <bool largest, typename T>
XGRAD_INLINE T extreme_of(T m, T v) {
  const T y = (largest ? v > m : v < m) ? v : m;
  return v != v ? v : y;
}

template <bool largest, typename T>
XGRAD_INLINE T extreme_of_row(const T* x, std::size_t n) {
  return reduce_lanes(
      1, n, *x, [x](std::size_t i) XGRAD_INLINE_LAMBDA { return x[i]; },
      [](auto m, auto v) XGRAD_INLINE_LAMBDA { return extreme_of<largest>(m, v); });
}

/// y[r] = f(the first element of row r, their number) for x, n elements in rows of `cols`, the last of which
/// may be shorter. Bound by bandwidth; by latency in rows under 32.
#define XGRAD_ROWS(name, Y, f)                                                                      \
  XGRAD_PARALLEL_KERNEL(name, rows, cols,                                                           \
                        (const T* x, std::size_t n, std::size_t cols, Y* y, std::size_t rows),      \
                        (x, n, cols, y, rows)) {                                                    \
    for (std::size_t r = begin; r < end; ++r) y[r] = f(x + r * cols, std::min(cols, n - r * cols)); \
  }

template <typename T>
XGRAD_INLINE T sum_of_row(const T* x, std::size_t n) {
  return sum_lanes<T>(n, [x](std::size_t i) XGRAD_INLINE_LAMBDA { return x[i]; });
}

template <typename T>
XGRAD_INLINE double squares_of_row(const T* x, std::size_t n) {
  return sum_lanes<double>(
      n, [x](std::size_t i) XGRAD_INLINE_LAMBDA { return static_cast<double>(x[i]) * x[i]; });
}

template <typename T>
XGRAD_INLINE double norm_of_row(const T* x, std::size_t n) {
  return std::sqrt(squares_of_row(x, n));
}

template <typename T>
XGRAD_INLINE double product_of_row(const T* x, std::size_t n) {
  return reduce_lanes(
      0, n, 1.0, [x](std::size_t i) XGRAD_INLINE_LAMBDA { return static_cast<double>(x[i]); },
      [](auto a, auto b) XGRAD_INLINE_LAMBDA { return a * b; });
}

XGRAD_ROWS(row_sums, T, sum_of_row)
XGRAD_ROWS(row_squares, double, squares_of_row)
XGRAD_ROWS(row_norms, T, norm_of_row)
XGRAD_ROWS(row_products, T, product_of_row)
XGRAD_ROWS(block_products, double, product_of_row)
XGRAD_ROWS(row_maxima, T, extreme_of_row<true>)
XGRAD_ROWS(row_minima, T, extreme_of_row<false>)

/// y[r] = the products' sum of row r of a and of b, which are as x in XGRAD_ROWS. Bound by bandwidth.
XGRAD_PARALLEL_KERNEL(row_dots, rows, cols,
                      (const T* a, const T* b, std::size_t n, std::size_t cols, double* y, std::size_t rows),
                      (a, b, n, cols, y, rows)) {
  for (std::size_t r = begin; r < end; ++r) {
    const T *u = a + r * cols, *v = b + r * cols;
    y[r] = sum_lanes<double>(std::min(cols, n - r * cols), [=](std::size_t i) XGRAD_INLINE_LAMBDA {
      return static_cast<double>(u[i]) * v[i];
    });
  }
}

/// Calls take(result) in order with those of the rows kernel for blocks of x.
template <std::size_t block, typename Y, typename T, typename Rows, typename Take>
void for_each_block(Rows rows, const T* x, std::size_t n, Take take) {
  constexpr std::size_t most = 1024;
  Y results[most];
  for (std::size_t size; n > 0; x += size, n -= size) {
    size = std::min(n, most * block);
    const std::size_t blocks = ceil_div(size, block);
    rows(x, size, block, results, blocks);
    for (std::size_t b = 0; b < blocks; ++b) take(results[b]);
  }
}

constexpr std::size_t sum_block = 1024;  // as in sum_lanes
constexpr std::size_t extreme_block = 16384;

/// The sum of what the rows kernel computes, in double, of x.
template <typename T, typename Rows>
double total_of_rows(Rows rows, const T* x, std::size_t n) {
  double total = 0;
  if (is_one_piece(n, 1)) {
    rows(x, n, n, &total, 1);
  } else {
    for_each_block<sum_block, double>(rows, x, n, [&total](double sum) { total += sum; });
  }
  return total;
}

constexpr std::size_t width = 1024, height = 32;  // of the blocks in which columns are summed

/// y[c] = sum of column c of x, up to 32 rows of n numbers, in T, four rows at once.
template <typename T>
XGRAD_INLINE void add_block(const T* x, std::size_t stride, std::size_t rows, std::size_t n, T* y) {
  std::fill_n(y, n, T(0));
  std::size_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const T* row = x + r * stride;
    for (std::size_t c = 0; c < n; ++c) {
      y[c] += (row[c] + row[c + stride]) + (row[c + 2 * stride] + row[c + 3 * stride]);
    }
  }
  for (; r < rows; ++r) {
    for (std::size_t c = 0; c < n; ++c) y[c] += x[r * stride + c];
  }
}

/// y[c] = sum of column c of x (rows, cols). Blocks of 32 rows are added in T, and the blocks in double, for
/// 1024 columns at a time, which stay in the first-level cache. Bound by bandwidth.
XGRAD_PARALLEL_KERNEL(strip_sums, strips, rows* std::min(width, cols),
                      (const T* x, std::size_t rows, std::size_t cols, T* y, std::size_t strips),
                      (x, rows, cols, y, strips)) {
  for (; begin < end; ++begin) {
    const std::size_t left = begin * width, n = std::min(width, cols - left);
    double total[width];
    std::fill_n(total, n, 0.0);
    for (std::size_t top = 0; top < rows; top += height) {
      T block[width];
      add_block(x + top * cols + left, cols, std::min(height, rows - top), n, block);
      for (std::size_t c = 0; c < n; ++c) total[c] += block[c];
    }
    for (std::size_t c = 0; c < n; ++c) y[left + c] = static_cast<T>(total[c]);
  }
}

/// y (blocks, n) = the sums of the blocks of one strip. Bound by bandwidth.
XGRAD_PARALLEL_KERNEL(block_sums, blocks, height* n,
                      (const T* x, std::size_t stride, std::size_t rows, std::size_t n, T* y,
                       std::size_t blocks),
                      (x, stride, rows, n, y, blocks)) {
  for (; begin < end; ++begin) {
    const std::size_t top = begin * height;
    add_block(x + top * stride, stride, std::min(height, rows - top), n, y + begin * n);
  }
}

/// True if a matrix of `rows` rows is better divided into strips of its columns than into blocks of its rows.
constexpr bool is_wide(std::size_t rows, std::size_t strips) {
  return strips >= 8 || strips * height >= rows;
}

/// Calls take(results, blocks) in order with what the kernel computes of blocks of 32 rows of x, a strip of n
/// columns: (blocks, n), with room for another n in front.
template <typename Y, typename T, typename Blocks, typename Take>
void for_each_row_block(Blocks kernel, const T* x, std::size_t stride, std::size_t rows, std::size_t n,
                        Take take) {
  constexpr std::size_t room = 8 * width;
  alignas(64) Y results[width + room];
  for (std::size_t size; rows > 0; x += size * stride, rows -= size) {
    size = std::min(rows, room / n * height);
    const std::size_t blocks = ceil_div(size, height);
    kernel(x, stride, size, n, results + n, blocks);
    take(results + n, blocks);
  }
}

/// The same as strip_sums, to the bit.
template <typename T>
void column_sums(const T* x, std::size_t rows, std::size_t cols, T* y) {
  const std::size_t strips = ceil_div(cols, width);
  if (is_undivided(rows, cols) || is_wide(rows, strips)) return strip_sums(x, rows, cols, y, strips);
  for (std::size_t left = 0; left < cols; left += width) {
    const std::size_t n = std::min(width, cols - left);
    double total[width] = {};
    for_each_row_block<T>(block_sums<T>, x + left, cols, rows, n, [&](const T* sums, std::size_t blocks) {
      for (; blocks > 0; --blocks, sums += n) {
        for (std::size_t c = 0; c < n; ++c) total[c] += sums[c];
      }
    });
    for (std::size_t c = 0; c < n; ++c) y[left + c] = static_cast<T>(total[c]);
  }
}

/// y[c] = the largest or smallest of column c of x, `rows` rows of n numbers.
template <bool largest, typename T>
XGRAD_INLINE void extreme_of_columns(const T* x, std::size_t stride, std::size_t rows, std::size_t n, T* y) {
  std::copy_n(x, n, y);
  for (std::size_t r = 1; r < rows; ++r) {
    const T* row = x + r * stride;
    XGRAD_INDEPENDENT
    for (std::size_t c = 0; c < n; ++c) y[c] = extreme_of<largest>(y[c], row[c]);
  }
}

/// As strip_sums and block_sums. Bound by bandwidth.
#define XGRAD_EXTREME_COLUMNS(name, largest)                                                                 \
  XGRAD_PARALLEL_KERNEL(strip_##name, strips, rows* std::min(width, cols),                                   \
                        (const T* x, std::size_t rows, std::size_t cols, T* y, std::size_t strips),          \
                        (x, rows, cols, y, strips)) {                                                        \
    const std::size_t left = begin * width;                                                                  \
    extreme_of_columns<largest>(x + left, cols, rows, std::min(cols, end * width) - left, y + left);         \
  }                                                                                                          \
  XGRAD_PARALLEL_KERNEL(                                                                                     \
      block_##name, blocks, height* n,                                                                       \
      (const T* x, std::size_t stride, std::size_t rows, std::size_t n, T* y, std::size_t blocks),           \
      (x, stride, rows, n, y, blocks)) {                                                                     \
    for (; begin < end; ++begin) {                                                                           \
      const std::size_t top = begin * height;                                                                \
      extreme_of_columns<largest>(x + top * stride, stride, std::min(height, rows - top), n, y + begin * n); \
    }                                                                                                        \
  }

XGRAD_EXTREME_COLUMNS(maxima, true)
XGRAD_EXTREME_COLUMNS(minima, false)

/// What columns are folded to in double: join of the terms of their elements, and the result of it.
struct Product {
  static constexpr double none = 1;
  XGRAD_INLINE static double term(double x) { return x; }
  XGRAD_INLINE static double join(double a, double b) { return a * b; }
  XGRAD_INLINE static double result(double total) { return total; }
};

struct Norm {
  static constexpr double none = 0;
  XGRAD_INLINE static double term(double x) { return x * x; }
  XGRAD_INLINE static double join(double a, double b) { return a + b; }
  XGRAD_INLINE static double result(double total) { return std::sqrt(total); }
};

/// total[c] = the terms of column c of x joined, `rows` rows of n numbers, four rows at once.
template <typename Fold, typename T>
XGRAD_INLINE void fold_columns(const T* x, std::size_t stride, std::size_t rows, std::size_t n,
                               double* total) {
  std::fill_n(total, n, Fold::none);
  const auto term = [](const T* at) XGRAD_INLINE_LAMBDA { return Fold::term(static_cast<double>(*at)); };
  std::size_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const T* row = x + r * stride;
    XGRAD_INDEPENDENT
    for (std::size_t c = 0; c < n; ++c) {
      const double two = Fold::join(term(row + c), term(row + c + stride));
      const double more = Fold::join(term(row + c + 2 * stride), term(row + c + 3 * stride));
      total[c] = Fold::join(total[c], Fold::join(two, more));
    }
  }
  for (; r < rows; ++r) {
    const T* row = x + r * stride;
    XGRAD_INDEPENDENT
    for (std::size_t c = 0; c < n; ++c) total[c] = Fold::join(total[c], term(row + c));
  }
}

/// As strip_sums and block_sums, but for Fold; those of blocks without its result.
#define XGRAD_FOLDED_COLUMNS(name, Fold)                                                                \
  XGRAD_PARALLEL_KERNEL(strip_##name, strips, rows* std::min(width, cols),                              \
                        (const T* x, std::size_t rows, std::size_t cols, T* y, std::size_t strips),     \
                        (x, rows, cols, y, strips)) {                                                   \
    for (; begin < end; ++begin) {                                                                      \
      const std::size_t left = begin * width, n = std::min(width, cols - left);                         \
      double total[width];                                                                              \
      fold_columns<Fold>(x + left, cols, rows, n, total);                                               \
      for (std::size_t c = 0; c < n; ++c) y[left + c] = static_cast<T>(Fold::result(total[c]));         \
    }                                                                                                   \
  }                                                                                                     \
  XGRAD_PARALLEL_KERNEL(                                                                                \
      block_##name, blocks, height* n,                                                                  \
      (const T* x, std::size_t stride, std::size_t rows, std::size_t n, double* y, std::size_t blocks), \
      (x, stride, rows, n, y, blocks)) {                                                                \
    for (; begin < end; ++begin) {                                                                      \
      const std::size_t top = begin * height;                                                           \
      fold_columns<Fold>(x + top * stride, stride, std::min(height, rows - top), n, y + begin * n);     \
    }                                                                                                   \
  }

XGRAD_FOLDED_COLUMNS(column_products, Product)
XGRAD_FOLDED_COLUMNS(column_norms, Norm)

/// y[c] = Fold of column c of x (rows, cols).
template <typename Fold, typename T, typename Strips, typename Blocks>
void folded_columns(const T* x, std::size_t rows, std::size_t cols, T* y, Strips strips_kernel,
                    Blocks blocks_kernel) {
  const std::size_t strips = ceil_div(cols, width);
  if (is_one_piece(rows, cols) || is_wide(rows, strips)) return strips_kernel(x, rows, cols, y, strips);
  for (std::size_t left = 0; left < cols; left += width) {
    const std::size_t n = std::min(width, cols - left);
    double total[width];
    std::fill_n(total, n, Fold::none);
    for_each_row_block<double>(blocks_kernel, x + left, cols, rows, n,
                               [&](const double* parts, std::size_t blocks) {
                                 for (; blocks > 0; --blocks, parts += n) {
                                   for (std::size_t c = 0; c < n; ++c)
                                     total[c] = Fold::join(total[c], parts[c]);
                                 }
                               });
    for (std::size_t c = 0; c < n; ++c) y[left + c] = static_cast<T>(Fold::result(total[c]));
  }
}

/// behind (rows, n) = for each element of x the product of those behind it in its column; total[c] = that of
/// all of column c.
template <typename T>
XGRAD_INLINE void products_behind(const T* x, std::size_t stride, std::size_t rows, std::size_t n,
                                  double* behind, double* total) {
  std::fill_n(total, n, 1.0);
  for (std::size_t r = rows; r-- > 0;) {
    const T* row = x + r * stride;
    XGRAD_INDEPENDENT
    for (std::size_t c = 0; c < n; ++c) {
      behind[r * n + c] = total[c];
      total[c] *= row[c];
    }
  }
}

/// dx = behind times the product of front[c] and those in front in the column; front goes on to the end.
template <typename T>
XGRAD_INLINE void times_those_in_front(const double* behind, const T* x, std::size_t stride, std::size_t rows,
                                       std::size_t n, double* front, T* dx) {
  for (std::size_t r = 0; r < rows; ++r) {
    const T* row = x + r * stride;
    T* to = dx + r * stride;
    XGRAD_INDEPENDENT
    for (std::size_t c = 0; c < n; ++c) {
      to[c] = static_cast<T>(behind[r * n + c] * front[c]);
      front[c] *= row[c];
    }
  }
}

/// dx of blocks of 32 rows of x, a strip of n columns, from dy (blocks, n), the gradients of the products of
/// the blocks' columns. Bound by bandwidth.
XGRAD_PARALLEL_KERNEL(block_product_grads, blocks, height* n,
                      (const double* dy, const T* x, std::size_t stride, std::size_t rows, std::size_t n,
                       T* dx, std::size_t blocks),
                      (dy, x, stride, rows, n, dx, blocks)) {
  constexpr std::size_t part = 256;  // of the columns: what is behind stays in the first-level cache
  double behind[height * part], total[part];
  for (; begin < end; ++begin) {
    const std::size_t top = begin * height, count = std::min(height, rows - top);
    for (std::size_t left = 0; left < n; left += part) {
      const std::size_t w = std::min(part, n - left), first = top * stride + left;
      products_behind(x + first, stride, count, w, behind, total);
      std::copy_n(dy + begin * n + left, w, total);
      times_those_in_front(behind, x + first, stride, count, w, total, dx + first);
    }
  }
}

/// The gradients of the products of blocks come first: they are factors of the whole product.
template <typename T>
void column_product_grads(const double* dy, const T* x, std::size_t stride, std::size_t rows, std::size_t n,
                          T* dx) {
  const std::size_t blocks = ceil_div(rows, height);
  if (blocks <= 1) return block_product_grads(dy, x, stride, rows, n, dx, blocks);
  std::vector<double> products(blocks * n), grads(blocks * n);
  block_column_products(x, stride, rows, n, products.data(), blocks);
  column_product_grads(dy, products.data(), n, blocks, n, grads.data());
  block_product_grads(grads.data(), x, stride, rows, n, dx, blocks);
}

/// dx of rows of x, which are as in XGRAD_ROWS, of 1024 at most, from dy[r]. A row is 32 columns, whose
/// products are factors beside the elements that are left. Bound by bandwidth; by latency in rows under 64.
XGRAD_PARALLEL_KERNEL(row_product_grads, rows, cols,
                      (const double* dy, const T* x, std::size_t n, std::size_t cols, T* dx,
                       std::size_t rows),
                      (dy, x, n, cols, dx, rows)) {
  constexpr std::size_t lanes = 32;
  double behind[sum_block], factors[2 * lanes], others[2 * lanes], grads[2 * lanes];
  for (std::size_t r = begin; r < end; ++r) {
    const T* const row = x + r * cols;
    T* const to = dx + r * cols;
    const std::size_t size = std::min(cols, n - r * cols), columns = size < 2 * lanes ? 0 : lanes;
    const std::size_t deep = size / lanes, inside = deep * columns, count = columns + size - inside;
    products_behind(row, lanes, deep, columns, behind, factors);
    std::copy_n(row + inside, size - inside, factors + columns);
    double front = dy[r], all;
    products_behind(factors, 1, count, 1, others, &all);
    times_those_in_front(others, factors, 1, count, 1, &front, grads);
    times_those_in_front(behind, row, lanes, deep, columns, grads, to);
    for (std::size_t i = inside; i < size; ++i) to[i] = static_cast<T>(grads[columns + i - inside]);
  }
}

/// As column_product_grads, for rows of n.
template <typename T>
void all_row_product_grads(const double* dy, const T* x, std::size_t rows, std::size_t n, T* dx) {
  if (n <= sum_block) return row_product_grads(dy, x, rows * n, n, dx, rows);
  const auto some = [=](std::size_t begin, std::size_t end) {
    const std::size_t blocks = ceil_div(n, sum_block);
    std::vector<double> products(blocks), grads(blocks);
    for (std::size_t r = begin; r < end; ++r) {
      block_products(x + r * n, n, sum_block, products.data(), blocks);
      all_row_product_grads(dy + r, products.data(), 1, blocks, grads.data());
      row_product_grads(grads.data(), x + r * n, n, sum_block, dx + r * n, blocks);
    }
  };
  if (is_one_piece(n, 1)) return parallel_pieces(rows, n, some);
  some(0, rows);
}

/// y (outer, inner) from x (outer, n, inner): by rows(x, size, n, y, outer) or by row(x) for long ones where
/// they are contiguous, else by columns(x, y) for each matrix.
template <typename T, typename Rows, typename Row, typename Columns>
void reduce_middle(const T* x, std::size_t outer, std::size_t n, std::size_t inner, T* y, Rows rows, Row row,
                   Columns columns) {
  if (inner == 1 && is_one_piece(n, 1)) return rows(x, outer * n, n, y, outer);
  const auto reduce = [=](std::size_t begin, std::size_t end) {
    for (std::size_t o = begin; o < end; ++o) {
      if (inner == 1) {
        y[o] = row(x + o * n);
      } else {
        columns(x + o * n * inner, y + o * inner);
      }
    }
  };
  if (is_one_piece(n, inner)) return parallel_pieces(outer, n * inner, reduce);
  reduce(0, outer);
}

template <bool largest, typename T, typename Rows, typename Strips, typename Blocks>
void extremes(const T* x, std::size_t outer, std::size_t n, std::size_t inner, T* y, Rows rows,
              Strips strips_kernel, Blocks blocks_kernel) {
  const auto row = [=](const T* from) {
    T m = *from;
    for_each_block<extreme_block, T>(rows, from, n, [&m](T v) { m = extreme_of<largest>(m, v); });
    return m;
  };
  const auto columns = [=](const T* from, T* to) {
    const std::size_t strips = ceil_div(inner, width);
    if (is_one_piece(n, inner) || is_wide(n, strips)) return strips_kernel(from, n, inner, to, strips);
    std::copy_n(from, inner, to);
    for (std::size_t left = 0; left < inner; left += width) {
      const std::size_t size = std::min(width, inner - left);
      for_each_row_block<T>(blocks_kernel, from + left, inner, n, size, [=](T* found, std::size_t blocks) {
        std::copy_n(to + left, size, found - size);  // so far
        strips_kernel(found - size, blocks + 1, size, to + left, 1);
      });
    }
  };
  reduce_middle(x, outer, n, inner, y, rows, row, columns);
}

}  // namespace

template <typename T>
void sum_middle(const T* x, std::size_t outer, std::size_t n, std::size_t inner, T* y) {
  const auto row = [=](const T* from) {
    double total = 0;
    for_each_block<sum_block, T>(row_sums<T>, from, n, [&total](T sum) { total += sum; });
    return static_cast<T>(total);
  };
  reduce_middle(x, outer, n, inner, y, row_sums<T>, row,
                [=](const T* from, T* to) { column_sums(from, n, inner, to); });
}

template <typename T>
void max_middle(const T* x, std::size_t outer, std::size_t n, std::size_t inner, T* y) {
  extremes<true>(x, outer, n, inner, y, row_maxima<T>, strip_maxima<T>, block_maxima<T>);
}

template <typename T>
void min_middle(const T* x, std::size_t outer, std::size_t n, std::size_t inner, T* y) {
  extremes<false>(x, outer, n, inner, y, row_minima<T>, strip_minima<T>, block_minima<T>);
}

template <typename T>
void product_middle(const T* x, std::size_t outer, std::size_t n, std::size_t inner, T* y) {
  const auto row = [=](const T* from) {
    double total = 1;
    for_each_block<sum_block, double>(block_products<T>, from, n, [&total](double f) { total *= f; });
    return static_cast<T>(total);
  };
  const auto columns = [=](const T* from, T* to) {
    folded_columns<Product>(from, n, inner, to, strip_column_products<T>, block_column_products<T>);
  };
  reduce_middle(x, outer, n, inner, y, row_products<T>, row, columns);
}

template <typename T>
void norm_middle(const T* x, std::size_t outer, std::size_t n, std::size_t inner, T* y) {
  const auto row = [=](const T* from) { return static_cast<T>(std::sqrt(squared_norm(from, n))); };
  const auto columns = [=](const T* from, T* to) {
    folded_columns<Norm>(from, n, inner, to, strip_column_norms<T>, block_column_norms<T>);
  };
  reduce_middle(x, outer, n, inner, y, row_norms<T>, row, columns);
}

template <typename T>
void product_middle_grad(const T* dy, const T* x, std::size_t outer, std::size_t n, std::size_t inner,
                         T* dx) {
  const std::vector<double> grads(dy, dy + outer * inner);
  if (inner == 1) return all_row_product_grads(grads.data(), x, outer, n, dx);
  const std::size_t strips = ceil_div(inner, width), cost = n * std::min(width, inner);
  const auto some = [=, from = grads.data()](std::size_t begin, std::size_t end) {
    for (; begin < end; ++begin) {
      const std::size_t o = begin / strips, left = begin % strips * width, first = o * n * inner + left;
      column_product_grads(from + o * inner + left, x + first, inner, n, std::min(width, inner - left),
                           dx + first);
    }
  };
  if (is_one_piece(cost, 1)) return parallel_pieces(outer * strips, cost, some);
  some(0, outer * strips);
}

template <typename T>
double squared_norm(const T* x, std::size_t n) {
  return total_of_rows(row_squares<T>, x, n);
}

template <typename T>
double dot(const T* a, const T* b, std::size_t n) {
  const auto rows = [=](const T* part, std::size_t size, std::size_t cols, double* y, std::size_t count) {
    row_dots(part, b + (part - a), size, cols, y, count);
  };
  return total_of_rows(rows, a, n);
}

#define XGRAD_INSTANTIATE(T)                                                                        \
  template void sum_middle(const T*, std::size_t, std::size_t, std::size_t, T*);                    \
  template void max_middle(const T*, std::size_t, std::size_t, std::size_t, T*);                    \
  template void min_middle(const T*, std::size_t, std::size_t, std::size_t, T*);                    \
  template void product_middle(const T*, std::size_t, std::size_t, std::size_t, T*);                \
  template void norm_middle(const T*, std::size_t, std::size_t, std::size_t, T*);                   \
  template void product_middle_grad(const T*, const T*, std::size_t, std::size_t, std::size_t, T*); \
  template double squared_norm(const T*, std::size_t);                                              \
  template double dot(const T*, const T*, std::size_t);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::kernels
