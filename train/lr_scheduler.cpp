#include "lr_scheduler.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace xgrad {
namespace {

constexpr double pi = 3.14159265358979323846;

double checked_factor(const char* scheduler, const char* name, double factor) {
  if (!(factor >= 0 && factor <= 1)) {
    detail::fail<ValueError>(scheduler, ": ", name, " must be in [0, 1], got ", factor);
  }
  return factor;
}

double checked_count(const char* scheduler, const char* name, std::size_t count) {
  if (count == 0) detail::fail<ValueError>(scheduler, ": ", name, " must be at least 1, got 0");
  return static_cast<double>(count);
}

template <class T>
void check_groups(const char* scheduler, const char* what, const Optimizer<T>& optimizer, std::size_t count) {
  if (count != optimizer.group_count()) {
    detail::fail<ValueError>(scheduler, ": there must be a ", what, " for each of ", optimizer.group_count(),
                             " groups, got ", count);
  }
}

/// From `start` to `end` as the angle goes from 0 to pi.
double cosine(double start, double end, double angle) {
  return end + (start - end) * (1 + std::cos(angle)) / 2;
}

template <class T>
using Rule = typename LRScheduler<T>::Rule;

template <class T>
Rule<T> lambda_rule(const Optimizer<T>& optimizer, std::vector<typename LambdaLR<T>::Lambda> lambdas) {
  check_groups("LambdaLR", "function", optimizer, lambdas.size());
  return [lambdas = std::move(lambdas)](double base, std::size_t epoch, std::size_t group) {
    return base * lambdas[group](epoch);
  };
}

template <class T>
Rule<T> constant_rule(double factor, std::size_t total_iters) {
  checked_factor("ConstantLR", "factor", factor);
  return
      [=](double base, std::size_t epoch, std::size_t) { return epoch < total_iters ? base * factor : base; };
}

template <class T>
Rule<T> linear_rule(const LinearLROptions& options) {
  const double start = checked_factor("LinearLR", "start_factor", options.start_factor);
  const double end = checked_factor("LinearLR", "end_factor", options.end_factor);
  const double total = checked_count("LinearLR", "total_iters", options.total_iters);
  return [=](double base, std::size_t epoch, std::size_t) {
    const double done = std::min(static_cast<double>(epoch), total);
    return base * (start * (total - done) + end * done) / total;
  };
}

template <class T>
Rule<T> cosine_rule(std::size_t T_max, double eta_min) {
  const double half_period = checked_count("CosineAnnealingLR", "T_max", T_max);
  detail::checked_rate("CosineAnnealingLR", "eta_min", eta_min);
  return [=](double base, std::size_t epoch, std::size_t) {
    return cosine(base, eta_min, pi * static_cast<double>(epoch) / half_period);
  };
}

template <class T>
Rule<T> step_rule(std::size_t step_size, double gamma) {
  checked_count("StepLR", "step_size", step_size);
  detail::checked_rate("StepLR", "gamma", gamma);
  return [=](double base, std::size_t epoch, std::size_t) {
    const std::size_t steps = epoch / step_size;
    return base * std::pow(gamma, static_cast<double>(steps));
  };
}

template <class T>
Rule<T> multi_step_rule(std::vector<std::size_t> milestones, double gamma) {
  detail::checked_rate("MultiStepLR", "gamma", gamma);
  std::sort(milestones.begin(), milestones.end());
  return [gamma, milestones = std::move(milestones)](double base, std::size_t epoch, std::size_t) {
    const auto next = std::upper_bound(milestones.begin(), milestones.end(), epoch);
    return base * std::pow(gamma, static_cast<double>(next - milestones.begin()));
  };
}

template <class T>
Rule<T> exponential_rule(double gamma) {
  detail::checked_rate("ExponentialLR", "gamma", gamma);
  return [gamma](double base, std::size_t epoch, std::size_t) {
    return base * std::pow(gamma, static_cast<double>(epoch));
  };
}

template <class T>
Rule<T> polynomial_rule(std::size_t total_iters, double power) {
  const double total = checked_count("PolynomialLR", "total_iters", total_iters);
  detail::checked_rate("PolynomialLR", "power", power);
  return [=](double base, std::size_t epoch, std::size_t) {
    return base * std::pow(1 - static_cast<double>(std::min(epoch, total_iters)) / total, power);
  };
}

template <class T>
Rule<T> warm_restarts_rule(std::size_t T_0, const WarmRestartsOptions& options) {
  constexpr const char* name = "CosineAnnealingWarmRestarts";
  const double first = checked_count(name, "T_0", T_0);
  const double growth = checked_count(name, "T_mult", options.T_mult);
  return [=, eta_min = detail::checked_rate(name, "eta_min", options.eta_min)](double base, std::size_t epoch,
                                                                               std::size_t) {
    double since = static_cast<double>(epoch), period = first;
    if (growth == 1) since = std::fmod(since, period);
    for (; since >= period; period *= growth) since -= period;
    return cosine(base, eta_min, pi * since / period);
  };
}

/// From `start` to `end` as `share` goes from 0 to 1.
double annealed(AnnealStrategy strategy, double start, double end, double share) {
  return strategy == AnnealStrategy::linear ? (end - start) * share + start : cosine(start, end, pi * share);
}

template <class T>
Rule<T> one_cycle_rule(const Optimizer<T>& optimizer, std::vector<double> max_lrs, std::size_t total_steps,
                       const OneCycleLROptions& options) {
  constexpr const char* name = "OneCycleLR";
  check_groups(name, "max_lr", optimizer, max_lrs.size());
  for (const double max_lr : max_lrs) detail::checked_rate(name, "max_lr", max_lr);
  const double total = checked_count(name, "total_steps", total_steps);
  checked_factor(name, "pct_start", options.pct_start);
  for (const auto& [factor, what] : {std::pair{options.div_factor, "div_factor"},
                                     std::pair{options.final_div_factor, "final_div_factor"}}) {
    if (!(factor > 0) || std::isinf(factor))
      detail::fail<ValueError>("OneCycleLR: ", what, " must be finite and above 0, got ", factor);
  }
  const double top = options.pct_start * total - 1, bottom = options.three_phase ? 2 * top : total - 1;
  return [=, max_lrs = std::move(max_lrs)](double, std::size_t epoch, std::size_t group) {
    if (epoch > total_steps)
      detail::fail<ValueError>("OneCycleLR: there are ", total_steps, " steps, got ", epoch);
    const auto step = static_cast<double>(epoch);
    const double highest = max_lrs[group], first = highest / options.div_factor,
                 last = first / options.final_div_factor;
    const auto between = [&](double from, double to, double start, double end) {
      const double share = to == from ? 1 : (step - from) / (to - from);
      // Linear annealing goes on below 0 in epoch total_steps.
      return std::max(annealed(options.anneal_strategy, start, end, share), 0.0);
    };
    if (step <= top) return between(0, top, first, highest);
    if (!options.three_phase) return between(top, bottom, highest, last);
    return step <= bottom ? between(top, bottom, highest, first) : between(bottom, total - 1, first, last);
  };
}

template <class T>
Rule<T> linear_warmup_rule(std::size_t warmup_steps, std::size_t total_steps) {
  if (total_steps <= warmup_steps) {
    detail::fail<ValueError>("LinearWarmupLR: total_steps must be above warmup_steps ", warmup_steps,
                             ", got ", total_steps);
  }
  const auto rise = static_cast<double>(warmup_steps), fall = static_cast<double>(total_steps - warmup_steps);
  return [=](double base, std::size_t epoch, std::size_t) {
    if (epoch < warmup_steps) return base * (static_cast<double>(epoch) / rise);
    const std::size_t left = total_steps - std::min(epoch, total_steps);
    return base * (static_cast<double>(left) / fall);
  };
}

template <class T>
Rule<T> inverse_square_root_rule(std::size_t d_model, std::size_t warmup_steps) {
  const double scale = 1 / std::sqrt(checked_count("InverseSquareRootLR", "d_model", d_model));
  const double rise = std::pow(checked_count("InverseSquareRootLR", "warmup_steps", warmup_steps), -1.5);
  return [=](double base, std::size_t epoch, std::size_t) {
    const auto step = static_cast<double>(epoch + 1);
    return base * scale * std::min(1 / std::sqrt(step), step * rise);
  };
}

template <class T>
Rule<T> sequential_rule(const Optimizer<T>& optimizer, const std::vector<LRScheduler<T>>& schedulers,
                        std::vector<std::size_t> milestones) {
  if (schedulers.size() != milestones.size() + 1) {
    detail::fail<ValueError>("SequentialLR: there must be one scheduler more than milestones, got ",
                             schedulers.size(), " and ", milestones.size());
  }
  milestones.insert(milestones.begin(), 0);
  std::vector<Rule<T>> rules;
  for (std::size_t i = 0; i < schedulers.size(); ++i) {
    if (&schedulers[i].optimizer() != &optimizer) {
      detail::fail<ValueError>("SequentialLR: every scheduler must have the given optimizer, scheduler ", i,
                               " has another");
    }
    if (i > 0 && milestones[i] <= milestones[i - 1]) {
      detail::fail<ValueError>("SequentialLR: milestones must rise from 1, got ", milestones[i], " after ",
                               milestones[i - 1]);
    }
    rules.push_back(schedulers[i].rule());
  }
  return [milestones = std::move(milestones), rules = std::move(rules)](double base, std::size_t epoch,
                                                                        std::size_t group) {
    const auto next = std::upper_bound(milestones.begin(), milestones.end(), epoch);
    const auto current = static_cast<std::size_t>(next - milestones.begin()) - 1;
    return rules[current](base, epoch - milestones[current], group);
  };
}

}  // namespace

template <class T>
LRScheduler<T>::LRScheduler(Optimizer<T>& optimizer, Rule rule)
    : optimizer_(&optimizer), presence_(optimizer.presence_.observer()), rule_(std::move(rule)) {
  for (std::size_t g = 0; g < optimizer.groups_.size(); ++g) {
    std::optional<double>& initial_lr = optimizer.groups_[g].initial_lr;
    if (!initial_lr) initial_lr = optimizer.lr(g);
  }
  set_rates(0);
  first_changes_ = changes();
}

template <class T>
void LRScheduler<T>::step() {
  const bool too_early = last_epoch_ == 0 && changes() == first_changes_;
  set_rates(last_epoch_ + 1);
  if (too_early) {
    std::fputs(
        "warning: LRScheduler: step() before the first step of the optimizer skips the first learning rate\n",
        stderr);
  }
}

/// How often the parameters were changed in place, as each step of an optimizer does.
template <class T>
std::uint64_t LRScheduler<T>::changes() const {
  std::uint64_t sum = 0;
  for (const Variable<T>& parameter : scheduled().parameters_)
    sum += detail::Access<T>::value(parameter)->version;
  return sum;
}

template <class T>
Optimizer<T>& LRScheduler<T>::scheduled() const {
  if (presence_.expired())
    detail::fail<ValueError>(
        "LRScheduler: the optimizer was moved, assigned to or destroyed; it must stay where it is");
  return *optimizer_;
}

template <class T>
std::vector<double> LRScheduler<T>::base_lrs() const {
  std::vector<double> rates;
  for (const auto& group : scheduled().groups_) rates.push_back(*group.initial_lr);
  return rates;
}

template <class T>
std::vector<double> LRScheduler<T>::rates(std::size_t epoch) const {
  std::vector<double> rates = base_lrs();
  for (std::size_t group = 0; group < rates.size(); ++group) {
    rates[group] = detail::checked_rate("LRScheduler", "lr", rule_(rates[group], epoch, group));
  }
  return rates;
}

template <class T>
void LRScheduler<T>::set_rates(std::size_t epoch) {
  const std::vector<double> wanted = rates(epoch);
  Optimizer<T>& optimizer = scheduled();
  for (std::size_t group = 0; group < wanted.size(); ++group) optimizer.set_lr(group, wanted[group]);
  last_epoch_ = epoch;
}

template <class T>
void LRScheduler<T>::list_state(StateArchive& state) {
  state.keep(last_epoch_);
  state.number("last_epoch", last_epoch_);
}

template <class T>
LambdaLR<T>::LambdaLR(Optimizer<T>& optimizer, Lambda lr_lambda)
    : LambdaLR(optimizer, std::vector<Lambda>(optimizer.group_count(), std::move(lr_lambda))) {}
template <class T>
LambdaLR<T>::LambdaLR(Optimizer<T>& optimizer, std::vector<Lambda> lr_lambdas)
    : LRScheduler<T>(optimizer, lambda_rule<T>(optimizer, std::move(lr_lambdas))) {}

template <class T>
ConstantLR<T>::ConstantLR(Optimizer<T>& optimizer, double factor, std::size_t total_iters)
    : LRScheduler<T>(optimizer, constant_rule<T>(factor, total_iters)) {}

template <class T>
LinearLR<T>::LinearLR(Optimizer<T>& optimizer, LinearLROptions options)
    : LRScheduler<T>(optimizer, linear_rule<T>(options)) {}

template <class T>
CosineAnnealingLR<T>::CosineAnnealingLR(Optimizer<T>& optimizer, std::size_t T_max, double eta_min)
    : LRScheduler<T>(optimizer, cosine_rule<T>(T_max, eta_min)) {}

template <class T>
StepLR<T>::StepLR(Optimizer<T>& optimizer, std::size_t step_size, double gamma)
    : LRScheduler<T>(optimizer, step_rule<T>(step_size, gamma)) {}

template <class T>
MultiStepLR<T>::MultiStepLR(Optimizer<T>& optimizer, std::vector<std::size_t> milestones, double gamma)
    : LRScheduler<T>(optimizer, multi_step_rule<T>(std::move(milestones), gamma)) {}

template <class T>
ExponentialLR<T>::ExponentialLR(Optimizer<T>& optimizer, double gamma)
    : LRScheduler<T>(optimizer, exponential_rule<T>(gamma)) {}

template <class T>
PolynomialLR<T>::PolynomialLR(Optimizer<T>& optimizer, std::size_t total_iters, double power)
    : LRScheduler<T>(optimizer, polynomial_rule<T>(total_iters, power)) {}

template <class T>
CosineAnnealingWarmRestarts<T>::CosineAnnealingWarmRestarts(Optimizer<T>& optimizer, std::size_t T_0,
                                                            WarmRestartsOptions options)
    : LRScheduler<T>(optimizer, warm_restarts_rule<T>(T_0, options)) {}

template <class T>
OneCycleLR<T>::OneCycleLR(Optimizer<T>& optimizer, double max_lr, std::size_t total_steps,
                          OneCycleLROptions options)
    : OneCycleLR(optimizer, std::vector<double>(optimizer.group_count(), max_lr), total_steps, options) {}
template <class T>
OneCycleLR<T>::OneCycleLR(Optimizer<T>& optimizer, const std::vector<double>& max_lrs,
                          std::size_t total_steps, OneCycleLROptions options)
    : LRScheduler<T>(optimizer, one_cycle_rule<T>(optimizer, max_lrs, total_steps, options)) {}

template <class T>
LinearWarmupLR<T>::LinearWarmupLR(Optimizer<T>& optimizer, std::size_t warmup_steps, std::size_t total_steps)
    : LRScheduler<T>(optimizer, linear_warmup_rule<T>(warmup_steps, total_steps)) {}

template <class T>
InverseSquareRootLR<T>::InverseSquareRootLR(Optimizer<T>& optimizer, std::size_t d_model,
                                            std::size_t warmup_steps)
    : LRScheduler<T>(optimizer, inverse_square_root_rule<T>(d_model, warmup_steps)) {}

template <class T>
SequentialLR<T>::SequentialLR(Optimizer<T>& optimizer, const std::vector<LRScheduler<T>>& schedulers,
                              std::vector<std::size_t> milestones)
    : LRScheduler<T>(optimizer, sequential_rule<T>(optimizer, schedulers, std::move(milestones))) {}

#define XGRAD_INSTANTIATE(T)                     \
  template class LRScheduler<T>;                 \
  template class MultiStepLR<T>;                 \
  template class ExponentialLR<T>;               \
  template class PolynomialLR<T>;                \
  template class CosineAnnealingWarmRestarts<T>; \
  template class OneCycleLR<T>;                  \
  template class LambdaLR<T>;                    \
  template class ConstantLR<T>;                  \
  template class LinearLR<T>;                    \
  template class CosineAnnealingLR<T>;           \
  template class StepLR<T>;                      \
  template class LinearWarmupLR<T>;              \
  template class InverseSquareRootLR<T>;         \
  template class SequentialLR<T>;
XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
