#pragma once

#include <optional>

#include "../../base/detail/by_name.hpp"
#include "optimizer.hpp"

namespace xgrad {

struct RMSpropOptions {
  detail::ByName by_name = {};
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;  ///< divides by the standard deviation of the gradient
  bool maximize = false;  ///< -dp for dp
};

/// Divides by a running root mean square (Tieleman and Hinton 2012). With g = dp + weight_decay p: v = alpha
/// v + (1 - alpha) g^2; q = g / (sqrt(v) + eps), and if centered v - mean^2 for v with mean = alpha mean +
/// (1 - alpha) g (Graves 2013, arXiv:1308.0850); velocity = momentum velocity + q; p -= lr velocity. Throws
/// ValueError for invalid options. https://pytorch.org/docs/stable/generated/torch.optim.RMSprop.html
template <class T>
class RMSprop : public detail::OptimizerOfGroups<T, RMSpropOptions> {
 public:
  using Group = ParameterGroup<T, RMSpropOptions>;

  explicit RMSprop(std::vector<Variable<T>> parameters, RMSpropOptions options = {});
  explicit RMSprop(const std::vector<Group>& groups);

  void step() override;

 private:
  /// State of a parameter.
  struct Averages {
    std::size_t steps = 0;
    std::optional<Array<T>> square = {}, mean = {}, velocity = {};
  };

  void keep_state(StateArchive& state) override;
  void list_options(StateArchive& state, const std::string& prefix, std::size_t group) override;
  void list_parameter(StateArchive& state, const std::string& name, std::size_t parameter) override;

  std::vector<Averages> averages_;  // of each parameter
};

}  // namespace xgrad
