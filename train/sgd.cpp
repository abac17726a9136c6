#include "sgd.hpp"

#include <cmath>

#include "../kernels/pointwise/optimizer.hpp"

namespace xgrad {
namespace {

const SGDOptions& checked(const SGDOptions& options) {
  detail::checked_rate("SGD", "lr", options.lr);
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

}  // namespace

template <class T>
SGD<T>::SGD(std::vector<Variable<T>> parameters, SGDOptions options)
    : SGD(std::vector<Group>{{.parameters = std::move(parameters), .options = options}}) {}

template <class T>
SGD<T>::SGD(const std::vector<Group>& groups) : Optimizer<T>("SGD") {
  for (const Group& group : groups) {
    this->add_group(group.parameters);
    options_.push_back(checked(group.options));
  }
  this->check_not_empty();
  velocities_.resize(this->parameters().size());
}

template <class T>
void SGD<T>::step() {
  this->check_gradients();
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
      kernels::sgd_step<T>({.lr = options.lr,
                            .momentum = options.momentum,
                            .dampening = options.dampening,
                            .weight_decay = options.weight_decay,
                            .nesterov = options.nesterov,
                            .first = first,
                            .maximize = options.maximize},
                           detail::data(gradient), detail::mutable_data(parameter),
                           momentum ? velocity->data() : nullptr, parameter.size());
    }
  }
}

template <class T>
void SGD<T>::list_options(StateArchive& state, const std::string& prefix, std::size_t group) {
  SGDOptions& options = options_[group];
  state.number(prefix + "lr", options.lr);
  state.number(prefix + "momentum", options.momentum);
  state.number(prefix + "dampening", options.dampening);
  state.number(prefix + "weight_decay", options.weight_decay);
  state.number(prefix + "nesterov", options.nesterov);
  state.flag(prefix + "maximize", options.maximize);
  state.check([&] { checked(options); });
}

template <class T>
void SGD<T>::list_parameter(StateArchive& state, const std::string& name, std::size_t parameter) {
  state.array(name + ".momentum_buffer", velocities_[parameter], this->parameters()[parameter].shape());
}

template class SGD<float>;
template class SGD<double>;

}  // namespace xgrad
