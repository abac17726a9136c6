#pragma once

#include "../../base/dims.hpp"
#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

/// y = (x - mean) / sqrt(variance + eps) * weight + bias over the last axes, whose lengths are
/// `normalized_shape` (Ba et al. 2016, arXiv:1607.06450). weight and bias have that shape or are undefined;
/// the variance is the biased one.
///
/// With n = (x - mean) rstd and g = dy weight: dx = rstd (g - mean(g) - n mean(g n)), dweight = sum dy n,
/// dbias = sum dy. Throws ShapeError for other shapes, ValueError for a negative eps.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.layer_norm.html
template <class T>
Variable<T> layer_norm(const Variable<T>& x, const Dims& normalized_shape, const Variable<T>& weight = {},
                       const Variable<T>& bias = {}, double eps = 1e-5);

/// layer_norm(x + residual, ...) as one node of the graph (the post-norm of Vaswani et al. 2017,
/// arXiv:1706.03762, section 3.1). residual has x's shape; both get the gradient dx of layer_norm. Throws
/// ShapeError "add_layer_norm: x and residual must have the same shape, got (2, 3) and (1, 3)".
template <class T>
Variable<T> add_layer_norm(const Variable<T>& x, const Variable<T>& residual, const Dims& normalized_shape,
                           const Variable<T>& weight = {}, const Variable<T>& bias = {}, double eps = 1e-5);

namespace ops {

inline constexpr Op layer_norm("layer_norm", {"x", "weight", "bias"}, {"normalized_shape", "eps"});
inline constexpr Op add_layer_norm("add_layer_norm", {"x", "residual", "weight", "bias"},
                                   {"normalized_shape", "eps"});

}  // namespace ops
}  // namespace xgrad
