#include "adam.hpp"

#include <cmath>

#include "../graph/detail/leaf.hpp"
#include "../kernels/pointwise/optimizer.hpp"

namespace xgrad {
namespace {

/// 1 - beta^step of both betas, computed again only when the step differs from the last parameter's.
struct BiasCorrections {
  std::size_t step = 0;
  double first = 0, second = 0;

  void move_to(std::size_t wanted, const std::pair<double, double>& betas) {
    if (wanted == step) return;
    step = wanted;
    first = 1 - std::pow(betas.first, static_cast<double>(step));
    second = 1 - std::pow(betas.second, static_cast<double>(step));
  }
};

void check_beta(const char* name, double beta) {
  if (!(beta >= 0 && beta < 1)) detail::fail<ValueError>(name, ": betas must be in [0, 1), got ", beta);
}

const AdamOptions& checked(const char* name, const AdamOptions& options) {
  detail::checked_rate(name, "lr", options.lr);
  check_beta(name, options.betas.first);
  check_beta(name, options.betas.second);
  detail::checked_rate(name, "eps", options.eps);
  detail::checked_rate(name, "weight_decay", options.weight_decay);
  return options;
}

template <class T>
std::vector<ParameterGroup<T, AdamOptions>> with_adam_options(
    const std::vector<ParameterGroup<T, AdamWOptions>>& groups) {
  std::vector<ParameterGroup<T, AdamOptions>> converted;
  converted.reserve(groups.size());
  for (const auto& [parameters, options] : groups) {
    converted.push_back({.parameters = parameters,
                         .options = {.lr = options.lr,
                                     .betas = options.betas,
                                     .eps = options.eps,
                                     .weight_decay = options.weight_decay}});
  }
  return converted;
}

}  // namespace

namespace detail {

template <class T>
AdamBase<T>::AdamBase(const char* name, const std::vector<ParameterGroup<T, AdamOptions>>& groups,
                      bool decoupled)
    : Optimizer<T>(name), decoupled_(decoupled) {
  for (const auto& [parameters, options] : groups) {
    this->add_group(parameters);
    options_.push_back(checked(name, options));
  }
  this->check_not_empty();
  for (std::size_t i = 0; i < this->parameters().size(); ++i) moments_.push_back(zero_moments(i));
}

template <class T>
typename AdamBase<T>::Moments AdamBase<T>::zero_moments(std::size_t parameter) const {
  const Shape& shape = this->parameters()[parameter].shape();
  return {.m = xt::zeros<T>(shape), .v = xt::zeros<T>(shape)};
}

template <class T>
void AdamBase<T>::step() {
  this->check_gradients();
  std::vector<kernels::AdamArrays<T>, PoolAllocator<kernels::AdamArrays<T>>> all;
  all.reserve(this->parameters().size());
  for (std::size_t g = 0; g < options_.size(); ++g) {
    const AdamOptions& options = options_[g];
    const auto& group = this->groups()[g];
    BiasCorrections corrections;
    for (std::size_t i = group.first; i < group.end; ++i) {
      const Variable<T>& parameter = this->parameters()[i];
      const Variable<T>& gradient = grad_of_leaf(parameter);
      if (!gradient.defined()) continue;
      Moments& moments = moments_[i];
      corrections.move_to(++moments.steps, options.betas);
      all.push_back({.step = {.lr = options.lr,
                              .beta1 = options.betas.first,
                              .beta2 = options.betas.second,
                              .eps = options.eps,
                              .weight_decay = options.weight_decay,
                              .decoupled = decoupled_,
                              .bias_correction1 = corrections.first,
                              .bias_correction2 = corrections.second},
                     .g = data(gradient),
                     .p = mutable_data(parameter),
                     .m = moments.m.data(),
                     .v = moments.v.data(),
                     .n = parameter.size()});
    }
  }
  kernels::adam_step<T>(all);
}

template <class T>
void AdamBase<T>::list_options(StateArchive& state, const std::string& prefix, std::size_t group) {
  AdamOptions& options = options_[group];
  state.number(prefix + "lr", options.lr);
  state.number(prefix + "betas.0", options.betas.first);
  state.number(prefix + "betas.1", options.betas.second);
  state.number(prefix + "eps", options.eps);
  state.number(prefix + "weight_decay", options.weight_decay);
  state.check([&] { checked(this->name(), options); });
}

template <class T>
void AdamBase<T>::list_parameter(StateArchive& state, const std::string& name, std::size_t parameter) {
  Moments& moments = moments_[parameter];
  if (state.loading()) moments = zero_moments(parameter);
  if (!state.has(name, moments.steps > 0)) return;
  state.number(name + ".step", moments.steps);
  state.array(name + ".exp_avg", moments.m);
  state.array(name + ".exp_avg_sq", moments.v);
}

template class AdamBase<float>;
template class AdamBase<double>;

}  // namespace detail

template <class T>
Adam<T>::Adam(std::vector<Variable<T>> parameters, AdamOptions options)
    : Adam(std::vector<Group>{{.parameters = std::move(parameters), .options = options}}) {}

template <class T>
Adam<T>::Adam(const std::vector<Group>& groups) : detail::AdamBase<T>("Adam", groups, false) {}

template <class T>
AdamW<T>::AdamW(std::vector<Variable<T>> parameters, AdamWOptions options)
    : AdamW(std::vector<Group>{{.parameters = std::move(parameters), .options = options}}) {}

template <class T>
AdamW<T>::AdamW(const std::vector<Group>& groups)
    : detail::AdamBase<T>("AdamW", with_adam_options(groups), true) {}

template class Adam<float>;
template class Adam<double>;
template class AdamW<float>;
template class AdamW<double>;

}  // namespace xgrad
