#include "rmsprop.hpp"

#include "../kernels/pointwise/optimizer.hpp"

namespace xgrad {
namespace {

const RMSpropOptions& checked(const RMSpropOptions& options) {
  detail::checked_rate("RMSprop", "lr", options.lr);
  detail::checked_rate("RMSprop", "alpha", options.alpha);
  detail::checked_rate("RMSprop", "eps", options.eps);
  detail::checked_rate("RMSprop", "weight_decay", options.weight_decay);
  detail::checked_rate("RMSprop", "momentum", options.momentum);
  return options;
}

}  // namespace

template <class T>
RMSprop<T>::RMSprop(std::vector<Variable<T>> parameters, RMSpropOptions options)
    : RMSprop(std::vector<Group>{{.parameters = std::move(parameters), .options = options}}) {}

template <class T>
RMSprop<T>::RMSprop(const std::vector<Group>& groups) : Optimizer<T>("RMSprop") {
  for (const Group& group : groups) {
    this->add_group(group.parameters);
    options_.push_back(checked(group.options));
  }
  this->check_not_empty();
  averages_.resize(this->parameters().size());
}

template <class T>
void RMSprop<T>::step() {
  this->check_gradients();
  for (std::size_t g = 0; g < options_.size(); ++g) {
    const RMSpropOptions& options = options_[g];
    const auto& group = this->groups()[g];
    for (std::size_t i = group.first; i < group.end; ++i) {
      const Variable<T>& parameter = this->parameters()[i];
      if (!parameter.has_grad()) continue;
      const Variable<T> gradient = parameter.grad();
      Averages& averages = averages_[i];
      const auto elements = [&](std::optional<Array<T>>& array) {
        if (!array) array = xt::zeros<T>(parameter.shape());
        return array->data();
      };
      ++averages.steps;
      kernels::rmsprop_step<T>(
          {.lr = options.lr,
           .alpha = options.alpha,
           .eps = options.eps,
           .weight_decay = options.weight_decay,
           .momentum = options.momentum,
           .maximize = options.maximize},
          detail::data(gradient), detail::mutable_data(parameter), elements(averages.square),
          options.centered ? elements(averages.mean) : nullptr,
          options.momentum > 0 ? elements(averages.velocity) : nullptr, parameter.size());
    }
  }
}

template <class T>
void RMSprop<T>::list_options(StateArchive& state, const std::string& prefix, std::size_t group) {
  RMSpropOptions& options = options_[group];
  state.number(prefix + "lr", options.lr);
  state.number(prefix + "alpha", options.alpha);
  state.number(prefix + "eps", options.eps);
  state.number(prefix + "weight_decay", options.weight_decay);
  state.number(prefix + "momentum", options.momentum);
  state.number(prefix + "centered", options.centered);
  state.flag(prefix + "maximize", options.maximize);
  state.check([&] { checked(options); });
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
