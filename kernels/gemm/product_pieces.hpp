#pragma once

#include <algorithm>

#include "../../base/detail/system/pieces.hpp"
#include "../matrix.hpp"
#include "../pointwise/binary.hpp"
#include "../thread_memory.hpp"

namespace xgrad::kernels {

/// Calls product(a, b, c) for a piece of the product on each thread, of at least `least_product`
/// multiplications: whole rows, or whole columns, which begin at multiples of what is given. Rows if there
/// are enough of them and that shares the work out about as evenly, for rows stay in the caches of their
/// cores. The bits do not depend on the pieces.
template <typename T, typename Product>
void in_pieces(std::size_t least_product, std::size_t row_multiple, std::size_t col_multiple,
               const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<T>& c,
               const Product& product) {
  constexpr std::size_t least_rows = 64;  // of a piece, each of which packs b
  const std::size_t m = c.rows, n = c.cols, k = a.cols;
  const std::size_t threads = std::min(available_threads(), m * n * k / least_product);
  if (threads < 2) return product(a, b, c);
  const std::size_t row_units = ceil_div(m, row_multiple), col_units = ceil_div(n, col_multiple);
  const auto longest = [&](std::size_t units) { return threads * ceil_div(units, threads); };
  const std::size_t rows_cost = longest(row_units) * col_units, cols_cost = longest(col_units) * row_units;
  const bool prefers_rows = m >= threads * least_rows;
  const bool by_rows = prefers_rows ? 8 * rows_cost <= 9 * cols_cost : 9 * rows_cost < 8 * cols_cost;
  const std::size_t units = by_rows ? row_units : col_units, length = by_rows ? m : n;
  const std::size_t unit = by_rows ? row_multiple : col_multiple, pieces = std::min(threads, units);
  parallel_for(pieces, [&](std::size_t piece, std::size_t) {
    const std::size_t begin = piece * units / pieces * unit;
    const std::size_t size = std::min(length, (piece + 1) * units / pieces * unit) - begin;
    if (by_rows) {
      product(a.some_rows(begin, size), b, c.some_rows(begin, size));
    } else {
      product(a, b.some_cols(begin, size), c.some_cols(begin, size));
    }
  });
}

/// True where a product sums over the rows of both operands, as the gradient of a weight does, which have
/// more numbers than it has itself: narrow ones, as most of attention's heads have, are one thread's.
template <typename T>
bool sums_over_rows(const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<T>& c) {
  constexpr std::size_t least_rows = 256, least_side = 64, most_numbers = std::size_t{1} << 19;
  const std::size_t m = c.rows, n = c.cols, k = a.cols;
  return a.transposed && !b.transposed && k >= least_rows && std::min(m, n) >= least_side &&
         m * n <= most_numbers && 2 * m * n <= k * (m + n);
}

/// c = beta c + the product of the first half of the rows of b and of a, which is transposed, + that of the
/// second. So two threads multiply the rows that they have written themselves: rows that both cores have read
/// are written many times more slowly the next time. More threads have some columns of a half each, which
/// begin at multiples of col_multiple. Calls product(a, b, beta, c).
template <typename T, typename Product>
void in_halves_of_rows(std::size_t threads, std::size_t least_product, std::size_t col_multiple,
                       const Matrix<const T>& a, const Matrix<const T>& b, T beta, const Matrix<T>& c,
                       const Product& product) {
  const std::size_t m = c.rows, n = c.cols, k = a.cols;
  struct SecondHalf;
  const Matrix<T> second(thread_memory<T, SecondHalf>(m * n), m, n);
  const std::size_t units = ceil_div(n, col_multiple), wanted = threads % 2 == 0 ? threads / 2 : threads;
  const std::size_t pieces =
      std::clamp<std::size_t>(std::min(wanted, m * n * k / 2 / least_product), 1, units);
  const auto part = [&](std::size_t item, std::size_t) {
    const bool is_first = item < pieces;
    const std::size_t piece = item % pieces, first = piece * units / pieces * col_multiple;
    const std::size_t cols = std::min(n, (piece + 1) * units / pieces * col_multiple) - first;
    const auto [begin, end] = Part{is_first ? 0U : 1U, 2}(k);
    const Matrix<T>& sum = is_first ? c : second;
    product(a.some_cols(begin, end - begin), b.some_rows(begin, end - begin).some_cols(first, cols),
            is_first ? beta : T(0), sum.some_cols(first, cols));
  };
  parallel_for(2 * pieces, part, threads);
  parallel_pieces(m, n, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) accumulate(c.data + i * c.stride, second.data + i * n, n);
  });
}

}  // namespace xgrad::kernels
