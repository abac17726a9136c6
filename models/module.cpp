#include "module.hpp"

#include <optional>
#include <unordered_set>

#include "detail/for_each_module.hpp"

namespace xgrad {
namespace {

template <class T>
using State = detail::ModuleState<T>;

template <class T>
void list_parameters(const State<T>& state, const std::string& prefix, std::vector<NamedParameter<T>>& list) {
  for (const auto& [name, parameter] : state.parameters) list.emplace_back(prefix + name, parameter);
  for (const auto& [name, child] : state.children) list_parameters(*child, prefix + name + ".", list);
}

/// Under all their names.
template <class T>
std::vector<NamedParameter<T>> all_parameters(const State<T>& state) {
  std::vector<NamedParameter<T>> list;
  list_parameters(state, "", list);
  return list;
}

/// The same for two Variables only if they are one.
template <class T>
const void* identity(const Variable<T>& x) {
  return detail::Access<T>::node(x).get();
}

template <class T>
struct Running final : RunningModule {
  const State<T>* state;
};

/// The dotted name of a module below another one; nothing if it is not there.
template <class T>
std::optional<std::string> path(const State<T>& from, const State<T>* to) {
  for (const auto& [name, child] : from.children) {
    if (child.get() == to) return name;
    if (const std::optional<std::string> rest = path(*child, to)) return name + "." + *rest;
  }
  return std::nullopt;
}

/// What is wrong with a state dict, one phrase for each entry.
template <class T>
std::vector<std::string> mismatches(const std::vector<NamedParameter<T>>& parameters,
                                    const StateDict<T>& state) {
  std::vector<std::string> found;
  StateDict<T> unexpected = state;
  for (const auto& [name, parameter] : parameters) {
    const auto entry = state.find(name);
    unexpected.erase(name);
    if (entry == state.end()) {
      found.push_back("'" + name + "' is missing");
    } else if (!same_shape(entry->second.shape(), parameter.shape())) {
      found.push_back("'" + name + "' must have shape " + to_string(parameter.shape()) + ", got " +
                      to_string(entry->second.shape()));
    }
  }
  for (const auto& [name, array] : unexpected) found.push_back("'" + name + "' is unexpected");
  return found;
}

}  // namespace

template <class T>
Module<T>::Module(std::string type) : state_(std::make_shared<State<T>>()) {
  state_->type = std::move(type);
}

template <class T>
std::vector<NamedParameter<T>> Module<T>::named_parameters() const {
  std::vector<NamedParameter<T>> unique;
  std::unordered_set<const void*> seen;
  for (NamedParameter<T>& candidate : all_parameters(*state_))
    if (seen.insert(identity(candidate.second)).second) unique.push_back(std::move(candidate));
  return unique;
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
  StateDict<T> state;
  for (const auto& [name, parameter] : all_parameters(*state_)) state.emplace(name, parameter.value());
  return state;
}

template <class T>
void Module<T>::load_state_dict(const StateDict<T>& state) const {
  const std::vector<NamedParameter<T>> parameters = all_parameters(*state_);
  std::string message;
  for (const std::string& mismatch : mismatches(parameters, state)) {
    message += (message.empty() ? "load_state_dict: " : "; ") + mismatch;
  }
  if (!message.empty()) throw ValueError(message);
  for (const auto& [name, parameter] : parameters) parameter.assign(state.at(name));
}

template <class T>
void Module<T>::train(bool on) const {
  detail::for_each_module(*state_, [on](State<T>& state) { state.training = on; });
}

template <class T>
void Module<T>::zero_grad() const {
  detail::for_each_module(std::as_const(*state_), [](const State<T>& state) {
    for (const auto& [name, parameter] : state.parameters) parameter.zero_grad();
  });
}

template <class T>
std::unique_ptr<RunningModule> Module<T>::running() const {
  auto module = std::make_unique<Running<T>>();
  module->type = state_->type;
  module->state = state_.get();
  const RunningModule* const outer = detail::running_module();
  if (outer == nullptr) return module;
  module->name = outer->name;
  const auto* const parent = dynamic_cast<const Running<T>*>(outer);
  if (parent != nullptr && parent->state == module->state) return nullptr;
  if (!module->name.empty()) module->name += ".";
  const auto name = parent != nullptr ? path(*parent->state, module->state) : std::nullopt;
  module->name += name.value_or(state_->type);  // its type, if it is no child of the one that calls it
  return module;
}

template <class T>
Variable<T> Module<T>::parameter(std::string name, Array<T> initial) {
  declare(name);
  return state_->parameters.emplace_back(std::move(name), Variable<T>(std::move(initial), true)).second;
}

template <class T>
void Module<T>::add_child(std::string name, const Module& module) {
  detail::for_each_module(std::as_const(*module.state_), [&](const State<T>& state) {
    if (&state == state_.get()) {
      detail::fail<ValueError>(type(), ": the child '", name, "' must not contain its parent");
    }
  });
  declare(name);
  state_->children.emplace_back(std::move(name), module.state_);
}

template <class T>
void Module<T>::declare(const std::string& name) {
  if (!state_->names.insert(name).second)
    detail::fail<ValueError>(type(), ": the name '", name, "' must not be declared twice");
}

template class Module<float>;
template class Module<double>;

}  // namespace xgrad
