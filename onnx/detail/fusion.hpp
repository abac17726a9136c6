#pragma once

#include <vector>

#include "model.hpp"
#include "operators/operators.hpp"

namespace xgrad::onnx::detail {

/// The domain of fused nodes.
inline constexpr const char* fused_domain = "xgrad";

/// Operators of fused nodes that are no ops of xgrad: the shape of a Transpose of x, or of x in another
/// shape, that of attention in heads before they are joined, x with a number in the place of nan, and the
/// product of floats as integers of 8 bits and a weight of such integers.
inline constexpr const char *turned_shape = "turned_shape", *attention_shape = "attention_shape",
                            *without_nan = "without_nan", *integer_linear = "integer_linear";

/// The nodes of a graph in order, with groups that match a kernel of xgrad fused: products with transposed
/// weights, gelu, normalized sums, attention in heads, and with `are_floats`, which says that T is float,
/// products of 8-bit integers. Results are the same, except that the float nearest to sqrt(2) is treated as
/// sqrt(2) itself, that the only row of zeros of a table of embeddings gets no gradient, and that products of
/// integers between QuantizeLinear and DequantizeLinear are exact before they are scaled.
std::vector<Node> fused(const Model& model, bool are_floats);

/// The operators of fused nodes.
template <class T>
const OperatorTable<T>& fused_operators();

}  // namespace xgrad::onnx::detail
