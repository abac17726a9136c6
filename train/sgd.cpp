#include "sgd.hpp"

#include <cmath>

#include <xtensor/xbuilder.hpp>

#include "../kernels/optimizer.hpp"
#include "state.hpp"

namespace xgrad {
namespace {

const SGDOptions& checked(const SGDOptions& options) {
  detail::checked_rate("SGD", "momentum", options.momentum);
  detail::checked_rate("SGD", "weight_decay", options.weight_decay);
  if (!std::isfinite(options.dampening)) {
    detail::fail<ValueError>("SGD: dampening must be finite, got ", options.dampening);
  }
  if (options.nesterov && (options.momentum == 0 || options.dampening != 0)) {
    detail::fail<ValueError>("SGD: nesterov needs a momentum and no dampening, got ", options.momentum,
                             " and ", options.dampening);
  }
  return options;
}

/// What is saved.
template <class Archive, class Parameters, class Options, class Velocities>
void list(Archive& state, const Parameters& parameters, Options& options, Velocities& velocities) {
  for (std::size_t g = 0; g < options.size(); ++g) {
    const std::string prefix = "param_groups." + std::to_string(g) + ".";
    state.number(prefix + "momentum", options[g].momentum);
    state.number(prefix + "dampening", options[g].dampening);
    state.number(prefix + "weight_decay", options[g].weight_decay);
    state.number(prefix + "nesterov", options[g].nesterov);
  }
  for (std::size_t i = 0; i < velocities.size(); ++i) {
    state.array("state." + std::to_string(i) + ".momentum_buffer", velocities[i], parameters[i].shape());
  }
}

}  // namespace

template <class T>
SGD<T>::SGD(std::vector<Variable<T>> parameters, SGDOptions options)
    : SGD(std::vector<Group>{{.parameters = std::move(parameters), .options = options}}) {}

template <class T>
SGD<T>::SGD(const std::vector<Group>& groups) : Optimizer<T>("SGD") {
  for (const Group& group : groups) {
    this->add_group(group.parameters, group.options.lr);
    options_.push_back(checked(group.options));
  }
  this->check_not_empty();
  velocities_.resize(this->parameters().size());
}

template <class T>
void SGD<T>::step() {
  for (std::size_t g = 0; g < options_.size(); ++g) {
    const SGDOptions& options = options_[g];
    const auto& group = this->groups()[g];
    for (std::size_t i = group.first; i < group.end; ++i) {
      const Variable<T>& parameter = this->parameters()[i];
      if (!parameter.has_grad()) continue;
      const Variable<T> gradient = parameter.grad();
      std::optional<Array<T>>& velocity = velocities_[i];
      const bool momentum = options.momentum != 0, first = !velocity;
      if (momentum && first) velocity = xt::zeros<T>(parameter.shape());
      kernels::sgd_step<T>({.lr = group.lr,
                            .momentum = options.momentum,
                            .dampening = options.dampening,
                            .weight_decay = options.weight_decay,
                            .nesterov = options.nesterov,
                            .first = first},
                           detail::data(gradient), detail::mutable_data(parameter),
                           momentum ? velocity->data() : nullptr, parameter.size());
    }
  }
}

template <class T>
void SGD<T>::save(detail::StateWriter<T>& state) const {
  list(state, this->parameters(), options_, velocities_);
}

template <class T>
void SGD<T>::load(detail::StateReader<T>& state) {
  std::vector<SGDOptions> options = options_;
  std::vector<std::optional<Array<T>>> velocities(velocities_.size());
  list(state, this->parameters(), options, velocities);
  state.finish();
  for (const SGDOptions& loaded : options) checked(loaded);
  options_ = std::move(options);
  velocities_ = std::move(velocities);
}

template class SGD<float>;
template class SGD<double>;

}  // namespace xgrad
