#pragma once

#include <optional>
#include <utility>

#include "../../base/detail/by_name.hpp"
#include "optimizer.hpp"

namespace xgrad {

struct AdamOptions {
  detail::ByName by_name = {};
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;  ///< times p, added to the gradient
  bool amsgrad = false;     ///< the largest v so far for v
  bool maximize = false;    ///< -dp for dp
};

struct AdamWOptions {
  detail::ByName by_name = {};
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;  ///< times lr p, subtracted from p
  bool amsgrad = false;        ///< the largest v so far for v
  bool maximize = false;       ///< -dp for dp
};

struct NAdamOptions {
  detail::ByName by_name = {};
  double lr = 2e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;  ///< times p, added to the gradient
  double momentum_decay = 4e-3;
  bool decoupled_weight_decay = false;  ///< weight decay as AdamW's
  bool maximize = false;                ///< -dp for dp
};

struct RAdamOptions {
  detail::ByName by_name = {};
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;              ///< times p, added to the gradient
  bool decoupled_weight_decay = false;  ///< weight decay as AdamW's
  bool maximize = false;                ///< -dp for dp
};

namespace kernels {
struct AdamStep;
}

namespace detail {

enum class AdamKind { adam, adamw, nadam, radam };

/// The options of all of Adam's kind.
struct AdamSettings {
  double lr, beta1, beta2, eps, weight_decay, momentum_decay;
  bool decoupled, amsgrad, maximize;
};

/// Common base of Adam, AdamW, NAdam and RAdam, which differ in weight decay and in what a step makes of the
/// averages.
template <class T>
class AdamBase : public OptimizerOfGroups<T, AdamSettings> {
 public:
  void step() override;

 protected:
  AdamBase(AdamKind kind, const std::vector<ParameterGroup<T, AdamSettings>>& groups);

 private:
  /// State of a parameter.
  struct Moments {
    Array<T> m, v;
    std::optional<Array<T>> largest = {};  // v, with amsgrad
    double mu_product = 1;                 // of NAdam
    std::size_t steps = 0;
  };

  Moments zero_moments(std::size_t parameter) const;
  kernels::AdamStep step_of(const AdamSettings& settings, Moments& moments) const;
  void keep_state(StateArchive& state) override;
  void list_options(StateArchive& state, const std::string& prefix, std::size_t group) override;
  void list_parameter(StateArchive& state, const std::string& name, std::size_t parameter) override;

  AdamKind kind_;
  std::vector<Moments> moments_;  // of each parameter
};

}  // namespace detail

/// Adam (Kingma and Ba 2014, arXiv:1412.6980). In step t, with g = dp + weight_decay p:
/// m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; p -= lr mhat / (sqrt(vhat) + eps) with
/// mhat = m / (1 - beta1^t), vhat = v / (1 - beta2^t). With amsgrad (Reddi et al. 2018, arXiv:1904.09237)
/// vhat is of the largest v so far. Throws ValueError for invalid options.
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

/// Adam with Nesterov's momentum (Dozat 2016). In step t, with mu_t = beta1 (1 - 0.96^(t momentum_decay) / 2)
/// and M_t the product of mu_1 to mu_t: p -= lr mhat / (sqrt(vhat) + eps) with mhat = mu_(t+1) m / (1 -
/// M_(t+1)) + (1 - mu_t) g / (1 - M_t). M is a float, as in PyTorch. Throws ValueError for invalid options.
/// https://pytorch.org/docs/stable/generated/torch.optim.NAdam.html
template <class T>
class NAdam : public detail::AdamBase<T> {
 public:
  using Group = ParameterGroup<T, NAdamOptions>;

  explicit NAdam(std::vector<Variable<T>> parameters, NAdamOptions options = {});
  explicit NAdam(const std::vector<Group>& groups);
};

/// Adam whose first steps do not divide by sqrt(v), which varies too much then (Liu et al. 2019,
/// arXiv:1908.03265). In step t, with s = 2 / (1 - beta2) - 1 and r = s - 2 t beta2^t / (1 - beta2^t):
/// p -= lr mhat where r <= 5, else lr mhat sqrt((r - 4) (r - 2) s / ((s - 4) (s - 2) r)) sqrt(1 - beta2^t) /
/// (sqrt(v) + eps). Throws ValueError for invalid options.
/// https://pytorch.org/docs/stable/generated/torch.optim.RAdam.html
template <class T>
class RAdam : public detail::AdamBase<T> {
 public:
  using Group = ParameterGroup<T, RAdamOptions>;

  explicit RAdam(std::vector<Variable<T>> parameters, RAdamOptions options = {});
  explicit RAdam(const std::vector<Group>& groups);
};

}  // namespace xgrad
