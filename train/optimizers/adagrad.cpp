#include "adagrad.hpp"

#include "../../kernels/pointwise/optimizer.hpp"

namespace xgrad {
namespace {

const AdagradOptions& checked(const char* name, const AdagradOptions& options) {
  detail::checked_rate(name, "lr", options.lr);
  detail::checked_rate(name, "lr_decay", options.lr_decay);
  detail::checked_rate(name, "weight_decay", options.weight_decay);
  detail::checked_rate(name, "initial_accumulator_value", options.initial_accumulator_value);
  detail::checked_rate(name, "eps", options.eps);
  return options;
}

}  // namespace

template <class T>
Adagrad<T>::Adagrad(std::vector<Variable<T>> parameters, AdagradOptions options)
    : Adagrad(std::vector<Group>{{.parameters = std::move(parameters), .options = options}}) {}

template <class T>
Adagrad<T>::Adagrad(const std::vector<Group>& groups)
    : detail::OptimizerOfGroups<T, AdagradOptions>("Adagrad", groups, checked) {
  squares_.resize(this->parameters().size());
}

template <class T>
void Adagrad<T>::step() {
  detail::NewArrays<T> added;
  this->visit_parameters(
      [&](std::size_t i, const Variable<T>& parameter, const Variable<T>&, const AdagradOptions& options) {
        added.make(squares_[i].sum, parameter.shape(), static_cast<T>(options.initial_accumulator_value));
      });
  added.keep();
  this->visit_parameters([this](std::size_t i, const Variable<T>& parameter, const Variable<T>& gradient,
                                const AdagradOptions& options) {
    Squares& squares = squares_[i];
    const auto before = static_cast<double>(squares.steps++);
    kernels::adagrad_step<T>({.lr = options.lr / (1 + before * options.lr_decay),
                              .eps = options.eps,
                              .weight_decay = options.weight_decay,
                              .maximize = options.maximize},
                             detail::data(gradient), detail::mutable_data(parameter), squares.sum->data(),
                             parameter.size());
  });
}

template <class T>
void Adagrad<T>::keep_state(StateArchive& state) {
  state.keep(this->options_, squares_);
}

template <class T>
void Adagrad<T>::list_options(StateArchive& state, const std::string& prefix, std::size_t group) {
  AdagradOptions& options = this->options_[group];
  state.number(prefix + "lr", options.lr);
  state.number(prefix + "lr_decay", options.lr_decay);
  state.number(prefix + "weight_decay", options.weight_decay);
  state.number(prefix + "initial_accumulator_value", options.initial_accumulator_value);
  state.number(prefix + "eps", options.eps);
  state.flag(prefix + "maximize", options.maximize);
  state.check([&] { checked(this->name(), options); });
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
