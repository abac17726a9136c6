#include "module.hpp"

#include <unordered_set>

#include "../base/detail/text/json_text.hpp"
#include "detail/for_each_module.hpp"

namespace xgrad {
namespace {

template <class T>
using State = detail::ModuleState<T>;

/// ModuleState's parameters or buffers.
template <class T>
using ListOfState = std::vector<NamedParameter<T>> State<T>::*;

template <class T, class Named>
void add_named(const State<T>& state, std::vector<Named> State<T>::*list, const std::string& prefix,
               std::vector<Named>& found) {
  for (const auto& [name, one] : state.*list) found.emplace_back(prefix + name, one);
  for (const auto& [name, child] : state.children) add_named(*child, list, prefix + name + ".", found);
}

/// Under all their names.
template <class T>
std::vector<NamedParameter<T>> all_named(const State<T>& state, ListOfState<T> list) {
  std::vector<NamedParameter<T>> found;
  add_named(state, list, "", found);
  return found;
}

/// Parameters, then buffers.
template <class T>
std::vector<NamedParameter<T>> all_saved(const State<T>& state) {
  std::vector<NamedParameter<T>> found = all_named(state, &State<T>::parameters);
  add_named(state, &State<T>::buffers, "", found);
  return found;
}

/// Those of a list that are no parameters; `identity_of` is the same for two only if they are one.
template <class T, class Named, class Identity>
std::vector<Named> all_weights(const State<T>& state, std::vector<Named> State<T>::*list,
                               const Identity& identity_of) {
  std::vector<Named> found;
  add_named(state, list, "", found);
  std::unordered_set<const void*> seen;
  std::erase_if(found, [&](const Named& one) { return !seen.insert(identity_of(one.second)).second; });
  return found;
}

/// The same for two Variables only if they are one.
template <class T>
const void* identity(const Variable<T>& x) {
  return detail::Access<T>::value(x).get();
}

/// Each once, under the first of its names.
template <class T>
std::vector<NamedParameter<T>> unique(std::vector<NamedParameter<T>> all) {
  std::unordered_set<const void*> seen;
  std::erase_if(all, [&](const NamedParameter<T>& one) { return !seen.insert(identity(one.second)).second; });
  return all;
}

template <class T>
void freeze(const Variable<T>& parameter, bool on) {
  detail::Access<T>::node(parameter)->frozen = on;
  if (on) parameter.zero_grad();
}

template <class T>
void freeze_all(const State<T>& state, bool on) {
  detail::for_each_module(state, [on](const State<T>& each) {
    for (const auto& [name, parameter] : each.parameters) freeze(parameter, on);
  });
}

/// The parameter or submodule of this dotted name, or all below it; returns false if there is none.
template <class T>
bool freeze_part(const State<T>& state, std::string_view name, bool on) {
  const std::string below = std::string(name) + ".";
  bool found = false;
  for (const auto& [own, parameter] : state.parameters) {
    if (own != name && !own.starts_with(below)) continue;
    freeze(parameter, on);
    found = true;
  }
  for (const auto& [own, child] : state.children) {
    if (own == name || own.starts_with(below)) {
      freeze_all(*child, on);
      found = true;
    } else if (name.starts_with(own + ".")) {
      found = freeze_part(*child, name.substr(own.size() + 1), on) || found;
    }
  }
  return found;
}

/// What is wrong with a state dict, one phrase for each entry.
template <class T>
std::vector<std::string> mismatches(const std::vector<NamedParameter<T>>& saved, const StateDict<T>& state) {
  std::vector<std::string> found;
  StateDict<T> unexpected = state;
  for (const auto& [name, one] : saved) {
    const auto entry = state.find(name);
    unexpected.erase(name);
    if (entry == state.end()) {
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
  return unique(all_named(*state_, &State<T>::parameters));
}

template <class T>
std::vector<NamedParameter<T>> Module<T>::named_buffers() const {
  return unique(all_named(*state_, &State<T>::buffers));
}

template <class T>
std::vector<NamedInt8Weight> Module<T>::named_int8_weights() const {
  return all_weights(*state_, &State<T>::int8_weights,
                     [](const Int8Weight& weight) { return &weight.matrix(); });
}

template <class T>
std::vector<NamedBfloat16Weight> Module<T>::named_bfloat16_weights() const {
  return all_weights(*state_, &State<T>::bfloat16_weights,
                     [](const Bfloat16Weight& weight) { return weight.bits().data(); });
}

template <class T>
std::vector<Variable<T>> Module<T>::parameters() const {
  std::vector<Variable<T>> list;
  std::unordered_set<const void*> seen;
  detail::for_each_module(std::as_const(*state_), [&](const State<T>& state) {
    for (const auto& [name, parameter] : state.parameters)
      if (seen.insert(identity(parameter)).second) list.push_back(parameter);
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
  const std::vector<NamedInt8Weight> integers = named_int8_weights();
  if (!integers.empty())
    detail::fail<ValueError>("state_dict: '", integers.front().first,
                             "' must be of float numbers, got 8-bit integers");
  const std::vector<NamedBfloat16Weight> halves = named_bfloat16_weights();
  if (!halves.empty())
    detail::fail<ValueError>("state_dict: '", halves.front().first,
                             "' must be of float numbers, got bfloat16 numbers");
  StateDict<T> state;
  for (const auto& [name, saved] : all_saved(*state_)) state.emplace(name, saved.value());
  return state;
}

template <class T>
void Module<T>::load_state_dict(const StateDict<T>& state) const {
  const std::vector<NamedParameter<T>> saved = all_saved(*state_);
  std::string message;
  for (const std::string& mismatch : mismatches(saved, state)) {
    message += (message.empty() ? "load_state_dict: " : "; ") + mismatch;
  }
  if (!message.empty()) throw ValueError(message);
  for (const auto& [name, one] : saved) one.assign(state.at(name));
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
    for (const auto& [name, parameter] : state.parameters) parameter.zero_grad();
  });
}

template <class T>
Variable<T> Module<T>::parameter(std::string name, Array<T> initial) {
  declare(name);
  return state_->parameters.emplace_back(std::move(name), Variable<T>(std::move(initial), true)).second;
}

template <class T>
Variable<T> Module<T>::buffer(std::string name, Array<T> initial) {
  declare(name);
  return state_->buffers.emplace_back(std::move(name), Variable<T>(std::move(initial))).second;
}

template <class T>
void Module<T>::add_int8_weight(std::string name, Int8Weight weight) {
  declare(name);
  state_->int8_weights.emplace_back(std::move(name), std::move(weight));
}

template <class T>
void Module<T>::add_bfloat16_weight(std::string name, Bfloat16Weight weight) {
  declare(name);
  state_->bfloat16_weights.emplace_back(std::move(name), std::move(weight));
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
