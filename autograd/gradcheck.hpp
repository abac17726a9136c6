#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../base/detail/by_name.hpp"
#include "../graph/detail/returns_variable.hpp"
#include "../graph/variable.hpp"

namespace xgrad {

struct GradcheckOptions {
  detail::ByName by_name = {};
  double eps = 1e-6;   ///< step of the central difference
  double atol = 1e-5;  ///< |analytic - numeric| <= atol + rtol |numeric|
  double rtol = 1e-3;
  std::size_t projections = 0;  ///< number of random directions through all inputs; 0: every element
  std::uint64_t seed = 0;       ///< of the random weights of the outputs and the random directions
};

/// Result of a check; true if the gradients are correct.
struct [[nodiscard]] GradcheckReport {
  bool ok = true;
  std::string worst;  ///< the worst element: "input 0, element (1, 2): analytic 3, numeric 2, difference 1"
  double difference = 0;  ///< |analytic - numeric| of the worst element
  explicit operator bool() const { return ok; }
};

/// A function of Variables; it may also read captured leaves, such as a model's parameters.
using CheckedFunction = detail::VariableFunction<double, const std::vector<Variable<double>>&>;

/// Compares the gradients of sum(w f(inputs)), with random weights w, to central differences in double.
///
/// The inputs are leaves that require gradients; their values are changed by eps and restored. The check
/// fails for a function whose repeated evaluation or backward gives different values. Throws ValueError for
/// inputs that are not such leaves.
/// https://pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html
GradcheckReport gradcheck(const CheckedFunction& f, const std::vector<Variable<double>>& inputs,
                          GradcheckOptions options = {});

/// gradcheck for the gradients of f, with respect to the inputs and to the seed of backward; also compares
/// the gradients computed with create_graph to those computed without.
/// https://pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradgradcheck.html
GradcheckReport gradgradcheck(const CheckedFunction& f, const std::vector<Variable<double>>& inputs,
                              GradcheckOptions options = {});

}  // namespace xgrad
