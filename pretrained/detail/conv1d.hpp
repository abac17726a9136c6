#pragma once

#include "../../graph/variable.hpp"

// Not installed: convolution along a sequence.
namespace xgrad::pretrained::detail {

/// Convolution along a sequence that keeps its length, with zeros beyond its ends:
/// y[b, t, o] = bias[o] + sum over s and i of x[b, t + s - (K - 1) / 2, g I + i] weight[o, i, s],
/// where g = o / (O / G) is the group of o.
///
/// x (batch, L, G I), weight (O, I, K) with K odd and O a multiple of G, bias (O) or undefined, y (batch, L,
/// O). Composed of shifted copies of x and one product, as are the gradients. Throws ShapeError for other
/// shapes, ValueError for an even K.
/// https://pytorch.org/docs/stable/generated/torch.nn.Conv1d.html
template <class T>
Variable<T> conv1d(const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias);

}  // namespace xgrad::pretrained::detail
