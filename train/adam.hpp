#pragma once

#include <utility>

#include "../base/detail/by_name.hpp"
#include "optimizer.hpp"

namespace xgrad {

struct AdamOptions {
  detail::ByName by_name = {};
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;  ///< times p, added to the gradient
};

struct AdamWOptions {
  detail::ByName by_name = {};
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;  ///< times lr p, subtracted from p
};

namespace detail {

/// Common base of Adam and AdamW, which differ in weight decay.
template <class T>
class AdamBase : public Optimizer<T> {
 public:
  void step() override;

 protected:
  AdamBase(const char* name, const std::vector<ParameterGroup<T, AdamOptions>>& groups, bool decoupled);

 private:
  /// State of a parameter.
  struct Moments {
    Array<T> m, v;
    std::size_t steps = 0;
  };

  Moments zero_moments(std::size_t parameter) const;
  double group_lr(std::size_t group) const override { return options_[group].lr; }
  void set_group_lr(std::size_t group, double lr) override { options_[group].lr = lr; }
  void list_options(StateArchive& state, const std::string& prefix, std::size_t group) override;
  void list_parameter(StateArchive& state, const std::string& name, std::size_t parameter) override;

  bool decoupled_;
  std::vector<AdamOptions> options_;  // of each group
  std::vector<Moments> moments_;      // of each parameter
};

}  // namespace detail

/// Adam (Kingma and Ba 2014, arXiv:1412.6980). In step t, with g = dp + weight_decay p:
/// m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; p -= lr mhat / (sqrt(vhat) + eps) with
/// mhat = m / (1 - beta1^t), vhat = v / (1 - beta2^t). Throws ValueError for invalid options.
/// https://pytorch.org/docs/stable/generated/torch.optim.Adam.html
template <class T>
class Adam : public detail::AdamBase<T> {
 public:
  using Group = ParameterGroup<T, AdamOptions>;

  explicit Adam(std::vector<Variable<T>> parameters, AdamOptions options = {});
  explicit Adam(const std::vector<Group>& groups);
};

/// Adam with g = dp and decoupled weight decay, p *= 1 - lr weight_decay before each step (Loshchilov and
/// Hutter 2017, arXiv:1711.05101). Throws ValueError for invalid options.
/// https://pytorch.org/docs/stable/generated/torch.optim.AdamW.html
template <class T>
class AdamW : public detail::AdamBase<T> {
 public:
  using Group = ParameterGroup<T, AdamWOptions>;

  explicit AdamW(std::vector<Variable<T>> parameters, AdamWOptions options = {});
  explicit AdamW(const std::vector<Group>& groups);
};

}  // namespace xgrad
