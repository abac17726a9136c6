#pragma once

#include <vector>

#include <xgrad/graph/variable.hpp>

namespace xgrad {

/// Scales all gradients in place by max_norm / (norm + 1e-6), unless that is above 1, and returns norm, the
/// Euclidean norm of all of them taken as one vector. Parameters without a gradient are skipped. Throws
/// ValueError for a negative max_norm or nan.
/// https://pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html
template <class T>
double clip_grad_norm(const std::vector<Variable<T>>& parameters, double max_norm);

}  // namespace xgrad
