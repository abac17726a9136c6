#pragma once

#include "../../base/detail/by_name.hpp"
#include "../../base/dims.hpp"
#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

// Norms of x (N, C, ...) with a weight and a bias for each channel, (C) or undefined:
// y = (x - mean) / sqrt(variance + eps) weight + bias. They differ in what the mean and the biased variance
// are over. Errors: ShapeError for shapes that do not fit, ValueError for a variance of one element and for
// a momentum outside [0, 1].

namespace xgrad {

struct BatchNormOptions {
  detail::ByName by_name = {};
  bool training = false;  ///< by the batch's own statistics, not by the running ones
  double momentum = 0.1;  ///< the share of the batch's statistics in the new running ones
  double eps = 1e-5;
};

/// Over all axes but the channels' in training, one op with a kernel, else by the running statistics (C).
/// Those that are given in training are changed: running = (1 - momentum) running + momentum new, with the
/// unbiased variance. https://pytorch.org/docs/stable/generated/torch.nn.functional.batch_norm.html
template <class T>
Variable<T> batch_norm(const Variable<T>& x, const Variable<T>& running_mean, const Variable<T>& running_var,
                       const Variable<T>& weight = {}, const Variable<T>& bias = {},
                       BatchNormOptions options = {});

/// Over the axes behind the channels and each of `num_groups` groups of channels: one op with a kernel.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.group_norm.html
template <class T>
Variable<T> group_norm(const Variable<T>& x, Int num_groups, const Variable<T>& weight = {},
                       const Variable<T>& bias = {}, double eps = 1e-5);

struct InstanceNormOptions {
  detail::ByName by_name = {};
  bool use_input_stats = true;  ///< not the running ones
  double momentum = 0.1;        ///< the share of the input's statistics in the new running ones
  double eps = 1e-5;
};

/// Over the axes behind the channels, or by the running statistics (C). Those that are given are changed as
/// by batch_norm, by the means over N of the statistics, unless they are what x is normalized by.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.instance_norm.html
template <class T>
Variable<T> instance_norm(const Variable<T>& x, const Variable<T>& running_mean = {},
                          const Variable<T>& running_var = {}, const Variable<T>& weight = {},
                          const Variable<T>& bias = {}, InstanceNormOptions options = {});

namespace ops {

inline constexpr Op batch_norm("batch_norm", {"x", "weight", "bias"}, {"eps"});
/// Of instance_norm, too.
inline constexpr Op group_norm("group_norm", {"x", "weight", "bias"}, {"num_groups", "eps"});

}  // namespace ops
}  // namespace xgrad
