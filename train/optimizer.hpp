#pragma once

#include <optional>
#include <string>
#include <vector>

#include "../models/module.hpp"
#include "stateful.hpp"

namespace xgrad {

/// What has to be saved of an object for it to go on later as if it had never stopped: PyTorch's nested state
/// dicts, flattened with dots.
template <class T>
struct OptimizerState {
  StateDict<T> arrays = {};  ///< "state.0.exp_avg"
  Numbers numbers = {};      ///< "state.0.step", "param_groups.0.lr"
};

/// Parameters and the options that hold for them alone.
template <class T, class Options>
struct ParameterGroup {
  std::vector<Variable<T>> parameters = {};
  Options options = {};
};

template <class T>
class LRScheduler;

namespace detail {

template <class T>
class StateWriter;
template <class T>
class StateReader;

}  // namespace detail

/// What all optimizers share. They change parameters in place, each group of them with options of its own.
/// What they remember of a parameter belongs to its position among those of all groups.
/// https://pytorch.org/docs/stable/optim.html
template <class T>
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Changes every parameter that has a gradient; the others are skipped. backward() adds to the gradients
  /// that are there: several calls before a step, each of a loss divided by their number, make the step of
  /// one large batch.
  virtual void step() = 0;

  /// Forgets the gradients of all parameters.
  void zero_grad() const;

  /// Of all groups, in their order.
  const std::vector<Variable<T>>& parameters() const { return parameters_; }

  std::size_t group_count() const { return groups_.size(); }
  /// Throws IndexError for a group that there is not.
  double lr(std::size_t group = 0) const { return groups_[checked(group)].lr; }
  /// Of all groups, or of one. Throws ValueError for a negative or infinite rate, or nan.
  void set_lr(double lr);
  void set_lr(std::size_t group, double lr);

  /// Options of the groups and what is remembered of the parameters that have made a step.
  OptimizerState<T> state_dict() const;
  /// The options are loaded, too. The groups must be as they were. Throws ValueError, naming every missing,
  /// unexpected, misshapen and impossible entry, and loads nothing then: "load_state_dict: 'state.0.exp_avg'
  /// must have shape (4, 4), got (4, 8)".
  void load_state_dict(const OptimizerState<T>& state);

 protected:
  /// Which parameters make up a group, and their rate.
  struct Group {
    std::size_t first, end;  ///< positions among parameters()
    double lr;
    std::optional<double> initial_lr;  ///< the rate that the first scheduler found
  };

  explicit Optimizer(const char* name) : name_(name) {}
  Optimizer(const Optimizer&) = default;
  Optimizer& operator=(const Optimizer&) = default;

  /// Throws ValueError for one that is no leaf that requires a gradient, or was added before.
  void add_group(const std::vector<Variable<T>>& parameters, double lr);
  /// Throws ValueError if no group has parameters.
  void check_not_empty() const;

  const std::vector<Group>& groups() const { return groups_; }

  /// The class's, for errors.
  const char* name() const { return name_; }

  /// Lists what is saved besides the rates.
  virtual void save(detail::StateWriter<T>& state) const = 0;
  /// Calls state.finish() before it changes anything.
  virtual void load(detail::StateReader<T>& state) = 0;

 private:
  friend class LRScheduler<T>;

  std::size_t checked(std::size_t group) const;

  const char* name_;
  std::vector<Variable<T>> parameters_;
  std::vector<Group> groups_;
};

namespace detail {

/// Returns `number`. Throws ValueError "SGD: momentum must be finite and at least 0, got -1".
double checked_rate(const char* object, const char* name, double number);

}  // namespace detail
}  // namespace xgrad
