#include "adam.hpp"

#include <cmath>

#include "../../graph/detail/leaf.hpp"
#include "../../kernels/pointwise/optimizer.hpp"

namespace xgrad {
namespace {

using detail::AdamKind, detail::AdamSettings;

const char* name_of_kind(AdamKind kind) {
  constexpr const char* names[] = {"Adam", "AdamW", "NAdam", "RAdam"};
  return names[static_cast<std::size_t>(kind)];
}

void check_beta(const char* name, double beta) {
  if (!(beta >= 0 && beta < 1)) detail::fail<ValueError>(name, ": betas must be in [0, 1), got ", beta);
}

const AdamSettings& checked(const char* name, const AdamSettings& settings) {
  detail::checked_rate(name, "lr", settings.lr);
  check_beta(name, settings.beta1);
  check_beta(name, settings.beta2);
  detail::checked_rate(name, "eps", settings.eps);
  detail::checked_rate(name, "weight_decay", settings.weight_decay);
  detail::checked_rate(name, "momentum_decay", settings.momentum_decay);
  return settings;
}

template <class Options>
AdamSettings settings_of(const Options& options) {
  AdamSettings settings{.lr = options.lr,
                        .beta1 = options.betas.first,
                        .beta2 = options.betas.second,
                        .eps = options.eps,
                        .weight_decay = options.weight_decay,
                        .momentum_decay = 0,
                        .decoupled = std::is_same_v<Options, AdamWOptions>,
                        .amsgrad = false,
                        .maximize = options.maximize};
  if constexpr (requires { options.amsgrad; }) settings.amsgrad = options.amsgrad;
  if constexpr (requires { options.momentum_decay; }) settings.momentum_decay = options.momentum_decay;
  if constexpr (requires { options.decoupled_weight_decay; })
    settings.decoupled = options.decoupled_weight_decay;
  return settings;
}

template <class T, class Options>
std::vector<ParameterGroup<T, AdamSettings>> with_settings(
    const std::vector<ParameterGroup<T, Options>>& groups) {
  std::vector<ParameterGroup<T, AdamSettings>> converted;
  converted.reserve(groups.size());
  for (const auto& [parameters, options] : groups)
    converted.push_back({.parameters = parameters, .options = settings_of(options)});
  return converted;
}

/// By what RAdam multiplies a step, or 0 while the variance of v is too large.
double rectification(double beta2, double power2, double step) {
  const double longest = 2 / (1 - beta2) - 1, length = longest - 2 * step * power2 / (1 - power2);
  if (!(length > 5)) return 0;
  return std::sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length));
}

}  // namespace

namespace detail {

template <class T>
AdamBase<T>::AdamBase(AdamKind kind, const std::vector<ParameterGroup<T, AdamSettings>>& groups)
    : OptimizerOfGroups<T, AdamSettings>(name_of_kind(kind), groups, checked), kind_(kind) {
  for (std::size_t i = 0; i < this->parameters().size(); ++i) moments_.push_back(zero_moments(i));
}

template <class T>
typename AdamBase<T>::Moments AdamBase<T>::zero_moments(std::size_t parameter) const {
  const Shape& shape = this->parameters()[parameter].shape();
  return {.m = xt::zeros<T>(shape), .v = xt::zeros<T>(shape)};
}

template <class T>
kernels::AdamStep AdamBase<T>::step_of(const AdamSettings& settings, Moments& moments) const {
  using kernels::AdamUpdate;
  const auto step = static_cast<double>(moments.steps);
  const double power2 = std::pow(settings.beta2, step);
  const double correction1 = 1 - std::pow(settings.beta1, step), correction2 = 1 - power2;
  kernels::AdamStep made{.beta1 = settings.beta1,
                         .beta2 = settings.beta2,
                         .shrink = settings.decoupled ? 1 - settings.lr * settings.weight_decay : 1,
                         .decay = settings.decoupled ? 0 : settings.weight_decay,
                         .rate = settings.lr / correction1,
                         .gradient_rate = 0,
                         .correction = std::sqrt(correction2),
                         .eps = settings.eps,
                         .maximize = settings.maximize,
                         .update = settings.amsgrad ? AdamUpdate::largest : AdamUpdate::plain};
  if (kind_ == AdamKind::nadam) {
    const auto mu_at = [&](double t) {
      return settings.beta1 * (1 - 0.5 * std::pow(0.96, t * settings.momentum_decay));
    };
    const double mu = mu_at(step), next = mu_at(step + 1);
    moments.mu_product = static_cast<float>(moments.mu_product) * static_cast<float>(mu);
    made.rate = settings.lr * next / (1 - moments.mu_product * next);
    made.gradient_rate = settings.lr * (1 - mu) / (1 - moments.mu_product);
    made.update = AdamUpdate::with_gradient;
  } else if (kind_ == AdamKind::radam) {
    const double factor = rectification(settings.beta2, power2, step);
    if (factor == 0) {
      made.update = AdamUpdate::average;
    } else {
      made.rate *= std::sqrt(correction2) * factor;
      made.correction = 1;
    }
  }
  return made;
}

template <class T>
void AdamBase<T>::step() {
  std::vector<kernels::AdamArrays<T>, PoolAllocator<kernels::AdamArrays<T>>> all;
  all.reserve(this->parameters().size());
  NewArrays<T> added;
  this->visit_parameters(
      [&](std::size_t i, const Variable<T>& parameter, const Variable<T>&, const AdamSettings& settings) {
        if (settings.amsgrad) added.make(moments_[i].largest, parameter.shape());
      });
  added.keep();
  for (std::size_t g = 0; g < this->options_.size(); ++g) {
    const AdamSettings& settings = this->options_[g];
    const auto& group = this->groups()[g];
    kernels::AdamStep made{};
    std::size_t made_for = 0;  // the number of steps
    for (std::size_t i = group.first; i < group.end; ++i) {
      const Variable<T>& parameter = this->parameters()[i];
      const Variable<T>& gradient = grad_of_leaf(parameter);
      if (!gradient.defined()) continue;
      Moments& moments = moments_[i];
      if (++moments.steps != made_for || kind_ == AdamKind::nadam) made = step_of(settings, moments);
      made_for = moments.steps;
      all.push_back({.step = made,
                     .g = data(gradient),
                     .p = mutable_data(parameter),
                     .m = moments.m.data(),
                     .v = moments.v.data(),
                     .largest = settings.amsgrad ? moments.largest->data() : nullptr,
                     .n = parameter.size()});
    }
  }
  kernels::adam_step<T>(all);
}

template <class T>
void AdamBase<T>::keep_state(StateArchive& state) {
  state.keep(this->options_, moments_);
}

template <class T>
void AdamBase<T>::list_options(StateArchive& state, const std::string& prefix, std::size_t group) {
  AdamSettings& settings = this->options_[group];
  state.number(prefix + "lr", settings.lr);
  state.number(prefix + "betas.0", settings.beta1);
  state.number(prefix + "betas.1", settings.beta2);
  state.number(prefix + "eps", settings.eps);
  state.number(prefix + "weight_decay", settings.weight_decay);
  state.flag(prefix + "maximize", settings.maximize);
  if (kind_ == AdamKind::adam || kind_ == AdamKind::adamw) {
    state.flag(prefix + "amsgrad", settings.amsgrad);
  } else {
    state.number(prefix + "decoupled_weight_decay", settings.decoupled);
  }
  if (kind_ == AdamKind::nadam) state.number(prefix + "momentum_decay", settings.momentum_decay);
  state.check([&] { checked(this->name(), settings); });
}

template <class T>
void AdamBase<T>::list_parameter(StateArchive& state, const std::string& name, std::size_t parameter) {
  Moments& moments = moments_[parameter];
  if (state.loading()) moments = zero_moments(parameter);
  if (!state.has(name, moments.steps > 0)) return;
  state.number(name + ".step", moments.steps);
  state.array(name + ".exp_avg", moments.m);
  state.array(name + ".exp_avg_sq", moments.v);
  state.array(name + ".max_exp_avg_sq", moments.largest, this->parameters()[parameter].shape());
  if (kind_ != AdamKind::nadam) return;
  state.number(name + ".mu_product", moments.mu_product);
  state.check([&] {
    if (!(moments.mu_product >= 0 && moments.mu_product <= 1))
      fail<ValueError>("NAdam: mu_product must be in [0, 1], got ", moments.mu_product);
  });
}

template class AdamBase<float>;
template class AdamBase<double>;

}  // namespace detail

#define XGRAD_OPTIMIZER(Name, kind)                                                            \
  template <class T>                                                                           \
  Name<T>::Name(std::vector<Variable<T>> parameters, Name##Options options)                    \
      : Name(std::vector<Group>{{.parameters = std::move(parameters), .options = options}}) {} \
  template <class T>                                                                           \
  Name<T>::Name(const std::vector<Group>& groups)                                              \
      : detail::AdamBase<T>(AdamKind::kind, with_settings(groups)) {}                          \
  template class Name<float>;                                                                  \
  template class Name<double>;

XGRAD_OPTIMIZER(Adam, adam)
XGRAD_OPTIMIZER(AdamW, adamw)
XGRAD_OPTIMIZER(NAdam, nadam)
XGRAD_OPTIMIZER(RAdam, radam)

}  // namespace xgrad
