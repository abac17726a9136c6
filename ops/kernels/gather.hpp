#pragma once

#include <cstddef>
#include <cstdint>

namespace xgrad::kernels {

/// y[i] = x[offset(i) + index[i] dim_stride] for every i of `shape`, where offset(i) is the sum of i times
/// `strides`; index and y are contiguous.
template <typename T>
void gather(std::size_t rank, const std::size_t* shape, const std::ptrdiff_t* strides,
            std::ptrdiff_t dim_stride, const T* x, const std::int64_t* index, T* y);

/// The reverse: dx[offset(i) + index[i] dim_stride] += dy[i]. dx is not cleared.
template <typename T>
void gather_grad(std::size_t rank, const std::size_t* shape, const std::ptrdiff_t* strides,
                 std::ptrdiff_t dim_stride, const T* dy, const std::int64_t* index, T* dx);

}  // namespace xgrad::kernels
