#pragma once

#include <cstddef>
#include <cstdint>

namespace xgrad::kernels {

/// y[i] = index[i] in 32 bits, half of what a gather reads. False if any is not in [0, length).
bool narrow_index(const std::int64_t* index, std::size_t length, std::uint32_t* y, std::size_t n);

/// y[i] = x[offset(i) + index[i] dim_stride] for every i of `shape`, where offset(i) is the sum of i times
/// `strides`; index and y are contiguous.
template <typename T>
void gather(std::size_t rank, const std::size_t* shape, const std::ptrdiff_t* strides,
            std::ptrdiff_t dim_stride, const T* x, const std::uint32_t* index, T* y);

/// The reverse: dx[offset(i) + index[i] dim_stride] += dy[i]. dx is not cleared.
template <typename T>
void gather_grad(std::size_t rank, const std::size_t* shape, const std::ptrdiff_t* strides,
                 std::ptrdiff_t dim_stride, const T* dy, const std::uint32_t* index, T* dx);

}  // namespace xgrad::kernels
