#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../stateful.hpp"

namespace xgrad {

/// Parameters with separate options.
template <class T, class Options>
struct ParameterGroup {
  std::vector<Variable<T>> parameters = {};
  Options options = {};
};

template <class T>
class LRScheduler;

namespace detail {

/// A token of an object, which expires when the object is destroyed, moved from or assigned to.
class Presence {
 public:
  Presence() : token_(std::make_shared<char>()) {}
  Presence(const Presence&) : Presence() {}
  Presence(Presence&& other) : Presence() { other.token_.reset(); }
  Presence& operator=(const Presence&) {
    token_ = std::make_shared<char>();
    return *this;
  }
  Presence& operator=(Presence&& other) {
    other.token_.reset();
    token_ = std::make_shared<char>();
    return *this;
  }
  ~Presence() = default;

  std::weak_ptr<const void> observer() const noexcept { return token_; }

 private:
  std::shared_ptr<char> token_;
};

}  // namespace detail

/// Base of all optimizers: parameters in groups, each with its options, and in-place steps.
///
/// The state dict contains the options of the groups and the state of each parameter that has been updated,
/// under the parameter's index. Loading it sets both; the groups must have the same sizes.
/// https://pytorch.org/docs/stable/optim.html
template <class T>
class Optimizer : public Stateful {
 public:
  /// Updates every parameter that has a gradient, and skips the others. As backward() adds to gradients,
  /// several calls before a step, each of a loss divided by their number, amount to one large batch. Throws
  /// GraphError if no parameter has a gradient, and std::bad_alloc; a step that throws has changed nothing.
  virtual void step() = 0;

  /// Resets the gradients of all parameters.
  void zero_grad() const;

  /// The parameters of all groups, in order.
  const std::vector<Variable<T>>& parameters() const& { return parameters_; }
  std::vector<Variable<T>> parameters() && { return std::move(parameters_); }

  std::size_t group_count() const { return groups_.size(); }
  /// The learning rate of a group. Throws IndexError for an invalid group.
  double lr(std::size_t group = 0) const { return group_lr(checked(group)); }
  /// Sets the learning rate of all groups, or of one. Throws ValueError for a negative or infinite rate, or
  /// nan.
  void set_lr(double lr);
  void set_lr(std::size_t group, double lr);

 protected:
  /// The range of a group's parameters.
  struct Group {
    std::size_t first, end;            ///< indices in parameters()
    std::optional<double> initial_lr;  ///< the rate when the first scheduler was created
  };

  explicit Optimizer(const char* name) : name_(name) {}
  Optimizer(const Optimizer&) = default;
  Optimizer(Optimizer&&) = default;
  Optimizer& operator=(const Optimizer&) = default;
  Optimizer& operator=(Optimizer&&) = default;

  /// Throws ValueError for a parameter that is not a leaf that requires a gradient, or is a duplicate.
  void add_group(const std::vector<Variable<T>>& parameters);
  /// Throws ValueError if no group has parameters.
  void check_not_empty() const;
  /// Whether a parameter has a gradient.
  bool has_gradients() const;
  /// Throws GraphError if none has.
  void check_gradients() const;

  const std::vector<Group>& groups() const { return groups_; }

  /// The class name, for errors.
  const char* name() const { return name_; }

  /// The learning rate, one of the group's options.
  virtual double group_lr(std::size_t group) const = 0;
  virtual void set_group_lr(std::size_t group, double lr) = 0;

  /// Calls state.keep() for the options of the groups and the state of the parameters.
  virtual void keep_state(StateArchive&) {}
  /// Lists and checks the options of a group, including lr, under `prefix`.
  virtual void list_options(StateArchive& state, const std::string& prefix, std::size_t group) = 0;
  /// Lists the state of a parameter, if any, under `name` and a dot.
  virtual void list_parameter(StateArchive& state, const std::string& name, std::size_t parameter) = 0;

  void list_state(StateArchive& state) final;

 private:
  friend class LRScheduler<T>;

  std::size_t checked(std::size_t group) const;

  const char* name_;
  detail::Presence presence_;
  std::vector<Variable<T>> parameters_;
  std::vector<Group> groups_;
};

namespace detail {

/// The arrays that a step adds to an optimizer's state: removed again unless all that may throw has
/// succeeded.
template <class T>
class NewArrays {
 public:
  NewArrays() = default;
  NewArrays(const NewArrays&) = delete;
  NewArrays& operator=(const NewArrays&) = delete;
  ~NewArrays() {
    for (std::optional<Array<T>>* const array : arrays_) array->reset();
  }

  /// Makes the array of this shape if there is none.
  void make(std::optional<Array<T>>& array, const Shape& shape, T value = 0) {
    if (array) return;
    arrays_.push_back(&array);
    array.emplace(shape, value);
  }

  void keep() noexcept { arrays_.clear(); }

 private:
  std::vector<std::optional<Array<T>>*> arrays_;
};

/// Base of optimizers whose groups have options of one type, with a rate `lr`.
template <class T, class Options>
class OptimizerOfGroups : public Optimizer<T> {
 protected:
  /// check(name, options) returns the options of a group, or throws ValueError.
  OptimizerOfGroups(const char* name, const std::vector<ParameterGroup<T, Options>>& groups,
                    const Options& (*check)(const char*, const Options&))
      : Optimizer<T>(name) {
    for (const auto& [parameters, options] : groups) {
      this->add_group(parameters);
      options_.push_back(check(name, options));
    }
    this->check_not_empty();
  }

  /// Calls visit(i, parameter, gradient, options) for each parameter i that has a gradient. Throws GraphError
  /// if none has. A step that needs memory visits twice: to allocate it, and to update.
  template <class Visit>
  void visit_parameters(const Visit& visit) const {
    this->check_gradients();
    for (std::size_t g = 0; g < options_.size(); ++g) {
      const auto& group = this->groups()[g];
      for (std::size_t i = group.first; i < group.end; ++i) {
        const Variable<T>& parameter = this->parameters()[i];
        if (!parameter.has_grad()) continue;
        visit(i, parameter, parameter.grad(), options_[g]);
      }
    }
  }

  std::vector<Options> options_;  // of each group

 private:
  double group_lr(std::size_t group) const override { return options_[group].lr; }
  void set_group_lr(std::size_t group, double lr) override { options_[group].lr = lr; }
};

/// Throws ValueError, "SGD: every parameter must be given once, parameter 3 is parameter 1", for a duplicate,
/// and for a parameter that is not a leaf that requires a gradient.
template <class T>
void check_parameters(const char* object, const std::vector<Variable<T>>& parameters);

/// Returns `number`. Throws ValueError "SGD: momentum must be finite and at least 0, got -1".
double checked_rate(const char* object, const char* name, double number);

}  // namespace detail
}  // namespace xgrad
