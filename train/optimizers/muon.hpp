#pragma once

#include <array>
#include <optional>

#include "../../base/detail/by_name.hpp"
#include "optimizer.hpp"

namespace xgrad {

/// By what Muon multiplies the rate of a matrix (A, B).
enum class MuonAdjustment {
  original,         ///< sqrt(max(1, A / B))
  match_rms_adamw,  ///< 0.2 sqrt(max(A, B)): rates of AdamW fit
};

struct MuonOptions {
  detail::ByName by_name = {};
  double lr = 1e-3;
  double weight_decay = 0.1;  ///< times lr p, subtracted from p
  double momentum = 0.95;
  bool nesterov = true;
  std::array<double, 3> ns_coefficients = {3.4445, -4.775, 2.0315};
  double eps = 1e-7;
  std::size_t ns_steps = 5;  ///< below 100
  MuonAdjustment adjust_lr_fn = MuonAdjustment::original;
};

/// Momentum whose steps are made nearly orthogonal, for the matrices among a model's parameters (Jordan et
/// al. 2024, https://kellerjordan.github.io/posts/muon/): m = momentum m + (1 - momentum) dp; U = m, or
/// momentum m + (1 - momentum) dp with nesterov; X = U / max(|U|, eps), then ns_steps times, with (a, b, c) =
/// ns_coefficients and S = X X^T: X = a X + (b S + c S^2) X; p *= 1 - lr weight_decay; p -= lr adjustment X.
/// X and S are rounded to bfloat16, as in PyTorch. Throws ShapeError for a parameter that is not a matrix,
/// ValueError for invalid options. https://pytorch.org/docs/stable/generated/torch.optim.Muon.html
template <class T>
class Muon : public detail::OptimizerOfGroups<T, MuonOptions> {
 public:
  using Group = ParameterGroup<T, MuonOptions>;

  explicit Muon(std::vector<Variable<T>> parameters, MuonOptions options = {});
  explicit Muon(const std::vector<Group>& groups);

  void step() override;

 private:
  void keep_state(StateArchive& state) override;
  void list_options(StateArchive& state, const std::string& prefix, std::size_t group) override;
  void list_parameter(StateArchive& state, const std::string& name, std::size_t parameter) override;

  std::vector<std::optional<Array<T>>> momenta_;  // of the parameters that have been updated
};

}  // namespace xgrad
