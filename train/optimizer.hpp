#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stateful.hpp"

namespace xgrad {

/// Parameters and the options that hold for them alone.
template <class T, class Options>
struct ParameterGroup {
  std::vector<Variable<T>> parameters = {};
  Options options = {};
};

template <class T>
class LRScheduler;

/// What all optimizers share: parameters in groups, each group with options of its own, and in-place steps.
///
/// The state dict holds the options of the groups and what is remembered of each parameter that has made a
/// step, under the parameter's position. Loading it sets both; the groups must be as large as they were.
/// https://pytorch.org/docs/stable/optim.html
template <class T>
class Optimizer : public Stateful {
 public:
  /// Changes every parameter that has a gradient; the others are skipped. As backward() adds to gradients,
  /// several calls before a step, each of a loss divided by their number, make the step of one large batch.
  virtual void step() = 0;

  /// Forgets the gradients of all parameters.
  void zero_grad() const;

  /// Of all groups, in their order.
  const std::vector<Variable<T>>& parameters() const { return parameters_; }

  std::size_t group_count() const { return groups_.size(); }
  /// Throws IndexError if there is no such group.
  double lr(std::size_t group = 0) const { return group_lr(checked(group)); }
  /// Of all groups, or of one. Throws ValueError for a negative or infinite rate, or nan.
  void set_lr(double lr);
  void set_lr(std::size_t group, double lr);

 protected:
  /// Which parameters make up a group.
  struct Group {
    std::size_t first, end;            ///< positions among parameters()
    std::optional<double> initial_lr;  ///< the rate that the first scheduler found
  };

  explicit Optimizer(const char* name) : name_(name) {}
  Optimizer(const Optimizer&) = default;
  Optimizer& operator=(const Optimizer&) = default;

  /// Throws ValueError for a parameter that is not a leaf that requires a gradient, or that was added before.
  void add_group(const std::vector<Variable<T>>& parameters);
  /// Throws ValueError if no group has parameters.
  void check_not_empty() const;

  const std::vector<Group>& groups() const { return groups_; }

  /// The name of the class, for errors.
  const char* name() const { return name_; }

  /// The learning rate, which is one of the group's options.
  virtual double group_lr(std::size_t group) const = 0;
  virtual void set_group_lr(std::size_t group, double lr) = 0;

  /// Lists the options of a group, lr among them, under `prefix`, and checks them.
  virtual void list_options(StateArchive& state, const std::string& prefix, std::size_t group) = 0;
  /// Lists what is remembered of a parameter, if there is anything, under `name` and a dot.
  virtual void list_parameter(StateArchive& state, const std::string& name, std::size_t parameter) = 0;

  void list_state(StateArchive& state) final;

 private:
  friend class LRScheduler<T>;

  std::size_t checked(std::size_t group) const;

  const char* name_;
  std::vector<Variable<T>> parameters_;
  std::vector<Group> groups_;
};

namespace detail {

/// Throws ValueError, "SGD: every parameter must be given once, parameter 3 is parameter 1", for one that is
/// there twice, and for one that is not a leaf that requires a gradient.
template <class T>
void check_parameters(const char* object, const std::vector<Variable<T>>& parameters);

/// Returns `number`. Throws ValueError "SGD: momentum must be finite and at least 0, got -1".
double checked_rate(const char* object, const char* name, double number);

}  // namespace detail
}  // namespace xgrad
