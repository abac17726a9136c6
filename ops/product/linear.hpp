#pragma once

#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

/// y = x weight^T + bias, with x (..., in), weight (out, in), bias (out) or undefined, y (..., out). A weight
/// (in) gives y (...), and takes no bias.
///
/// dx = dy weight, dweight = dy^T x, dbias = dy, the latter two summed over all rows.
/// Throws ShapeError "linear: the last axis of x must be weight's last, got x (2, 3) and weight (4, 5)".
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.linear.html
template <class T>
Variable<T> linear(const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias = {});

/// relu(linear(x, weight, bias)) as one node of the graph, for a weight (out, in): y = max(0, x weight^T +
/// bias).
///
/// With g = dy where y > 0, else 0: dx = g weight, dweight = g^T x, dbias = g, the latter two summed over all
/// rows. Throws ShapeError as linear does.
template <class T>
Variable<T> linear_relu(const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias);

namespace ops {

inline constexpr Op linear("linear", {"x", "weight", "bias"});
inline constexpr Op linear_relu("linear_relu", {"x", "weight", "bias"});

}  // namespace ops
}  // namespace xgrad
