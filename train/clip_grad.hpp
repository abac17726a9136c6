#pragma once

#include <vector>

#include "../graph/variable.hpp"

namespace xgrad {

struct ClipGradNormOptions {
  bool error_if_nonfinite = false;  ///< throw for a norm that is infinite or nan, and change nothing
};

/// Scales all gradients in place by max_norm / (norm + 1e-6), unless that is above 1, and returns norm, the
/// Euclidean norm of all of them taken as one vector. Parameters without a gradient are skipped. By default a
/// norm that is nan makes all gradients nan, and an infinite one makes them 0, or nan where they were
/// infinite. Throws ValueError for a negative max_norm or nan, std::runtime_error for error_if_nonfinite.
/// https://pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html
template <class T>
double clip_grad_norm(const std::vector<Variable<T>>& parameters, double max_norm,
                      ClipGradNormOptions options = {});

/// Brings every element of the gradients into [-clip_value, clip_value], in place; nan stays. Parameters
/// without a gradient are skipped. Throws ValueError for a negative clip_value or nan.
/// https://pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_value_.html
template <class T>
void clip_grad_value(const std::vector<Variable<T>>& parameters, double clip_value);

}  // namespace xgrad
