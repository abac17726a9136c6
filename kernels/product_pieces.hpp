#pragma once

#include "matrix.hpp"
#include "pieces.hpp"

namespace xgrad::kernels {

/// Calls product(a, b, c) for a piece of the product on each thread, of at least that many multiplications:
/// whole rows or whole columns of tiles, whichever are shared out more evenly. The tiles, and so the bits,
/// are those of one thread.
template <typename T, typename Product>
void in_pieces(std::size_t least_product, std::size_t tile_rows, std::size_t tile_cols,
               const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<T>& c,
               const Product& product) {
  const std::size_t m = c.rows, n = c.cols, k = a.cols;
  const std::size_t row_tiles = ceil_div(m, tile_rows), col_tiles = ceil_div(n, tile_cols);
  const std::size_t threads = std::min(available_threads(), m * n * k / least_product);
  const auto longest = [&](std::size_t tiles) { return threads * ceil_div(tiles, threads); };
  if (threads < 2) return product(a, b, c);
  const bool by_rows = longest(row_tiles) * col_tiles <= longest(col_tiles) * row_tiles;
  const std::size_t tiles = by_rows ? row_tiles : col_tiles, tile = by_rows ? tile_rows : tile_cols;
  const std::size_t pieces = std::min(threads, tiles), length = by_rows ? m : n;
  parallel_for(pieces, [&](std::size_t piece, std::size_t) {
    const std::size_t begin = piece * tiles / pieces * tile;
    const std::size_t size = std::min(length, (piece + 1) * tiles / pieces * tile) - begin;
    if (by_rows) {
      product(a.some_rows(begin, size), b, c.some_rows(begin, size));
    } else {
      product(a, b.some_cols(begin, size), c.some_cols(begin, size));
    }
  });
}

}  // namespace xgrad::kernels
