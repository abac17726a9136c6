#pragma once

#include "../matrix.hpp"

namespace xgrad::kernels {

/// What computes large products.
enum class GemmBackend {
  plain,          ///< the library's own loops
  blas,           ///< BLAS
  unpacked_blas,  ///< OpenBLAS with kernels that multiply up to a million numbers without packing them
};
GemmBackend gemm_backend();

/// C = alpha A B + beta C as gemm computes it, on all threads, where no side is 0; in tiles, or in one call
/// for each thread. Tiles are for unpacked_blas alone.
template <typename T>
void large_gemm(bool in_tiles, T alpha, const Matrix<const T>& a, const Matrix<const T>& b, T beta,
                const Matrix<T>& c);

/// tiles (as many elements) = those of b.
template <typename T>
void pack_tiles(const Matrix<const T>& b, T* tiles);

/// c = a b + beta c, for the tiles of b.
template <typename T>
void gemm_of_tiles(const Matrix<const T>& a, const T* tiles, T beta, const Matrix<T>& c);

}  // namespace xgrad::kernels
