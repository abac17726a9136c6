#pragma once

// Not installed: for components, which call no kernels, the search for the nearest of many vectors.

#include <cstddef>
#include <span>
#include <vector>

#include "../../../kernels/index/nearest_rows.hpp"

namespace xgrad::detail {

/// kernels::row_norms and kernels::nearest_rows.
template <class T>
std::vector<double> lengths_of_rows(std::span<const T> rows, std::size_t size);
template <class T>
std::vector<std::vector<kernels::NearRow>> nearest_of(const kernels::Vectors<T>& queries,
                                                      const kernels::Vectors<T>& rows, std::size_t most,
                                                      bool cosine);

}  // namespace xgrad::detail
