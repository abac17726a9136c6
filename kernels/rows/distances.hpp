#pragma once

#include <cstddef>

namespace xgrad::kernels {

/// How many rows of length k the two sides of each batch have.
struct RowPairs {
  std::size_t n, m, k;
};

/// y (rows, m): y[i, j] = the length of a[i] - b[j], for `rows` rows a of all batches and the rows b[j] of
/// the batch of a[i].
template <typename T>
void distances(const T* a, const T* b, const RowPairs& pairs, T* y, std::size_t rows);

/// da[i] = the sum over j of (a[i] - b[j]) dy[i, j] / y[i, j], without those where y is 0. In a batch, the
/// elements of dy and y are `row` apart for i and `col` for j.
template <typename T>
void distances_grad(const T* dy, const T* y, std::size_t row, std::size_t col, const T* a, const T* b,
                    const RowPairs& pairs, T* da, std::size_t rows);

}  // namespace xgrad::kernels
