#pragma once

#include <cstddef>

namespace xgrad::kernels {

/// y[i, j] = the length of a[i] - b[j], for rows a (n, k) and b (m, k).
template <typename T>
void distances(const T* a, const T* b, std::size_t m, std::size_t k, T* y, std::size_t n);

/// da[i] = the sum over j of (a[i] - b[j]) dy[i, j] / y[i, j], without those where y is 0. The elements of dy
/// and y are `row` apart for i and `col` for j.
template <typename T>
void distances_grad(const T* dy, const T* y, std::size_t row, std::size_t col, const T* a, const T* b,
                    std::size_t m, std::size_t k, T* da, std::size_t n);

}  // namespace xgrad::kernels
