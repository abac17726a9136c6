#pragma once

#include <vector>

#include "../base/detail/by_name.hpp"
#include "../graph/variable.hpp"

namespace xgrad {

struct ClipGradNormOptions {
  detail::ByName by_name = {};
  bool error_if_nonfinite = false;  ///< throw for an infinite or nan norm, without changes
};

/// Scales all gradients in place by max_norm / (norm + 1e-6), unless that is above 1, and returns norm, the
/// Euclidean norm of all gradients as one vector. Skips parameters without a gradient. By default, a nan norm
/// makes all gradients nan; an infinite norm makes them 0, or nan where they were infinite. Throws ValueError
/// for a negative max_norm or nan, std::runtime_error for error_if_nonfinite.
/// https://pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html
template <class T>
double clip_grad_norm(const std::vector<Variable<T>>& parameters, double max_norm,
                      ClipGradNormOptions options = {});

/// Clamps every element of the gradients to [-clip_value, clip_value], in place; nan stays. Skips parameters
/// without a gradient. Throws ValueError for a negative clip_value or nan.
/// https://pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_value_.html
template <class T>
void clip_grad_value(const std::vector<Variable<T>>& parameters, double clip_value);

namespace detail {

/// Multiplies all gradients by a factor, in place. Skips parameters without a gradient.
template <class T>
void scale_gradients(const std::vector<Variable<T>>& parameters, T factor);

}  // namespace detail

}  // namespace xgrad
