#include "sgd.hpp"

#include <cmath>

#include "../../kernels/pointwise/optimizer.hpp"

namespace xgrad {
namespace {

const SGDOptions& checked(const char* name, const SGDOptions& options) {
  detail::checked_rate(name, "lr", options.lr);
  detail::checked_rate(name, "momentum", options.momentum);
  detail::checked_rate(name, "weight_decay", options.weight_decay);
  if (!std::isfinite(options.dampening)) {
    detail::fail<ValueError>(name, ": dampening must be finite, got ", options.dampening);
  }
  if (options.nesterov && (options.momentum == 0 || options.dampening != 0)) {
    detail::fail<ValueError>(name, ": nesterov needs a momentum and no dampening, got ", options.momentum,
                             " and ", options.dampening);
  }
  return options;
}

}  // namespace

template <class T>
SGD<T>::SGD(std::vector<Variable<T>> parameters, SGDOptions options)
    : SGD(std::vector<Group>{{.parameters = std::move(parameters), .options = options}}) {}

template <class T>
SGD<T>::SGD(const std::vector<Group>& groups)
    : detail::OptimizerOfGroups<T, SGDOptions>("SGD", groups, checked) {
  velocities_.resize(this->parameters().size());
}

template <class T>
void SGD<T>::step() {
  detail::NewArrays<T> added;
  std::vector<bool, PoolAllocator<bool>> had_velocity(velocities_.size());
  this->visit_parameters(
      [&](std::size_t i, const Variable<T>& parameter, const Variable<T>&, const SGDOptions& options) {
        had_velocity[i] = velocities_[i].has_value();
        if (options.momentum != 0) added.make(velocities_[i], parameter.shape());
      });
  added.keep();
  this->visit_parameters([&](std::size_t i, const Variable<T>& parameter, const Variable<T>& gradient,
                             const SGDOptions& options) {
    const bool momentum = options.momentum != 0, first = !had_velocity[i];
    kernels::sgd_step<T>({.lr = options.lr,
                          .momentum = options.momentum,
                          .dampening = options.dampening,
                          .weight_decay = options.weight_decay,
                          .nesterov = options.nesterov,
                          .first = first,
                          .maximize = options.maximize},
                         detail::data(gradient), detail::mutable_data(parameter),
                         momentum ? velocities_[i]->data() : nullptr, parameter.size());
  });
}

template <class T>
void SGD<T>::keep_state(StateArchive& state) {
  state.keep(this->options_, velocities_);
}

template <class T>
void SGD<T>::list_options(StateArchive& state, const std::string& prefix, std::size_t group) {
  SGDOptions& options = this->options_[group];
  state.number(prefix + "lr", options.lr);
  state.number(prefix + "momentum", options.momentum);
  state.number(prefix + "dampening", options.dampening);
  state.number(prefix + "weight_decay", options.weight_decay);
  state.number(prefix + "nesterov", options.nesterov);
  state.flag(prefix + "maximize", options.maximize);
  state.check([&] { checked(this->name(), options); });
}

template <class T>
void SGD<T>::list_parameter(StateArchive& state, const std::string& name, std::size_t parameter) {
  state.array(name + ".momentum_buffer", velocities_[parameter], this->parameters()[parameter].shape());
}

template class SGD<float>;
template class SGD<double>;

}  // namespace xgrad
