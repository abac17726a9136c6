#pragma once

#include "matrix.hpp"
#include "pieces.hpp"

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

}  // namespace xgrad::kernels
