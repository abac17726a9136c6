#include "adam.hpp"

#include <cmath>

#include <xtensor/xbuilder.hpp>

#include "../kernels/optimizer.hpp"
#include "state.hpp"

namespace xgrad {
namespace {

/// 1 - beta^step of both betas; parameters that are all in the same step share the powers.
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
  check_beta(name, options.betas.first);
  check_beta(name, options.betas.second);
  detail::checked_rate(name, "eps", options.eps);
  detail::checked_rate(name, "weight_decay", options.weight_decay);
  return options;
}

template <class T>
std::vector<ParameterGroup<T, AdamOptions>> plain(
    const std::vector<ParameterGroup<T, AdamWOptions>>& groups) {
  std::vector<ParameterGroup<T, AdamOptions>> converted;
  for (const auto& [parameters, options] : groups) {
    converted.push_back({.parameters = parameters,
                         .options = {.lr = options.lr,
                                     .betas = options.betas,
                                     .eps = options.eps,
                                     .weight_decay = options.weight_decay}});
  }
  return converted;
}

/// What is saved.
template <class Archive, class Options, class Slots>
void list(Archive& state, Options& options, Slots& slots) {
  for (std::size_t g = 0; g < options.size(); ++g) {
    const std::string prefix = "param_groups." + std::to_string(g) + ".";
    state.number(prefix + "betas.0", options[g].betas.first);
    state.number(prefix + "betas.1", options[g].betas.second);
    state.number(prefix + "eps", options[g].eps);
    state.number(prefix + "weight_decay", options[g].weight_decay);
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const std::string prefix = "state." + std::to_string(i) + ".";
    if (!state.has(prefix, slots[i].steps > 0)) continue;
    state.number(prefix + "step", slots[i].steps);
    state.array(prefix + "exp_avg", slots[i].m);
    state.array(prefix + "exp_avg_sq", slots[i].v);
  }
}

}  // namespace

namespace detail {

template <class T>
AdamSteps<T>::AdamSteps(const char* name, const std::vector<ParameterGroup<T, AdamOptions>>& groups,
                        bool decoupled)
    : Optimizer<T>(name), decoupled_(decoupled) {
  for (const auto& [parameters, options] : groups) {
    this->add_group(parameters, options.lr);
    options_.push_back(checked(name, options));
  }
  this->check_not_empty();
  slots_ = fresh_slots();
}

template <class T>
std::vector<typename AdamSteps<T>::Slot> AdamSteps<T>::fresh_slots() const {
  std::vector<Slot> slots;
  for (const Variable<T>& parameter : this->parameters()) {
    slots.push_back({.m = xt::zeros<T>(parameter.shape()), .v = xt::zeros<T>(parameter.shape())});
  }
  return slots;
}

template <class T>
void AdamSteps<T>::step() {
  for (std::size_t g = 0; g < options_.size(); ++g) {
    const AdamOptions& options = options_[g];
    const auto& group = this->groups()[g];
    BiasCorrections corrections;
    for (std::size_t i = group.first; i < group.end; ++i) {
      const Variable<T>& parameter = this->parameters()[i];
      if (!parameter.has_grad()) continue;
      const Variable<T> gradient = parameter.grad();
      Slot& slot = slots_[i];
      corrections.move_to(++slot.steps, options.betas);
      kernels::adam_step<T>({.lr = group.lr,
                             .beta1 = options.betas.first,
                             .beta2 = options.betas.second,
                             .eps = options.eps,
                             .weight_decay = options.weight_decay,
                             .decoupled = decoupled_,
                             .bias_correction1 = corrections.first,
                             .bias_correction2 = corrections.second},
                            data(gradient), mutable_data(parameter), slot.m.data(), slot.v.data(),
                            parameter.size());
    }
  }
}

template <class T>
void AdamSteps<T>::save(StateWriter<T>& state) const {
  list(state, options_, slots_);
}

template <class T>
void AdamSteps<T>::load(StateReader<T>& state) {
  std::vector<AdamOptions> options = options_;
  std::vector<Slot> slots = fresh_slots();
  list(state, options, slots);
  state.finish();
  for (const AdamOptions& loaded : options) checked(this->name(), loaded);
  options_ = std::move(options);
  slots_ = std::move(slots);
}

template class AdamSteps<float>;
template class AdamSteps<double>;

}  // namespace detail

template <class T>
Adam<T>::Adam(std::vector<Variable<T>> parameters, AdamOptions options)
    : Adam(std::vector<Group>{{.parameters = std::move(parameters), .options = options}}) {}

template <class T>
Adam<T>::Adam(const std::vector<Group>& groups) : detail::AdamSteps<T>("Adam", groups, false) {}

template <class T>
AdamW<T>::AdamW(std::vector<Variable<T>> parameters, AdamWOptions options)
    : AdamW(std::vector<Group>{{.parameters = std::move(parameters), .options = options}}) {}

template <class T>
AdamW<T>::AdamW(const std::vector<Group>& groups) : detail::AdamSteps<T>("AdamW", plain(groups), true) {}

template class Adam<float>;
template class Adam<double>;
template class AdamW<float>;
template class AdamW<double>;

}  // namespace xgrad
