#pragma once

#include <cstdint>

#include "../matrix.hpp"

namespace xgrad::kernels {

/// y[i] = weight[ids[i]] for the rows of y (count, dim), one behind the other as those of weight.
template <typename T>
void gather_rows(const T* weight, const std::int64_t* ids, const Matrix<T>& y);

/// dweight[ids[i]] += dy[i]. dweight is not cleared.
template <typename T>
void scatter_add_rows(const Matrix<const T>& dy, const std::int64_t* ids, T* dweight);

}  // namespace xgrad::kernels
