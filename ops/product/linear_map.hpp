#pragma once

#include <functional>
#include <type_traits>

#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

/// y = A x and dx = A^T dy for a linear map A given by two functions of arrays: `map` takes x, of any shape,
/// to A x, and `transposed` takes u, of y's shape, to A^T u, of x's shape. The gradient is the map with their
/// roles swapped, so derivatives of any order exist. Integrates results of other libraries: products with
/// sparse matrices and solutions with their factors, Fourier and wavelet transforms, projections,
/// interpolations, finite elements.
///
///   y = linear_map(x, [&](const Array<double>& b) { return solved(factors, b); },
///                  [&](const Array<double>& b) { return solved(transposed_factors, b); });
///
/// The graph keeps the functions, so they must not refer to objects destroyed before the backward pass, and
/// must always compute the same; A itself has no gradient. gradcheck() detects a pair that is not transposed
/// to each other, and a nonlinear map. Throws ShapeError, in the backward pass, for a function that returns
/// another shape. The adjoint identity: (A x) . u = x . (A^T u).
template <class T>
Variable<T> linear_map(const Variable<T>& x,
                       std::type_identity_t<std::function<Array<T>(const Array<T>&)>> map,
                       std::type_identity_t<std::function<Array<T>(const Array<T>&)>> transposed);

namespace ops {

inline constexpr Op linear_map("linear_map", {"x"}, {"transposed"});

}  // namespace ops
}  // namespace xgrad
