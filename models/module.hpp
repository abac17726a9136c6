#pragma once

#include <concepts>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "../graph/variable.hpp"
#include "../graph/watch.hpp"
#include "../ops/product/weight.hpp"

namespace xgrad {

/// A name and its parameter.
template <class T>
using NamedParameter = std::pair<std::string, Variable<T>>;

/// A name and its weight, a parameter or numbers of fewer bits.
template <class T>
using NamedWeight = std::pair<std::string, Weight<T>>;

/// Parameters by dotted name, as stored in files. An array of a temporary one cannot be changed:
/// model.state_dict()["weight"](0, 0) = 1 would change a copy.
template <class T>
class [[nodiscard]] StateDict : public std::map<std::string, Array<T>> {
  using Map = std::map<std::string, Array<T>>;

 public:
  using Map::Map;

  Array<T>& operator[](const std::string& name) & { return Map::operator[](name); }
  const Array<T> operator[](const std::string& name) && { return std::move(Map::operator[](name)); }
  Array<T>& at(const std::string& name) & { return Map::at(name); }
  const Array<T>& at(const std::string& name) const& { return Map::at(name); }
  const Array<T> at(const std::string& name) && { return std::move(Map::at(name)); }
};

namespace detail {

/// State shared by all handles to one module.
template <class T>
struct ModuleState {
  std::string type;
  std::vector<NamedWeight<T>> weights;
  std::vector<NamedParameter<T>> buffers;
  std::vector<std::pair<std::string, std::shared_ptr<ModuleState>>> children;
  std::unordered_set<std::string> names;  // of all of these: an imported graph may have very many
  bool training = true;
  ModulePlace place;
};

}  // namespace detail

/// Base class of layers and models: an object with parameters and buffers, which the constructor declares and
/// thereby registers; forward is a const operator().
///
///   template <class T>
///   class Projection : public xgrad::Module<T> {
///    public:
///     explicit Projection(std::size_t size)
///         : xgrad::Module<T>("Projection"),
///           linear_(this->child("linear", xgrad::Linear<T>(size, size))),
///           scale_(this->parameter("scale", xgrad::ones<T>({size}))) {}
///     xgrad::Variable<T> operator()(const xgrad::Variable<T>& x) const {
///       const auto scope = this->scope();
///       return linear_(x) * scale_;
///     }
///
///    private:
///     xgrad::Linear<T> linear_;
///     xgrad::Variable<T> scale_;
///   };
///
/// A module is a handle: copies share parameters and mode, so a const module can be trained, too.
/// https://pytorch.org/docs/stable/generated/torch.nn.Module.html
template <class T>
class Module {
 public:
  Module(const Module&) = default;
  Module& operator=(const Module&) = default;

  /// The class name, as in summaries.
  [[nodiscard]] const std::string& type() const& noexcept { return state_->type; }
  [[nodiscard]] std::string type() && { return state_->type; }

  /// In the order of declaration, the module's own before those of children: "layers.0.norm1.weight". A
  /// parameter with several names is listed once, under the first.
  [[nodiscard]] std::vector<NamedParameter<T>> named_parameters() const;
  /// The parameters without their names.
  [[nodiscard]] std::vector<Variable<T>> parameters() const;

  /// The buffers, in the same order and under such names.
  [[nodiscard]] std::vector<NamedParameter<T>> named_buffers() const;

  /// The parameters and the weights of fewer bits, which are none, in the same order and under such names.
  [[nodiscard]] std::vector<NamedWeight<T>> named_weights() const;

  /// The number of elements of all parameters.
  [[nodiscard]] std::size_t parameter_count() const;

  /// Copies of all parameters and buffers; one with several names occurs under each. Throws ValueError that
  /// names a weight of fewer bits, which pretrained::save_folder saves.
  StateDict<T> state_dict() const;

  /// Assigns to all parameters and buffers. Throws ValueError that names every missing, unexpected and
  /// misshapen entry, without changes: "load_state_dict: 'W_Q.weight' must have shape (4, 4), got (4, 8)".
  /// The same for a weight of fewer bits.
  void load_state_dict(const StateDict<T>& state) const;

  /// Sets the mode of this module and its submodules; dropout is active in training only.
  void train(bool on = true) const;
  void eval() const { train(false); }
  [[nodiscard]] bool training() const noexcept { return state_->training; }

  /// Freezes all parameters (false), or lets them be trained again (true): frozen ones require no gradient
  /// and have none, and optimizers skip them. A parameter with several names is frozen under each. Weights of
  /// fewer bits always are. Must not be called while another thread computes.
  /// https://pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.requires_grad_
  void requires_grad(bool on) const;
  /// The same for parts of the model: the submodule or parameter of each dotted name, or all below it, as in
  /// "encoder.layers.0" and "encoder.layers". Throws ValueError for another name, and for a weight of fewer
  /// bits that is to be trained.
  void requires_grad(std::string_view name, bool on) const;
  void requires_grad(std::initializer_list<const char*> names, bool on) const {
    for (const char* name : names) requires_grad(std::string_view(name), on);
  }
  /// What is not a bool, such as a name, is not converted to one.
  template <class B>
  requires(!std::same_as<B, bool>) void requires_grad(B on) const = delete;
  template <class B>
  requires(!std::same_as<B, bool>) void requires_grad(std::string_view name, B on) const = delete;

  /// Resets the gradients of all parameters.
  void zero_grad() const;

  const detail::ModuleState<T>& state() const noexcept { return *state_; }

 protected:
  /// First line of a forward pass, `const auto scope = this->scope();`: errors and watchers attribute all ops
  /// until the end of the block to this module.
  detail::ModuleScope scope() const { return {state_->place.id(), state_->type}; }

  /// `type` is the class name for summaries.
  explicit Module(std::string type);

  /// Registers a new parameter and returns it. Throws ValueError for an empty name, and for one that another
  /// entry has or that begins with a child's name and a dot.
  Variable<T> parameter(std::string name, Array<T> initial);
  /// The same of an expression. One of double does not compile for float.
  template <class E>
  Variable<T> parameter(std::string name, const xt::xexpression<E>& initial) {
    return parameter(std::move(name), detail::evaluated<T>(initial));
  }

  /// Registers an array that is saved and loaded with the parameters but not trained, such as a running mean,
  /// and returns a constant of it, which assign() changes for all copies. Throws ValueError for a name as
  /// parameter() does.
  Variable<T> buffer(std::string name, Array<T> initial);
  template <class E>
  Variable<T> buffer(std::string name, const xt::xexpression<E>& initial) {
    return buffer(std::move(name), detail::evaluated<T>(initial));
  }

  /// Registers a weight and returns it: a leaf that requires a gradient is a parameter, also of other modules
  /// that register it. Throws ValueError for another Variable, and for a name as parameter() does.
  Weight<T> weight(std::string name, Weight<T> weight);

  /// Registers a submodule and returns it. Throws ValueError for a name as parameter() does, and for one with
  /// which and a dot that of another entry begins.
  template <class M>
  M child(std::string name, M module) {
    add_child(std::move(name), module);
    return module;
  }

 private:
  template <class>
  friend class EvalMode;

  void add_child(std::string name, const Module& module);
  void declare(const std::string& name);

  std::shared_ptr<detail::ModuleState<T>> state_;
};

}  // namespace xgrad
