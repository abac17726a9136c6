#pragma once

#include <vector>

#include "model.hpp"
#include "operators.hpp"

namespace xgrad::onnx::detail {

/// The domain of fused nodes.
inline constexpr const char* fused_domain = "xgrad";

/// Operators of fused nodes that are no ops of xgrad: the shape of a Transpose of x, or of x in another
/// shape, that of attention in heads before they are joined, and x with a number in the place of nan.
inline constexpr const char *turned_shape = "turned_shape", *attention_shape = "attention_shape",
                            *without_nan = "without_nan";

/// The nodes of a graph in order, with groups that match a kernel of xgrad fused: products with transposed
/// weights, gelu, normalized sums, attention in heads. Results are the same, except that the float nearest to
/// sqrt(2) is treated as sqrt(2) itself, and that the only row of zeros of a table of embeddings gets no
/// gradient.
std::vector<Node> fused(const Model& model);

/// The operators of fused nodes.
template <class T>
const OperatorTable<T>& fused_operators();

}  // namespace xgrad::onnx::detail
