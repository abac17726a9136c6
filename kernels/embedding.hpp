#pragma once

#include <cstddef>
#include <cstdint>

namespace xgrad::kernels {

/// y[i] = weight[ids[i]]: rows of `dim` elements, y (count, dim).
template <typename T>
void gather_rows(const T* weight, const std::int64_t* ids, T* y, std::size_t count, std::size_t dim);

/// dweight[ids[i]] += dy[i]. dweight is not cleared.
template <typename T>
void scatter_add_rows(const T* dy, const std::int64_t* ids, T* dweight, std::size_t count, std::size_t dim);

}  // namespace xgrad::kernels
