#pragma once

#include <cstddef>
#include <cstdint>

namespace xgrad::kernels {

// Along the middle axis of x (outer, n, inner). nan is larger than all else, and of equal elements the one
// with the lower index comes first.

/// ids (outer, inner): the first index i with x[i] == extreme (outer, inner), or with a nan where that is
/// nan.
template <typename T>
void first_index(const T* x, const T* extreme, std::size_t outer, std::size_t n, std::size_t inner,
                 std::int64_t* ids);

/// ids (outer, k, inner): those of the k smallest elements, or the largest, in this order.
template <typename T>
void sorted_indices(const T* x, std::size_t outer, std::size_t n, std::size_t inner, std::size_t k,
                    bool descending, std::int64_t* ids);

}  // namespace xgrad::kernels
