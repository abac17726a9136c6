#include "optimizer.hpp"

#include <algorithm>
#include <cmath>

#include "state.hpp"

namespace xgrad {
namespace {

/// What is saved of groups, whatever the optimizer.
template <class Archive, class Groups>
void list_groups(Archive& state, Groups& groups) {
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::string prefix = "param_groups." + std::to_string(g) + ".";
    auto& group = groups[g];
    state.number(prefix + "lr", group.lr);
    state.number(prefix + "initial_lr", group.initial_lr);
    for (std::size_t i = group.first; i < group.end; ++i) {
      state.constant(prefix + "params." + std::to_string(i - group.first), i);
    }
  }
}

}  // namespace

template <class T>
void Optimizer<T>::add_group(const std::vector<Variable<T>>& parameters, double lr) {
  detail::checked_rate(name_, "lr", lr);
  const std::size_t first = parameters_.size();
  for (const Variable<T>& parameter : parameters) {
    const std::size_t position = parameters_.size();
    if (!parameter.is_leaf() || !parameter.requires_grad()) {
      detail::fail<ValueError>(name_, ": every parameter must be a leaf that requires a gradient, parameter ",
                               position, " is not");
    }
    const auto is_it = [&](const Variable<T>& other) {
      return detail::Access<T>::node(other).get() == detail::Access<T>::node(parameter).get();
    };
    const auto same = std::find_if(parameters_.begin(), parameters_.end(), is_it);
    if (same != parameters_.end()) {
      detail::fail<ValueError>(name_, ": every parameter must be given once, parameter ", position,
                               " is parameter ", static_cast<std::size_t>(same - parameters_.begin()));
    }
    parameters_.push_back(parameter);
  }
  groups_.push_back({.first = first, .end = parameters_.size(), .lr = lr, .initial_lr = {}});
}

template <class T>
void Optimizer<T>::check_not_empty() const {
  if (parameters_.empty()) detail::fail<ValueError>(name_, ": there must be parameters, got none");
}

template <class T>
void Optimizer<T>::zero_grad() const {
  for (const Variable<T>& parameter : parameters_) parameter.zero_grad();
}

template <class T>
void Optimizer<T>::set_lr(double lr) {
  detail::checked_rate(name_, "lr", lr);
  for (Group& group : groups_) group.lr = lr;
}

template <class T>
void Optimizer<T>::set_lr(std::size_t group, double lr) {
  groups_[checked(group)].lr = detail::checked_rate(name_, "lr", lr);
}

template <class T>
OptimizerState<T> Optimizer<T>::state_dict() const {
  detail::StateWriter<T> state;
  list_groups(state, groups_);
  save(state);
  return state.finish();
}

template <class T>
void Optimizer<T>::load_state_dict(const OptimizerState<T>& state) {
  detail::StateReader<T> reader(state);
  std::vector<Group> groups = groups_;
  list_groups(reader, groups);
  for (const Group& group : groups) {
    detail::checked_rate(name_, "lr", group.lr);
    detail::checked_rate(name_, "initial_lr", group.initial_lr.value_or(0));
  }
  load(reader);
  groups_ = std::move(groups);
}

template <class T>
std::size_t Optimizer<T>::checked(std::size_t group) const {
  if (group >= groups_.size()) {
    detail::fail<IndexError>(name_, ": the group must be below ", groups_.size(), ", got ", group);
  }
  return group;
}

namespace detail {

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
