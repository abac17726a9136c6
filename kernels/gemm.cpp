#include "gemm.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>

#include <xtensor-blas/xblas.hpp>

#include "bfloat16.hpp"
#include "blas_call.hpp"
#include "pieces.hpp"
#include "product_precision.hpp"
#include "transpose_square.hpp"
#include "vectorized.hpp"

extern "C" {
[[gnu::weak]] char* openblas_get_corename();
}

namespace xgrad::kernels {

namespace {

// Up to this many multiplications, loops are done before OpenBLAS has chosen and packed. A group of columns
// counts as full; copying a transposed one takes as long as some rows of its products.
constexpr std::size_t small_product = 2560, group = 8, rows_per_copy = 4;
constexpr std::size_t copied_depth = small_product / group / (1 + rows_per_copy);

bool is_small(bool trans_b, std::size_t m, std::size_t n, std::size_t k) {
  if (m > small_product || n > small_product || k > small_product) return false;
  const std::size_t rest = n % group, groups = n / group + (rest & 1) + (rest >> 1 & 1) + (rest >> 2);
  return (m + (trans_b ? rows_per_copy : 0)) * groups * group * k <= small_product;
}

template <typename T>
void scale_rows(T beta, const Matrix<T>& c) {
  for (std::size_t i = 0; i < c.rows; ++i) {
    T* const row = c.data + i * c.stride;
    for (std::size_t j = 0; j < c.cols; ++j) row[j] = beta == T(0) ? T(0) : beta * row[j];
  }
}

/// `width` numbers in a register; a vector of one would live in memory.
template <typename T, std::size_t width>
struct Lanes {
  typedef T type __attribute__((vector_size(width * sizeof(T))));
};
template <typename T>
struct Lanes<T, 1> {
  using type = T;
};

/// `height` rows of c (height, width) = alpha op(A) columns + beta c, where a row of `columns` is contiguous
/// and `step` behind the one before. beta = 0 does not read c.
template <std::size_t height, std::size_t width, typename T>
XGRAD_INLINE void small_block(const T* a, std::size_t a_row, std::size_t a_step, const T* columns,
                              std::size_t step, std::size_t k, T alpha, T beta, T* c, std::size_t ldc) {
  using Row = typename Lanes<T, width>::type;
  Row sum[height]{};
  for (std::size_t p = 0; p < k; ++p, a += a_step, columns += step) {
    Row row;
    std::memcpy(&row, columns, sizeof row);
    for (std::size_t r = 0; r < height; ++r) sum[r] += a[r * a_row] * row;
  }
  for (std::size_t r = 0; r < height; ++r, c += ldc) {
    Row y = alpha * sum[r];
    if (beta != T(0)) {
      Row before;
      std::memcpy(&before, c, sizeof before);
      y += beta * before;
    }
    std::memcpy(c, &y, sizeof y);
  }
}

/// `width` columns of C, from `first` on. Those of a transposed B are copied to the stack first.
template <std::size_t width, typename T>
XGRAD_INLINE void small_columns(std::size_t first, T alpha, const Matrix<const T>& a,
                                const Matrix<const T>& b, T beta, const Matrix<T>& c) {
  const std::size_t k = a.cols;
  const T* columns = b.some_cols(first, width).data;
  std::size_t step = b.stride;
  T copied[copied_depth * width];
  if (b.transposed) {
    std::size_t p = 0;
    if constexpr (width % 4 == 0) {
      for (; p + 4 <= k; p += 4) {
        for (std::size_t l = 0; l < width; l += 4)
          transpose_square(columns + p + l * step, step, copied + p * width + l, width);
      }
    }
    for (; p < k; ++p) {
      for (std::size_t l = 0; l < width; ++l) copied[p * width + l] = columns[p + l * step];
    }
    columns = copied;
    step = width;
  }
  constexpr std::size_t height = 4;
  const std::size_t a_row = a.transposed ? 1 : a.stride, a_step = a.transposed ? a.stride : 1;
  const T* from = a.data;
  T* to = c.data + first;
  std::size_t m = c.rows;
  for (; m >= height; m -= height, from += height * a_row, to += height * c.stride)
    small_block<height, width>(from, a_row, a_step, columns, step, k, alpha, beta, to, c.stride);
  for (; m > 0; --m, from += a_row, to += c.stride)
    small_block<1, width>(from, a_row, a_step, columns, step, k, alpha, beta, to, c.stride);
}

/// Columns in groups of 8, 4, 2 and 1, and 4 rows at a time, so that every step multiplies 4 numbers of op(A)
/// with up to 8 contiguous ones. Bound by latency.
XGRAD_KERNEL(void, small_gemm,
             (T alpha, const Matrix<const T>& a, const Matrix<const T>& b, T beta, const Matrix<T>& c),
             (alpha, a, b, beta, c)) {
  std::size_t first = 0;
  for (; first + group <= c.cols; first += group) small_columns<group>(first, alpha, a, b, beta, c);
  if (c.cols & 4) {
    small_columns<4>(first, alpha, a, b, beta, c);
    first += 4;
  }
  if (c.cols & 2) {
    small_columns<2>(first, alpha, a, b, beta, c);
    first += 2;
  }
  if (c.cols & 1) small_columns<1>(first, alpha, a, b, beta, c);
}

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

// OpenBLAS adds the products of an element in one order up to a million multiplications, and in another
// above, which does not depend on the row as long as its tiles begin at the same rows: pieces of twice a
// million that begin at multiples of every tile's height are bit-equal to the whole. For columns that does
// not hold.
constexpr std::size_t piece_product = std::size_t{1} << 21, piece_border = 48;

/// Blocks of rows beside each other, one call of BLAS each. Bound by flops: 88 % of the processor's peak.
template <typename T>
void blas_gemm_in_pieces(T alpha, const Matrix<const T>& a, const Matrix<const T>& b, T beta,
                         const Matrix<T>& c) {
  const std::size_t m = c.rows, height = (piece_product - 1) / (c.cols * a.cols) + 1;
  const std::size_t least = (height + piece_border - 1) / piece_border * piece_border;
  const std::size_t pieces = BlasCall::is_concurrent() ? std::min(m / least, available_threads()) : 1;
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
constexpr std::size_t most_tile_rows = 56, tile_cols = 64, tile_depth = 256, panel_cols = 4 * tile_cols;

bool has_small_kernels() {
  static const bool found = [] {
    const std::string_view core = blas_core_name();
    return core == "SkylakeX" || core == "Cooperlake" || core == "SapphireRapids";
  }();
  return found;
}

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

/// packed (rows, cols) = matrix. Bound by bandwidth.
XGRAD_KERNEL(void, pack, (const Matrix<const T>& matrix, T* packed), (matrix, packed)) {
  const T* const from = matrix.data;
  const std::size_t rows = matrix.rows, cols = matrix.cols, ld = matrix.stride;
  if (!matrix.transposed) {
    for (std::size_t r = 0; r < rows; ++r) {
      XGRAD_INDEPENDENT
      for (std::size_t c = 0; c < cols; ++c) packed[r * cols + c] = from[r * ld + c];
    }
    return;
  }
  const std::size_t square_rows = rows / 4 * 4, square_cols = cols / 4 * 4;
  for (std::size_t c = 0; c < square_cols; c += 4) {
    for (std::size_t r = 0; r < square_rows; r += 4)
      transpose_square(from + c * ld + r, ld, packed + r * cols + c, cols);
  }
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = r < square_rows ? square_cols : 0; c < cols; ++c)
      packed[r * cols + c] = from[c * ld + r];
  }
}

/// The product in tiles that OpenBLAS need not pack: those of b, 256 columns of which stay in the
/// second-level cache, are packed here once for all rows, and so are those of a if it is transposed. Bound by
/// flops: 93 to 98 % of the processor's peak.
template <typename T>
void tiled_gemm(std::size_t tile_rows, T alpha, const Matrix<const T>& a, const Matrix<const T>& b, T beta,
                const Matrix<T>& c) {
  const std::size_t m = c.rows, n = c.cols, k = a.cols;
  TileMemory<T>& memory = tile_memory<T>();
  const bool packs_a = a.transposed && a.stride > panel_cols;
  for (std::size_t panel = 0; panel < n; panel += panel_cols) {
    const std::size_t panel_end = std::min(n, panel + panel_cols);
    for (std::size_t p = 0; p < k; p += tile_depth) {
      const std::size_t depth = std::min(tile_depth, k - p);
      for (std::size_t j = panel; j < panel_end; j += tile_cols) {
        const std::size_t cols = std::min(tile_cols, panel_end - j);
        pack<T>(b.some_rows(p, depth).some_cols(j, cols), memory.b + (j - panel) * depth);
      }
      for (std::size_t i = 0; i < m; i += tile_rows) {
        const std::size_t rows = std::min(tile_rows, m - i);
        Matrix<const T> a_tile = a.some_rows(i, rows).some_cols(p, depth);
        if (packs_a) {
          pack<T>(a_tile.transpose(), memory.a);
          a_tile = Matrix<const T>(memory.a, depth, rows).transpose();
        }
        for (std::size_t j = panel; j < panel_end; j += tile_cols) {
          const std::size_t cols = std::min(tile_cols, panel_end - j);
          blas_gemm<T>(alpha, a_tile, {memory.b + (j - panel) * depth, depth, cols}, p == 0 ? beta : T(1),
                       c.some_rows(i, rows).some_cols(j, cols));
        }
      }
    }
  }
}

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

/// In tiles of equal height.
template <typename T>
void tiled_gemm_in_pieces(T alpha, const Matrix<const T>& a, const Matrix<const T>& b, T beta,
                          const Matrix<T>& c) {
  const std::size_t height = ceil_div(c.rows, ceil_div(c.rows, most_tile_rows));
  const std::size_t tile_rows = ceil_div(height, 8) * 8;
  in_pieces<T>(std::size_t{1} << 19, tile_rows, tile_cols, a, b, c,
               [=](const auto& some_a, const auto& some_b, const auto& some_c) {
                 tiled_gemm(tile_rows, alpha, some_a, some_b, beta, some_c);
               });
}

/// True where tiles are faster than one call: not where that call is a tile itself.
bool pays_to_tile(bool trans_b, std::size_t m, std::size_t n, std::size_t k) {
  constexpr std::size_t least_side = 16, unpacked = 1000000;
  return std::min({m, n, k}) >= least_side && (trans_b ? m >= 2 * least_side : m * n * k > unpacked) &&
         has_small_kernels();
}

}  // namespace

template <typename T>
void gemm(std::type_identity_t<T> alpha, const Matrix<const T>& a, const Matrix<const T>& b,
          std::type_identity_t<T> beta, const Matrix<T>& c) {
  XGRAD_CAPTURED("gemm", (a, b, c), gemm<T>(alpha, a, b, beta, c));
  const std::size_t m = c.rows, n = c.cols, k = a.cols;
  if (m == 0 || n == 0) return;
  if (k == 0) return scale_rows(beta, c);
  if (is_small(b.transposed, m, n, k)) return small_gemm<T>(alpha, a, b, beta, c);
  if constexpr (std::is_same_v<T, float>) {
    if (parts_in_use(parts_asked()) != 0 && pays_to_round(m, n, k)) {
      return in_pieces<T>(std::size_t{1} << 20, bfloat16_rows, bfloat16_cols, a, b, c,
                          [=](const auto& some_a, const auto& some_b, const auto& some_c) {
                            bfloat16_gemm(alpha, some_a, some_b, beta, some_c);
                          });
    }
  }
  if (pays_to_tile(b.transposed, m, n, k)) {
    tiled_gemm_in_pieces(alpha, a, b, beta, c);
  } else {
    blas_gemm_in_pieces(alpha, a, b, beta, c);
  }
}

const char* instruction_set() {
#ifdef XGRAD_VERSIONS
  return __builtin_cpu_supports("avx512f") ? "AVX-512" : __builtin_cpu_supports("avx2") ? "AVX2" : "SSE2";
#else
  return "the compiler's choice";
#endif
}

const char* blas_core_name() { return openblas_get_corename ? openblas_get_corename() : "unknown"; }

#define XGRAD_INSTANTIATE(T) \
  template void gemm(T, const Matrix<const T>&, const Matrix<const T>&, T, const Matrix<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::kernels
