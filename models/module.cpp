#include "module.hpp"

#include <unordered_set>

#include "../base/detail/text/json_text.hpp"
#include "detail/for_each_module.hpp"

namespace xgrad {
namespace {

template <class T>
using State = detail::ModuleState<T>;

/// A list of ModuleState's, weights or buffers, under all their names.
template <class T, class Named>
void add_named(const State<T>& state, std::vector<Named> State<T>::*list, const std::string& prefix,
               std::vector<NamedWeight<T>>& found) {
  for (const auto& [name, one] : state.*list) found.emplace_back(prefix + name, one);
  for (const auto& [name, child] : state.children) add_named(*child, list, prefix + name + ".", found);
}

/// Weights, then buffers.
template <class T>
std::vector<NamedWeight<T>> all_saved(const State<T>& state) {
  std::vector<NamedWeight<T>> found;
  add_named(state, &State<T>::weights, "", found);
  add_named(state, &State<T>::buffers, "", found);
  return found;
}

/// Each once, under the first of its names.
template <class T, class Named>
std::vector<NamedWeight<T>> unique(const State<T>& state, std::vector<Named> State<T>::*list) {
  std::vector<NamedWeight<T>> all;
  add_named(state, list, "", all);
  std::unordered_set<const void*> seen;
  std::erase_if(all, [&](const NamedWeight<T>& one) {
    return !seen.insert(detail::WeightAccess<T>::identity(one.second)).second;
  });
  return all;
}

/// Those that are Variables.
template <class T>
std::vector<NamedParameter<T>> variables(const std::vector<NamedWeight<T>>& weights) {
  std::vector<NamedParameter<T>> found;
  for (const auto& [name, weight] : weights)
    if (weight.is_trainable()) found.emplace_back(name, weight.variable());
  return found;
}

/// What is wrong with a weight that must be a Variable.
template <class T>
std::string not_of_floats(const std::string& name, const Weight<T>& weight) {
  return "'" + name + "' must be of float numbers, got " + detail::weight_dtype_name(weight.dtype());
}

template <class T>
void freeze(const Weight<T>& weight, bool on) {
  if (!weight.is_trainable()) return;
  detail::Access<T>::node(weight.variable())->frozen = on;
  if (on) weight.variable().zero_grad();
}

template <class T>
void freeze_all(const State<T>& state, bool on) {
  detail::for_each_module(state, [on](const State<T>& each) {
    for (const auto& [name, weight] : each.weights) freeze(weight, on);
  });
}

/// The parameter or submodule of this dotted name, or all below it; returns false if there is none.
template <class T>
bool freeze_part(const State<T>& state, std::string_view name, bool on, const std::string& prefix = "") {
  const std::string below = std::string(name) + ".";
  bool found = false;
  for (const auto& [own, weight] : state.weights) {
    if (own != name && !own.starts_with(below)) continue;
    if (own == name && !on && !weight.is_trainable())
      throw ValueError("requires_grad: " + not_of_floats(prefix + own, weight));
    freeze(weight, on);
    found = true;
  }
  for (const auto& [own, child] : state.children) {
    if (own == name || own.starts_with(below)) {
      freeze_all(*child, on);
      found = true;
    } else if (name.starts_with(own + ".")) {
      found = freeze_part(*child, name.substr(own.size() + 1), on, prefix + own + ".") || found;
    }
  }
  return found;
}

/// What is wrong with a state dict, one phrase for each entry.
template <class T>
std::vector<std::string> mismatches(const std::vector<NamedWeight<T>>& saved, const StateDict<T>& state) {
  std::vector<std::string> found;
  StateDict<T> unexpected = state;
  for (const auto& [name, one] : saved) {
    const auto entry = state.find(name);
    unexpected.erase(name);
    if (!one.is_trainable()) {
      found.push_back(not_of_floats(name, one));
    } else if (entry == state.end()) {
      found.push_back("'" + name + "' is missing");
    } else if (!same_shape(entry->second.shape(), one.shape())) {
      found.push_back("'" + name + "' must have shape " + to_string(one.shape()) + ", got " +
                      to_string(entry->second.shape()));
    }
  }
  for (const auto& [name, array] : unexpected)
    found.push_back("'" + detail::escaped(name) + "' is unexpected");
  return found;
}

}  // namespace

template <class T>
Module<T>::Module(std::string type) : state_(std::make_shared<State<T>>()) {
  state_->type = std::move(type);
}

template <class T>
std::vector<NamedParameter<T>> Module<T>::named_parameters() const {
  return variables(named_weights());
}

template <class T>
std::vector<NamedParameter<T>> Module<T>::named_buffers() const {
  return variables(unique(*state_, &State<T>::buffers));
}

template <class T>
std::vector<NamedWeight<T>> Module<T>::named_weights() const {
  return unique(*state_, &State<T>::weights);
}

template <class T>
std::vector<Variable<T>> Module<T>::parameters() const {
  std::vector<Variable<T>> list;
  std::unordered_set<const void*> seen;
  detail::for_each_module(std::as_const(*state_), [&](const State<T>& state) {
    for (const auto& [name, weight] : state.weights)
      if (weight.is_trainable() && seen.insert(detail::WeightAccess<T>::identity(weight)).second)
        list.push_back(weight.variable());
  });
  return list;
}

template <class T>
std::size_t Module<T>::parameter_count() const {
  std::size_t count = 0;
  for (const Variable<T>& parameter : parameters()) count += parameter.size();
  return count;
}

template <class T>
StateDict<T> Module<T>::state_dict() const {
  StateDict<T> state;
  for (const auto& [name, saved] : all_saved(*state_)) {
    if (!saved.is_trainable()) throw ValueError("state_dict: " + not_of_floats(name, saved));
    state.emplace(name, saved.variable().value());
  }
  return state;
}

template <class T>
void Module<T>::load_state_dict(const StateDict<T>& state) const {
  const std::vector<NamedWeight<T>> saved = all_saved(*state_);
  std::string message;
  for (const std::string& mismatch : mismatches(saved, state)) {
    message += (message.empty() ? "load_state_dict: " : "; ") + mismatch;
  }
  if (!message.empty()) throw ValueError(message);
  for (const auto& [name, one] : saved) one.variable().assign(state.at(name));
}

template <class T>
void Module<T>::train(bool on) const {
  detail::for_each_module(*state_, [on](State<T>& state) { state.training = on; });
}

template <class T>
void Module<T>::requires_grad(bool on) const {
  freeze_all(*state_, !on);
}

template <class T>
void Module<T>::requires_grad(std::string_view name, bool on) const {
  if (name.empty() || !freeze_part(*state_, name, !on))
    detail::fail<ValueError>(type(), ": requires_grad needs the name of a parameter or a submodule, got '",
                             name, "'");
}

template <class T>
void Module<T>::zero_grad() const {
  detail::for_each_module(std::as_const(*state_), [](const State<T>& state) {
    for (const auto& [name, weight] : state.weights)
      if (weight.is_trainable()) weight.variable().zero_grad();
  });
}

template <class T>
Variable<T> Module<T>::parameter(std::string name, Array<T> initial) {
  return weight(std::move(name), Variable<T>(std::move(initial), true)).variable();
}

template <class T>
Variable<T> Module<T>::buffer(std::string name, Array<T> initial) {
  declare(name);
  return state_->buffers.emplace_back(std::move(name), Variable<T>(std::move(initial))).second;
}

template <class T>
Weight<T> Module<T>::weight(std::string name, Weight<T> weight) {
  const Variable<T>& variable = detail::WeightAccess<T>::variable(weight);
  if (weight.is_trainable() && !(variable.is_leaf() && detail::Access<T>::node(variable)))
    detail::fail<ValueError>(type(), ": the weight '", name,
                             "' must be a leaf that requires a gradient, got ",
                             variable.is_leaf() ? "a constant" : "the result of an op");
  declare(name);
  return state_->weights.emplace_back(std::move(name), std::move(weight)).second;
}

template <class T>
void Module<T>::add_child(std::string name, const Module& module) {
  detail::for_each_module(std::as_const(*module.state_), [&](const State<T>& state) {
    if (&state == state_.get()) {
      detail::fail<ValueError>(type(), ": the child '", name, "' must not contain its parent");
    }
  });
  for (const std::string& other : state_->names) {
    if (other.starts_with(name + "."))
      detail::fail<ValueError>(type(), ": the name '", other, "' must not be below that of the child '", name,
                               "'");
  }
  declare(name);
  module.state_->place.add_to(state_->place, name);
  state_->children.emplace_back(std::move(name), module.state_);
}

template <class T>
void Module<T>::declare(const std::string& name) {
  if (name.empty()) detail::fail<ValueError>(type(), ": a name must not be empty");
  for (const auto& [child, state] : state_->children) {
    if (name.starts_with(child + "."))
      detail::fail<ValueError>(type(), ": the name '", name, "' must not be below that of the child '", child,
                               "'");
  }
  if (!state_->names.insert(name).second)
    detail::fail<ValueError>(type(), ": the name '", name, "' must not be declared twice");
}

template class Module<float>;
template class Module<double>;

}  // namespace xgrad
