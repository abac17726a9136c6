#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "../base/detail/by_name.hpp"
#include "optimizers/optimizer.hpp"

namespace xgrad {

/// Computes an optimizer's learning rates from the epoch (the number of calls of step()) and from the base
/// rates, which the groups had when their first scheduler was created. The constructor sets the rates of
/// epoch 0; call step() after each step of the optimizer: one before its first step, which skips those rates,
/// prints a warning on stderr. Current rates are overwritten: of two schedulers of
/// one optimizer, the last one called wins; SequentialLR chains several. Throws ValueError if the optimizer
/// was moved, assigned to or destroyed.
///
/// The optimizer stores and saves the rates and the base rates; a scheduler's state is "last_epoch", and
/// loading it sets no rates. https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate
template <class T>
class LRScheduler : public Stateful {
 public:
  /// The learning rate of a group in an epoch.
  using Rule = std::function<double(double base_lr, std::size_t epoch, std::size_t group)>;

  LRScheduler(Optimizer<T>& optimizer, Rule rule);

  /// Advances to the next epoch. Throws ValueError for an invalid rate; the epoch is then unchanged.
  void step();

  std::size_t last_epoch() const { return last_epoch_; }
  /// The rates of this epoch, one for each group.
  std::vector<double> get_last_lr() const { return rates(last_epoch_); }
  std::vector<double> base_lrs() const;

  const Optimizer<T>& optimizer() const { return scheduled(); }
  const Rule& rule() const& { return rule_; }
  Rule rule() && { return std::move(rule_); }

 protected:
  void list_state(StateArchive& state) override;

 private:
  std::vector<double> rates(std::size_t epoch) const;
  void set_rates(std::size_t epoch);
  Optimizer<T>& scheduled() const;
  std::uint64_t changes() const;

  Optimizer<T>* optimizer_;
  std::weak_ptr<const void> presence_;  // of the optimizer
  Rule rule_;
  std::size_t last_epoch_ = 0;
  std::uint64_t first_changes_;  // of the parameters when the scheduler was made
};

/// lr = base lr_lambda(epoch), or base lr_lambdas[group](epoch). Throws ValueError unless each group has one.
/// https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.LambdaLR.html
template <class T>
class LambdaLR : public LRScheduler<T> {
 public:
  using Lambda = std::function<double(std::size_t epoch)>;

  LambdaLR(Optimizer<T>& optimizer, Lambda lr_lambda);
  LambdaLR(Optimizer<T>& optimizer, std::vector<Lambda> lr_lambdas);
};

/// lr = base factor in the first total_iters epochs, then base. Throws ValueError unless factor is in [0, 1].
/// https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.ConstantLR.html
template <class T>
class ConstantLR : public LRScheduler<T> {
 public:
  explicit ConstantLR(Optimizer<T>& optimizer, double factor = 1.0 / 3, std::size_t total_iters = 5);
};

struct LinearLROptions {
  detail::ByName by_name = {};
  double start_factor = 1.0 / 3;
  double end_factor = 1;
  std::size_t total_iters = 5;
};

/// lr = base factor, where factor changes linearly from start_factor to end_factor over total_iters epochs,
/// then stays: a linear warm-up. Throws ValueError unless both are in [0, 1] and total_iters is at least 1.
/// https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.LinearLR.html
template <class T>
class LinearLR : public LRScheduler<T> {
 public:
  explicit LinearLR(Optimizer<T>& optimizer, LinearLROptions options = {});
};

/// lr = eta_min + (base - eta_min) (1 + cos(pi epoch / T_max)) / 2: decreases to eta_min at T_max, and
/// increases again afterwards (Loshchilov and Hutter 2016, arXiv:1608.03983). Throws ValueError unless T_max
/// is at least 1 and eta_min finite and at least 0.
/// https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.CosineAnnealingLR.html
template <class T>
class CosineAnnealingLR : public LRScheduler<T> {
 public:
  CosineAnnealingLR(Optimizer<T>& optimizer, std::size_t T_max, double eta_min = 0);
};

/// lr = base gamma^floor(epoch / step_size). Throws ValueError unless step_size is at least 1 and gamma
/// finite and at least 0. https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.StepLR.html
template <class T>
class StepLR : public LRScheduler<T> {
 public:
  StepLR(Optimizer<T>& optimizer, std::size_t step_size, double gamma = 0.1);
};

/// lr = base gamma^n, n the number of milestones up to this epoch, in any order; one that is given twice
/// counts twice. Throws ValueError unless gamma is finite and at least 0.
/// https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.MultiStepLR.html
template <class T>
class MultiStepLR : public LRScheduler<T> {
 public:
  MultiStepLR(Optimizer<T>& optimizer, std::vector<std::size_t> milestones, double gamma = 0.1);
};

/// lr = base gamma^epoch. Throws ValueError unless gamma is finite and at least 0.
/// https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.ExponentialLR.html
template <class T>
class ExponentialLR : public LRScheduler<T> {
 public:
  ExponentialLR(Optimizer<T>& optimizer, double gamma);
};

/// lr = base (1 - epoch / total_iters)^power, then 0. Throws ValueError unless total_iters is at least 1 and
/// power finite and at least 0.
/// https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.PolynomialLR.html
template <class T>
class PolynomialLR : public LRScheduler<T> {
 public:
  explicit PolynomialLR(Optimizer<T>& optimizer, std::size_t total_iters = 5, double power = 1);
};

struct WarmRestartsOptions {
  detail::ByName by_name = {};
  std::size_t T_mult = 1;  ///< each period is as many times as long as the one before
  double eta_min = 0;
};

/// CosineAnnealingLR that begins again from the base rate after T_0 epochs, T_0 T_mult further ones, and so
/// on (Loshchilov and Hutter 2016, arXiv:1608.03983). Throws ValueError unless T_0 and T_mult are at least 1
/// and eta_min finite and at least 0.
/// https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.CosineAnnealingWarmRestarts.html
template <class T>
class CosineAnnealingWarmRestarts : public LRScheduler<T> {
 public:
  CosineAnnealingWarmRestarts(Optimizer<T>& optimizer, std::size_t T_0, WarmRestartsOptions options = {});
};

/// How OneCycleLR goes from one rate to the next.
enum class AnnealStrategy { cos, linear };

struct OneCycleLROptions {
  detail::ByName by_name = {};
  double pct_start = 0.3;  ///< the share of the steps in which the rate rises
  AnnealStrategy anneal_strategy = AnnealStrategy::cos;
  double div_factor = 25;         ///< max_lr / the first rate
  double final_div_factor = 1e4;  ///< the first rate / the last
  bool three_phase = false;       ///< falls to the first rate as it rose, then to the last
};

/// One rise to max_lr, of all groups or of each, and one fall over total_steps steps (Smith and Topin 2017,
/// arXiv:1708.07120), whatever the base rates; PyTorch's with cycle_momentum = false. Throws ValueError for
/// invalid options, and in an epoch above total_steps.
/// https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.OneCycleLR.html
template <class T>
class OneCycleLR : public LRScheduler<T> {
 public:
  OneCycleLR(Optimizer<T>& optimizer, double max_lr, std::size_t total_steps, OneCycleLROptions options = {});
  OneCycleLR(Optimizer<T>& optimizer, const std::vector<double>& max_lrs, std::size_t total_steps,
             OneCycleLROptions options = {});
};

/// lr = base epoch / warmup_steps in the first warmup_steps epochs, then decreasing linearly to 0 at
/// total_steps, and 0 afterwards. Throws ValueError unless total_steps is above warmup_steps.
/// https://huggingface.co/docs/transformers/main_classes/optimizer_schedules#transformers.get_linear_schedule_with_warmup
template <class T>
class LinearWarmupLR : public LRScheduler<T> {
 public:
  LinearWarmupLR(Optimizer<T>& optimizer, std::size_t warmup_steps, std::size_t total_steps);
};

/// lr = base d_model^-0.5 min(s^-0.5, s warmup_steps^-1.5) in step s = epoch + 1: increases linearly, then
/// decreases with the inverse square root of the step (Vaswani et al. 2017, arXiv:1706.03762, section 5.3,
/// where base is 1). Throws ValueError unless both are at least 1.
template <class T>
class InverseSquareRootLR : public LRScheduler<T> {
 public:
  InverseSquareRootLR(Optimizer<T>& optimizer, std::size_t d_model, std::size_t warmup_steps);
};

/// The first scheduler's rates before epoch milestones[0], the second's from there to milestones[1], and so
/// on; each counts from 0 at its start. Uses only the rules of the schedulers, not their epochs. Throws
/// ValueError unless all schedule the same optimizer, number one more than the milestones, and the milestones
/// increase from 1. https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.SequentialLR.html
template <class T>
class SequentialLR : public LRScheduler<T> {
 public:
  SequentialLR(Optimizer<T>& optimizer, const std::vector<LRScheduler<T>>& schedulers,
               std::vector<std::size_t> milestones);
};

}  // namespace xgrad
