#include "adagrad.hpp"

#include "../kernels/pointwise/optimizer.hpp"

namespace xgrad {
namespace {

const AdagradOptions& checked(const AdagradOptions& options) {
  detail::checked_rate("Adagrad", "lr", options.lr);
  detail::checked_rate("Adagrad", "lr_decay", options.lr_decay);
  detail::checked_rate("Adagrad", "weight_decay", options.weight_decay);
  detail::checked_rate("Adagrad", "initial_accumulator_value", options.initial_accumulator_value);
  detail::checked_rate("Adagrad", "eps", options.eps);
  return options;
}

}  // namespace

template <class T>
Adagrad<T>::Adagrad(std::vector<Variable<T>> parameters, AdagradOptions options)
    : Adagrad(std::vector<Group>{{.parameters = std::move(parameters), .options = options}}) {}

template <class T>
Adagrad<T>::Adagrad(const std::vector<Group>& groups) : Optimizer<T>("Adagrad") {
  for (const Group& group : groups) {
    this->add_group(group.parameters);
    options_.push_back(checked(group.options));
  }
  this->check_not_empty();
  squares_.resize(this->parameters().size());
}

template <class T>
void Adagrad<T>::step() {
  this->check_gradients();
  for (std::size_t g = 0; g < options_.size(); ++g) {
    const AdagradOptions& options = options_[g];
    const auto& group = this->groups()[g];
    for (std::size_t i = group.first; i < group.end; ++i) {
      const Variable<T>& parameter = this->parameters()[i];
      if (!parameter.has_grad()) continue;
      const Variable<T> gradient = parameter.grad();
      Squares& squares = squares_[i];
      if (!squares.sum)
        squares.sum = Array<T>(parameter.shape(), static_cast<T>(options.initial_accumulator_value));
      const auto before = static_cast<double>(squares.steps++);
      kernels::adagrad_step<T>({.lr = options.lr / (1 + before * options.lr_decay),
                                .eps = options.eps,
                                .weight_decay = options.weight_decay,
                                .maximize = options.maximize},
                               detail::data(gradient), detail::mutable_data(parameter), squares.sum->data(),
                               parameter.size());
    }
  }
}

template <class T>
void Adagrad<T>::list_options(StateArchive& state, const std::string& prefix, std::size_t group) {
  AdagradOptions& options = options_[group];
  state.number(prefix + "lr", options.lr);
  state.number(prefix + "lr_decay", options.lr_decay);
  state.number(prefix + "weight_decay", options.weight_decay);
  state.number(prefix + "initial_accumulator_value", options.initial_accumulator_value);
  state.number(prefix + "eps", options.eps);
  state.flag(prefix + "maximize", options.maximize);
  state.check([&] { checked(options); });
}

template <class T>
void Adagrad<T>::list_parameter(StateArchive& state, const std::string& name, std::size_t parameter) {
  Squares& squares = squares_[parameter];
  if (state.loading()) squares = {};
  if (!state.has(name, squares.steps > 0)) return;
  if (!squares.sum) squares.sum = xt::zeros<T>(this->parameters()[parameter].shape());
  state.number(name + ".step", squares.steps);
  state.array(name + ".sum", *squares.sum);
}

template class Adagrad<float>;
template class Adagrad<double>;

}  // namespace xgrad
