#include "optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace xgrad {

template <class T>
void Optimizer<T>::add_group(const std::vector<Variable<T>>& parameters) {
  const std::size_t first = parameters_.size();
  parameters_.insert(parameters_.end(), parameters.begin(), parameters.end());
  detail::check_parameters(name_, parameters_);
  groups_.push_back({.first = first, .end = parameters_.size(), .initial_lr = {}});
}

template <class T>
void Optimizer<T>::check_not_empty() const {
  if (parameters_.empty()) detail::fail<ValueError>(name_, ": there must be parameters, got none");
}

template <class T>
bool Optimizer<T>::has_gradients() const {
  return std::any_of(parameters_.begin(), parameters_.end(), [](const auto& one) { return one.has_grad(); });
}

template <class T>
void Optimizer<T>::check_gradients() const {
  if (has_gradients()) return;
  detail::fail<GraphError>(name_, ": step needs a gradient, got none for the ", parameters_.size(),
                           " parameters; call backward() first, on a loss that depends on them");
}

template <class T>
void Optimizer<T>::zero_grad() const {
  for (const Variable<T>& parameter : parameters_) parameter.zero_grad();
}

template <class T>
void Optimizer<T>::set_lr(double lr) {
  detail::checked_rate(name_, "lr", lr);
  for (std::size_t group = 0; group < groups_.size(); ++group) set_group_lr(group, lr);
}

template <class T>
void Optimizer<T>::set_lr(std::size_t group, double lr) {
  set_group_lr(checked(group), detail::checked_rate(name_, "lr", lr));
}

template <class T>
void Optimizer<T>::list_state(StateArchive& state) {
  state.keep(groups_);
  keep_state(state);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const std::string prefix = "param_groups." + std::to_string(g) + ".";
    Group& group = groups_[g];
    list_options(state, prefix, g);
    const bool scheduled = group.initial_lr.has_value();
    state.number(prefix + "initial_lr", group.initial_lr);
    // A state that was saved without a scheduler has no base rates: they are its rates.
    if (scheduled && !group.initial_lr) group.initial_lr = group_lr(g);
    state.check([&] { detail::checked_rate(name_, "initial_lr", group.initial_lr.value_or(0)); });
    for (std::size_t i = group.first; i < group.end; ++i) {
      state.constant(prefix + "params." + std::to_string(i - group.first), i);
    }
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    list_parameter(state, "state." + std::to_string(i), i);
  }
}

template <class T>
std::size_t Optimizer<T>::checked(std::size_t group) const {
  if (group >= groups_.size()) {
    detail::fail<IndexError>(name_, ": the group must be below ", groups_.size(), ", got ", group);
  }
  return group;
}

namespace detail {

template <class T>
void check_parameters(const char* object, const std::vector<Variable<T>>& parameters) {
  std::unordered_map<const Node<T>*, std::size_t> positions;
  for (std::size_t position = 0; position < parameters.size(); ++position) {
    const Variable<T>& parameter = parameters[position];
    if (!parameter.is_leaf() || !Access<T>::node(parameter)) {
      fail<ValueError>(object, ": every parameter must be a leaf that requires a gradient, parameter ",
                       position, " is not");
    }
    const auto [same, is_new] = positions.emplace(Access<T>::node(parameter).get(), position);
    if (!is_new) {
      fail<ValueError>(object, ": every parameter must be given once, parameter ", position, " is parameter ",
                       same->second);
    }
  }
}

template void check_parameters(const char*, const std::vector<Variable<float>>&);
template void check_parameters(const char*, const std::vector<Variable<double>>&);

double checked_rate(const char* object, const char* name, double number) {
  if (!(number >= 0) || std::isinf(number)) {
    fail<ValueError>(object, ": ", name, " must be finite and at least 0, got ", number);
  }
  return number;
}

}  // namespace detail

template class Optimizer<float>;
template class Optimizer<double>;

}  // namespace xgrad
