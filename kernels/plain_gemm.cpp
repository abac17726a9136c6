#include <algorithm>
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

/// c (rows, cols) = alpha A strips + beta c, where each strip of tile_cols columns, the last of fewer, is
/// contiguous. Bound by flops.
XGRAD_KERNEL(void, multiply_strips,
             (T alpha, const Matrix<const T>& a, const T* strips, T beta, const Matrix<T>& c),
             (alpha, a, strips, beta, c)) {
  for_columns(c.cols, [&](auto width, std::size_t first) XGRAD_INLINE_LAMBDA {
    const std::size_t in_strip = first % tile_cols, begin = first - in_strip;
    multiply_columns<width>(alpha, a, strips + begin * a.cols + in_strip, std::min(tile_cols, c.cols - begin),
                            beta, c.some_cols(first, width));
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

template <typename T>
void large_gemm(T alpha, const Matrix<const T>& a, const Matrix<const T>& b, T beta, const Matrix<T>& c) {
  in_pieces<T>(std::size_t{1} << 18, block_rows, tile_cols, a, b, c,
               [=](const auto& some_a, const auto& some_b, const auto& some_c) {
                 multiply<T>(alpha, some_a, some_b, beta, some_c);
               });
}

#define XGRAD_INSTANTIATE(T) \
  template void large_gemm(T, const Matrix<const T>&, const Matrix<const T>&, T, const Matrix<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::kernels
