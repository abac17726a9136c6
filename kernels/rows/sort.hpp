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

/// ids (outer, m): how many elements of the row of sorted (outer, n), or of its only row, are less than the
/// value (outer, m), or with `right` not greater. nan is greater than all else.
template <typename T>
void search_sorted(const T* sorted, std::size_t n, bool one_row, const T* values, std::size_t outer,
                   std::size_t m, bool right, std::int64_t* ids);

}  // namespace xgrad::kernels
