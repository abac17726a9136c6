#pragma once

#include <vector>

#include "model.hpp"
#include "operators.hpp"

namespace xgrad::onnx::detail {

/// The domain of nodes that take the place of several.
inline constexpr const char* fused_domain = "xgrad";

/// The nodes of a graph in their order, with one in place of several that xgrad has a kernel for: products
/// with transposed weights, gelu, sums that are normalized, attention in heads. What they compute stays the
/// same, but that a float nearest to sqrt(2) stands for sqrt(2) itself.
std::vector<Node> fused(const Model& model);

/// The operators of those nodes.
template <class T>
const OperatorTable<T>& fused_operators();

}  // namespace xgrad::onnx::detail
