#pragma once

#include <cstddef>
#include <cstdint>

#include "../matrix.hpp"

namespace xgrad::kernels {

/// y[i] = index[i] in 32 bits, half of what a gather reads. False if any is not in [0, length).
bool narrow_index(const std::int64_t* index, std::size_t length, std::uint32_t* y, std::size_t n);

/// y[i] = x[i + index[i] dim_stride] for every i of `shape`, whose place in x its strides give; index and y
/// are contiguous.
template <typename T>
void gather(Lengths shape, const Strided<const T>& x, std::ptrdiff_t dim_stride, const std::uint32_t* index,
            T* y);

/// The reverse: dx[i + index[i] dim_stride] += dy[i]. dx is not cleared.
template <typename T>
void gather_grad(Lengths shape, const T* dy, std::ptrdiff_t dim_stride, const std::uint32_t* index,
                 const Strided<T>& dx);

}  // namespace xgrad::kernels
