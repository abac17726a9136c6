#include "rmsprop.hpp"

#include "../../kernels/pointwise/optimizer.hpp"

namespace xgrad {
namespace {

const RMSpropOptions& checked(const char* name, const RMSpropOptions& options) {
  detail::checked_rate(name, "lr", options.lr);
  detail::checked_rate(name, "alpha", options.alpha);
  detail::checked_rate(name, "eps", options.eps);
  detail::checked_rate(name, "weight_decay", options.weight_decay);
  detail::checked_rate(name, "momentum", options.momentum);
  return options;
}

}  // namespace

template <class T>
RMSprop<T>::RMSprop(std::vector<Variable<T>> parameters, RMSpropOptions options)
    : RMSprop(std::vector<Group>{{.parameters = std::move(parameters), .options = options}}) {}

template <class T>
RMSprop<T>::RMSprop(const std::vector<Group>& groups)
    : detail::OptimizerOfGroups<T, RMSpropOptions>("RMSprop", groups, checked) {
  averages_.resize(this->parameters().size());
}

template <class T>
void RMSprop<T>::step() {
  detail::NewArrays<T> added;
  this->visit_parameters(
      [&](std::size_t i, const Variable<T>& parameter, const Variable<T>&, const RMSpropOptions& options) {
        Averages& averages = averages_[i];
        added.make(averages.square, parameter.shape());
        if (options.centered) added.make(averages.mean, parameter.shape());
        if (options.momentum > 0) added.make(averages.velocity, parameter.shape());
      });
  added.keep();
  this->visit_parameters([this](std::size_t i, const Variable<T>& parameter, const Variable<T>& gradient,
                                const RMSpropOptions& options) {
    Averages& averages = averages_[i];
    ++averages.steps;
    kernels::rmsprop_step<T>({.lr = options.lr,
                              .alpha = options.alpha,
                              .eps = options.eps,
                              .weight_decay = options.weight_decay,
                              .momentum = options.momentum,
                              .maximize = options.maximize},
                             detail::data(gradient), detail::mutable_data(parameter), averages.square->data(),
                             options.centered ? averages.mean->data() : nullptr,
                             options.momentum > 0 ? averages.velocity->data() : nullptr, parameter.size());
  });
}

template <class T>
void RMSprop<T>::keep_state(StateArchive& state) {
  state.keep(this->options_, averages_);
}

template <class T>
void RMSprop<T>::list_options(StateArchive& state, const std::string& prefix, std::size_t group) {
  RMSpropOptions& options = this->options_[group];
  state.number(prefix + "lr", options.lr);
  state.number(prefix + "alpha", options.alpha);
  state.number(prefix + "eps", options.eps);
  state.number(prefix + "weight_decay", options.weight_decay);
  state.number(prefix + "momentum", options.momentum);
  state.number(prefix + "centered", options.centered);
  state.flag(prefix + "maximize", options.maximize);
  state.check([&] { checked(this->name(), options); });
}

template <class T>
void RMSprop<T>::list_parameter(StateArchive& state, const std::string& name, std::size_t parameter) {
  Averages& averages = averages_[parameter];
  if (state.loading()) averages = {};
  if (!state.has(name, averages.steps > 0)) return;
  const Shape& shape = this->parameters()[parameter].shape();
  state.number(name + ".step", averages.steps);
  if (!averages.square) averages.square = xt::zeros<T>(shape);
  state.array(name + ".square_avg", *averages.square);
  state.array(name + ".grad_avg", averages.mean, shape);
  state.array(name + ".momentum_buffer", averages.velocity, shape);
}

template class RMSprop<float>;
template class RMSprop<double>;

}  // namespace xgrad
