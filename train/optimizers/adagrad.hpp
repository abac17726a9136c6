#pragma once

#include <optional>

#include "../../base/detail/by_name.hpp"
#include "optimizer.hpp"

namespace xgrad {

struct AdagradOptions {
  detail::ByName by_name = {};
  double lr = 1e-2;
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;
  bool maximize = false;  ///< -dp for dp
};

/// Divides by the root of the sum of all squares (Duchi, Hazan and Singer 2011). In step t, with g = dp +
/// weight_decay p: sum += g^2 from initial_accumulator_value; p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(sum)
/// + eps). Throws ValueError for invalid options.
/// https://pytorch.org/docs/stable/generated/torch.optim.Adagrad.html
template <class T>
class Adagrad : public detail::OptimizerOfGroups<T, AdagradOptions> {
 public:
  using Group = ParameterGroup<T, AdagradOptions>;

  explicit Adagrad(std::vector<Variable<T>> parameters, AdagradOptions options = {});
  explicit Adagrad(const std::vector<Group>& groups);

  void step() override;

 private:
  /// State of a parameter.
  struct Squares {
    std::size_t steps = 0;
    std::optional<Array<T>> sum = {};  // none before the first step
  };

  void keep_state(StateArchive& state) override;
  void list_options(StateArchive& state, const std::string& prefix, std::size_t group) override;
  void list_parameter(StateArchive& state, const std::string& name, std::size_t parameter) override;

  std::vector<Squares> squares_;  // of each parameter
};

}  // namespace xgrad
