#include <algorithm>
#include <cstring>
#include <memory>

#include "gemm.hpp"
#include "large_gemm.hpp"
#include "pack.hpp"
#include "product_pieces.hpp"
#include "register_tile.hpp"

// Products without BLAS.
namespace xgrad::kernels {
namespace {

// A strip of B is as wide as a tile of C and stays in the first cache level with the rows of A below it; all
// strips of a panel stay in the second.
constexpr std::size_t panel_cols = 128, panel_depth = 256, block_rows = 32;
static_assert(panel_cols % tile_cols == 0);

template <typename T>
struct PanelMemory {
  alignas(64) T strips[panel_depth * panel_cols];
};

/// Where a thread packs strips of b, kept until it ends.
template <typename T>
T* panel_memory() {
  thread_local const std::unique_ptr<PanelMemory<T>> memory(new PanelMemory<T>);
  return memory->strips;
}

/// A step of k in some rows of A, with addresses that are cheap for the one order of memory and for the
/// other.
template <std::size_t height, typename T>
struct Rows {
  XGRAD_INLINE Rows(const T* a, std::size_t stride) {
    for (std::size_t r = 0; r < height; ++r) rows[r] = a + r * stride;
  }
  XGRAD_INLINE T operator[](std::size_t row) const { return *rows[row]; }
  XGRAD_INLINE void operator++() {
    for (const T*& row : rows) ++row;
  }
  const T* rows[height];
};
template <std::size_t height, typename T>
struct TransposedRows {
  XGRAD_INLINE TransposedRows(const T* a, std::size_t stride) : a(a), stride(stride) {}
  XGRAD_INLINE T operator[](std::size_t row) const { return a[row]; }
  XGRAD_INLINE void operator++() { a += stride; }
  const T* a;
  std::size_t stride;
};

/// c (height, tile_cols) = alpha A strip + beta c.
template <std::size_t height, typename T, typename A>
XGRAD_INLINE void multiply_full_tile(A a, const T* strip, std::size_t k, T alpha, T beta, T* c,
                                     std::size_t ldc) {
  using Row = typename Lanes<T, tile_cols>::type;
  Row sum[height]{};
  for (; k > 0; --k, strip += tile_cols, ++a) {
    Row row;
    std::memcpy(&row, strip, sizeof row);
    for (std::size_t r = 0; r < height; ++r) sum[r] += a[r] * row;
  }
  store_tile(sum, alpha, beta, c, ldc);
}

template <template <std::size_t, typename> typename A, typename T>
XGRAD_INLINE void multiply_strip(T alpha, const Matrix<const T>& a, const T* strip, T beta,
                                 const Matrix<T>& c) {
  for_rows<T>(a, c, [&](auto height, const T* from, T* to) XGRAD_INLINE_LAMBDA {
    multiply_full_tile<height>(A<height, T>(from, a.stride), strip, a.cols, alpha, beta, to, c.stride);
  });
}

/// c (rows, cols) = alpha A strips + beta c, where each strip of tile_cols columns, the last of fewer, is
/// contiguous. Bound by flops.
XGRAD_KERNEL(void, multiply_strips,
             (T alpha, const Matrix<const T>& a, const T* strips, T beta, const Matrix<T>& c),
             (alpha, a, strips, beta, c)) {
  for_columns(c.cols, [&](auto width, std::size_t first) XGRAD_INLINE_LAMBDA {
    const std::size_t in_strip = first % tile_cols, begin = first - in_strip;
    const T* const strip = strips + begin * a.cols + in_strip;
    const Matrix<T> columns = c.some_cols(first, width);
    if constexpr (width < tile_cols) {
      multiply_columns<width>(alpha, a, strip, std::min(tile_cols, c.cols - begin), beta, columns);
    } else if (a.transposed) {
      multiply_strip<TransposedRows>(alpha, a, strip, beta, columns);
    } else {
      multiply_strip<Rows>(alpha, a, strip, beta, columns);
    }
  });
}

template <typename T>
void multiply(T alpha, const Matrix<const T>& a, const Matrix<const T>& b, T beta, const Matrix<T>& c) {
  const std::size_t m = c.rows, n = c.cols, k = a.cols;
  T* const strips = panel_memory<T>();
  for (std::size_t j = 0; j < n; j += panel_cols) {
    const std::size_t cols = std::min(panel_cols, n - j);
    for (std::size_t p = 0; p < k; p += panel_depth) {
      const std::size_t depth = std::min(panel_depth, k - p);
      const Matrix<const T> panel = b.some_rows(p, depth).some_cols(j, cols);
      for (std::size_t s = 0; s < cols; s += tile_cols)
        pack<T>(panel.some_cols(s, std::min(tile_cols, cols - s)), strips + s * depth);
      for (std::size_t i = 0; i < m; i += block_rows) {
        const std::size_t rows = std::min(block_rows, m - i);
        multiply_strips<T>(alpha, a.some_rows(i, rows).some_cols(p, depth), strips, p == 0 ? beta : T(1),
                           c.some_rows(i, rows).some_cols(j, cols));
      }
    }
  }
}

}  // namespace

const char* blas_core_name() { return "none"; }

GemmBackend gemm_backend() { return GemmBackend::plain; }

template <typename T>
void large_gemm(bool, T alpha, const Matrix<const T>& a, const Matrix<const T>& b, T beta,
                const Matrix<T>& c) {
  in_pieces<T>(std::size_t{1} << 18, block_rows, tile_cols, a, b, c,
               [=](const auto& some_a, const auto& some_b, const auto& some_c) {
                 multiply<T>(alpha, some_a, some_b, beta, some_c);
               });
}

/// The whole is one tile.
template <typename T>
void pack_tiles(const Matrix<const T>& b, T* tiles) {
  pack<T>(b, tiles);
}

template <typename T>
void gemm_of_tiles(const Matrix<const T>& a, const T* tiles, T beta, const Matrix<T>& c) {
  large_gemm<T>(false, 1, a, {tiles, a.cols, c.cols}, beta, c);
}

#define XGRAD_INSTANTIATE(T)                                                                              \
  template void large_gemm(bool, T, const Matrix<const T>&, const Matrix<const T>&, T, const Matrix<T>&); \
  template void pack_tiles(const Matrix<const T>&, T*);                                                   \
  template void gemm_of_tiles(const Matrix<const T>&, const T*, T, const Matrix<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::kernels
