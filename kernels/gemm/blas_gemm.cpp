#include <algorithm>
#include <memory>
#include <string_view>

#include "blas_call.hpp"
#include "gemm.hpp"
#include "large_gemm.hpp"
#include "pack.hpp"
#include "product_pieces.hpp"
#include "xtensor_blas.hpp"

extern "C" {
[[gnu::weak]] char* openblas_get_corename();
}

namespace xgrad::kernels {
namespace {

template <typename T>
void blas_gemm(T alpha, const Matrix<const T>& a, const Matrix<const T>& b, T beta, const Matrix<T>& c) {
  const BlasCall call;
  const auto index = [](std::size_t i) { return static_cast<xt::blas_index_t>(i); };
  const auto order = [](const Matrix<const T>& m) {
    return m.transposed ? cxxblas::Trans : cxxblas::NoTrans;
  };
  cxxblas::gemm<xt::blas_index_t>(cxxblas::RowMajor, order(a), order(b), index(c.rows), index(c.cols),
                                  index(a.cols), alpha, a.data, index(a.stride), b.data, index(b.stride),
                                  beta, c.data, index(c.stride));
}

bool has_small_kernels() {
  static const bool found = [] {
    const std::string_view core = blas_core_name();
    return core == "SkylakeX" || core == "Cooperlake" || core == "SapphireRapids";
  }();
  return found;
}

// OpenBLAS adds the products of an element in an order which does not depend on the row as long as its tiles
// begin at the same rows: pieces that begin at multiples of every tile's height are bit-equal to the whole.
// For columns that does not hold.
constexpr std::size_t piece_border = 48;

/// The least multiplications of a piece. Kernels that do not pack, which a processor may have for products of
/// up to a million, add in another order: where these are not known to be missing, both whole and pieces are
/// larger.
std::size_t piece_product() {
  static const std::size_t least = [] {
    const std::string_view core = blas_core_name();
    return core == "Haswell" || core == "Zen" ? std::size_t{1} << 18 : std::size_t{1} << 21;
  }();
  return least;
}

/// Blocks of rows beside each other, one call of BLAS each. Bound by flops: 88 % of the processor's peak.
template <typename T>
void blas_gemm_in_pieces(T alpha, const Matrix<const T>& a, const Matrix<const T>& b, T beta,
                         const Matrix<T>& c) {
  const std::size_t m = c.rows, height = ceil_div(piece_product(), c.cols * a.cols);
  const std::size_t least = ceil_div(height, piece_border) * piece_border;
  const std::size_t threads = BlasCall::is_concurrent() ? available_threads() : 1;
  if (m < 2 * least && sums_over_rows(a, b, c)) {
    return in_halves_of_rows<T>(threads, piece_product(), c.cols, a, b, beta, c,
                                [=](const auto& some_a, const auto& some_b, T some_beta, const auto& sum) {
                                  blas_gemm<T>(alpha, some_a, some_b, some_beta, sum);
                                });
  }
  const std::size_t pieces = std::min(m / least, threads);
  if (pieces < 2) return blas_gemm<T>(alpha, a, b, beta, c);
  const auto border = [&](std::size_t piece) {
    return piece == pieces ? m : piece * m / pieces / piece_border * piece_border;
  };
  parallel_for(pieces, [&](std::size_t piece, std::size_t) {
    const std::size_t begin = border(piece), rows = border(piece + 1) - begin;
    blas_gemm<T>(alpha, a.some_rows(begin, rows), b, beta, c.some_rows(begin, rows));
  });
}

// With AVX-512, OpenBLAS multiplies up to a million numbers without packing them, faster than the large
// products that it packs, unless b is transposed: 56 x 64 x 256 is the best tile below that.
constexpr std::size_t tile_row_multiple = 8, most_tile_rows = 56, tile_width = 64, tile_depth = 256,
                      panel_cols = 4 * tile_width;

constexpr std::size_t tiled_piece = std::size_t{1} << 19;  // multiplications of one thread, at least

/// Where a thread packs tiles of a and b, kept until it ends.
template <typename T>
struct TileMemory {
  alignas(64) T a[tile_depth * most_tile_rows], b[tile_depth * panel_cols];
};

template <typename T>
TileMemory<T>& tile_memory() {
  thread_local const auto memory = std::make_unique_for_overwrite<TileMemory<T>>();
  return *memory;
}

/// Where the tiles of b are that have been packed before: those of the first rows, then those of the next.
template <typename T>
struct PackedTiles {
  const T* data;
  std::size_t cols, first_col;

  const T* tile(std::size_t row, std::size_t col, std::size_t depth) const {
    return data + row * cols + (first_col + col) * depth;
  }
};

/// The product in tiles that OpenBLAS need not pack: those of b, 256 columns of which stay in the
/// second-level cache, are packed here once for all rows unless they are given, and so are those of a if it
/// is transposed. Bound by flops: 93 to 98 % of the processor's peak.
template <typename T>
void tiled_gemm(std::size_t tile_rows, T alpha, const Matrix<const T>& a, const Matrix<const T>& b, T beta,
                const Matrix<T>& c, const PackedTiles<T>* packed = nullptr) {
  const std::size_t m = c.rows, n = c.cols, k = a.cols;
  TileMemory<T>& memory = tile_memory<T>();
  const bool packs_a = a.transposed && a.stride > panel_cols;
  for (std::size_t panel = 0; panel < n; panel += panel_cols) {
    const std::size_t panel_end = std::min(n, panel + panel_cols);
    for (std::size_t p = 0; p < k; p += tile_depth) {
      const std::size_t depth = std::min(tile_depth, k - p);
      for (std::size_t j = panel; !packed && j < panel_end; j += tile_width) {
        const std::size_t cols = std::min(tile_width, panel_end - j);
        pack<T>(b.some_rows(p, depth).some_cols(j, cols), memory.b + (j - panel) * depth);
      }
      for (std::size_t i = 0; i < m; i += tile_rows) {
        const std::size_t rows = std::min(tile_rows, m - i);
        Matrix<const T> a_tile = a.some_rows(i, rows).some_cols(p, depth);
        if (packs_a) {
          pack<T>(a_tile.transpose(), memory.a);
          a_tile = Matrix<const T>(memory.a, depth, rows).transpose();
        }
        for (std::size_t j = panel; j < panel_end; j += tile_width) {
          const std::size_t cols = std::min(tile_width, panel_end - j);
          const T* const b_tile = packed ? packed->tile(p, j, depth) : memory.b + (j - panel) * depth;
          blas_gemm<T>(alpha, a_tile, {b_tile, depth, cols}, p == 0 ? beta : T(1),
                       c.some_rows(i, rows).some_cols(j, cols));
        }
      }
    }
  }
}

/// Of equal height.
std::size_t tile_rows_of(std::size_t rows) {
  const std::size_t height = ceil_div(rows, std::max<std::size_t>(1, ceil_div(rows, most_tile_rows)));
  return std::max<std::size_t>(1, ceil_div(height, tile_row_multiple)) * tile_row_multiple;
}

/// In tiles of equal height.
template <typename T>
void tiled_gemm_in_pieces(T alpha, const Matrix<const T>& a, const Matrix<const T>& b, T beta,
                          const Matrix<T>& c) {
  const auto product = [=](const auto& some_a, const auto& some_b, T some_beta, const auto& some_c) {
    tiled_gemm(tile_rows_of(some_c.rows), alpha, some_a, some_b, some_beta, some_c);
  };
  if (sums_over_rows(a, b, c)) {
    return in_halves_of_rows<T>(available_threads(), tiled_piece, tile_width, a, b, beta, c, product);
  }
  in_pieces<T>(tiled_piece, tile_row_multiple, tile_width, a, b, c,
               [=](const auto& some_a, const auto& some_b, const auto& some_c) {
                 product(some_a, some_b, beta, some_c);
               });
}

}  // namespace

const char* blas_core_name() { return openblas_get_corename ? openblas_get_corename() : "unknown"; }

GemmBackend gemm_backend() { return has_small_kernels() ? GemmBackend::unpacked_blas : GemmBackend::blas; }

template <typename T>
void large_gemm(bool in_tiles, T alpha, const Matrix<const T>& a, const Matrix<const T>& b, T beta,
                const Matrix<T>& c) {
  if (in_tiles) {
    tiled_gemm_in_pieces(alpha, a, b, beta, c);
  } else {
    blas_gemm_in_pieces(alpha, a, b, beta, c);
  }
}

template <typename T>
void pack_tiles(const Matrix<const T>& b, T* tiles) {
  const std::size_t units = ceil_div(b.cols, tile_width);
  parallel_pieces(units, b.rows * tile_width, [&](std::size_t begin, std::size_t end) {
    for (std::size_t p = 0; p < b.rows; p += tile_depth) {
      const std::size_t depth = std::min(tile_depth, b.rows - p);
      for (std::size_t j = begin * tile_width; j < std::min(b.cols, end * tile_width); j += tile_width) {
        const std::size_t cols = std::min(tile_width, b.cols - j);
        pack<T>(b.some_rows(p, depth).some_cols(j, cols), tiles + p * b.cols + j * depth);
      }
    }
  });
}

template <typename T>
void gemm_of_tiles(const Matrix<const T>& a, const T* tiles, T beta, const Matrix<T>& c) {
  const std::size_t n = c.cols, k = a.cols, units = ceil_div(n, tile_width);
  const std::size_t pieces =
      std::clamp<std::size_t>(c.rows * n * k / tiled_piece, 1, std::min(units, available_threads()));
  parallel_for(pieces, [&](std::size_t piece, std::size_t) {
    const std::size_t first = piece * units / pieces * tile_width;
    const std::size_t cols = std::min(n, (piece + 1) * units / pieces * tile_width) - first;
    const PackedTiles<T> packed{tiles, n, first};
    tiled_gemm<T>(tile_rows_of(c.rows), 1, a, {tiles, k, cols}, beta, c.some_cols(first, cols), &packed);
  });
}

#define XGRAD_INSTANTIATE(T)                                                                              \
  template void large_gemm(bool, T, const Matrix<const T>&, const Matrix<const T>&, T, const Matrix<T>&); \
  template void pack_tiles(const Matrix<const T>&, T*);                                                   \
  template void gemm_of_tiles(const Matrix<const T>&, const T*, T, const Matrix<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::kernels
