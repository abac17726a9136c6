#pragma once

#include "../../base/detail/by_name.hpp"
#include "optimizer.hpp"

namespace xgrad {

struct SGDOptions {
  detail::ByName by_name = {};
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;  ///< requires a momentum and no dampening
  bool maximize = false;  ///< -dp for dp
};

/// Gradient descent with momentum (Sutskever et al. 2013). With g = dp + weight_decay p: velocity = momentum
/// velocity + (1 - dampening) g (just g in the first step); p -= lr velocity, or lr (g + momentum velocity)
/// with nesterov. Throws ValueError for invalid options.
/// https://pytorch.org/docs/stable/generated/torch.optim.SGD.html
template <class T>
class SGD : public detail::OptimizerOfGroups<T, SGDOptions> {
 public:
  using Group = ParameterGroup<T, SGDOptions>;

  explicit SGD(std::vector<Variable<T>> parameters, SGDOptions options = {});
  explicit SGD(const std::vector<Group>& groups);

  void step() override;

 private:
  void keep_state(StateArchive& state) override;
  void list_options(StateArchive& state, const std::string& prefix, std::size_t group) override;
  void list_parameter(StateArchive& state, const std::string& name, std::size_t parameter) override;

  std::vector<std::optional<Array<T>>> velocities_;  // of the parameters updated with momentum
};

}  // namespace xgrad
