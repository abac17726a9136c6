#pragma once

#include <memory>
#include <vector>

#include "../../../graph/variable.hpp"
#include "../../../kernels/lapack/lapack.hpp"

// Linear systems with given factors, for solve(), solve_triangular() and the ops composed of them.
namespace xgrad::detail {

/// solve_triangular() for op(a) and the same batch axes of both, without a check of the diagonal.
template <class T>
Variable<T> triangular_solution(const Variable<T>& a, const Variable<T>& b, kernels::Triangular options);

/// The factors of a batch of matrices (..., n, n).
template <class T>
struct LuFactors {
  Array<T> factors;
  std::vector<kernels::Pivot> pivots;
  std::vector<std::size_t> zero_pivots;  ///< for each matrix the index, from 1, of the first pivot that is 0
};

template <class T>
std::shared_ptr<const LuFactors<T>> lu_factors(const Variable<T>& a);

/// X with a X = b, or a^T X = b, for the same batch axes of both.
template <class T>
Variable<T> lu_solution(const Variable<T>& a, const std::shared_ptr<const LuFactors<T>>& lu,
                        const Variable<T>& b, bool transposed);

}  // namespace xgrad::detail
