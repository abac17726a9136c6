#pragma once

#include "losses.hpp"

// Negative log likelihoods of numbers. https://pytorch.org/docs/stable/nn.functional.html#loss-functions

namespace xgrad {

struct GaussianNllOptions {
  detail::ByName by_name = {};
  bool full = false;  ///< with the constant ln(2 pi) / 2
  double eps = 1e-6;  ///< the least variance
  Reduction reduction = Reduction::mean;
};

/// loss = (ln v + (input - target)^2 / v) / 2, reduced, with v = max(var, eps): of target, distributed
/// normally with mean input and variance var. dvar is dv, also where eps is the larger one. var has the shape
/// of input, or without its last axis, or broadcasts to it. Throws ValueError for a variance below 0.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.gaussian_nll_loss.html
template <class T>
Variable<T> gaussian_nll_loss(const Variable<T>& input, const std::type_identity_t<Variable<T>>& target,
                              const std::type_identity_t<Variable<T>>& var, GaussianNllOptions options = {});

struct PoissonNllOptions {
  detail::ByName by_name = {};
  bool log_input = true;  ///< input is the logarithm of the expected count
  bool full = false;      ///< with ln(target!) by Stirling's formula, where target is above 1
  double eps = 1e-8;      ///< added to input in its logarithm
  Reduction reduction = Reduction::mean;
};

/// loss = e^input - target input, or input - target ln(input + eps) without log_input, reduced: of a count
/// target, distributed as Poisson's. One must broadcast to the other.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.poisson_nll_loss.html
template <class T>
Variable<T> poisson_nll_loss(const Variable<T>& input, const std::type_identity_t<Variable<T>>& target,
                             PoissonNllOptions options = {});

}  // namespace xgrad
