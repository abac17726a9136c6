#pragma once

#include "../matrix.hpp"

namespace xgrad::kernels {

/// Up to how many multiplications loops are as fast as large_gemm: between small_product and
/// most_small_product.
std::size_t most_looped_product(bool trans_b);

/// C = alpha A B + beta C as gemm computes it, on all threads, where no side is 0: products of more than
/// most_looped_product() multiplications.
template <typename T>
void large_gemm(T alpha, const Matrix<const T>& a, const Matrix<const T>& b, T beta, const Matrix<T>& c);

/// Whether large_gemm would pack b (k, n) in tiles for a with so many rows.
bool reads_tiles(std::size_t rows, std::size_t n, std::size_t k);

/// tiles (as many elements) = those of b.
template <typename T>
void pack_tiles(const Matrix<const T>& b, T* tiles);

/// c = a b + beta c, for the tiles of b.
template <typename T>
void gemm_of_tiles(const Matrix<const T>& a, const T* tiles, T beta, const Matrix<T>& c);

}  // namespace xgrad::kernels
