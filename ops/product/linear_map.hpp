#pragma once

#include <functional>
#include <type_traits>

#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

/// y = A x and dx = A^T dy for a linear map A that two functions of arrays give: `map` takes x to A x, of any
/// shape, and `transposed` takes what has the shape of y to A^T times it, of the shape of x. The gradient is
/// the map with their roles swapped, so that there are derivatives of any order. With it what other libraries
/// compute takes part: products with sparse matrices and solutions with their factors, Fourier and wavelet
/// transforms, projections, interpolations, finite elements.
///
///   y = linear_map(x, [&](const Array<double>& b) { return solved(factors, b); },
///                  [&](const Array<double>& b) { return solved(transposed_factors, b); });
///
/// The functions are kept in the graph, so that they must not refer to what is gone in the backward pass, and
/// must not change what they compute; A itself has no gradient. gradcheck() finds a pair that is not
/// transposed to each other, and a map that is not linear. Throws ShapeError, in the backward pass, for a
/// function that returns another shape. The adjoint identity: (A x) . u = x . (A^T u).
template <class T>
Variable<T> linear_map(const Variable<T>& x,
                       std::type_identity_t<std::function<Array<T>(const Array<T>&)>> map,
                       std::type_identity_t<std::function<Array<T>(const Array<T>&)>> transposed);

namespace ops {

inline constexpr Op linear_map("linear_map", {"x"}, {"transposed"});

}  // namespace ops
}  // namespace xgrad
