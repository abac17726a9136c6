#pragma once

#include <vector>

#include <xgrad/graph/variable.hpp>

namespace xgrad {

/// What all optimizers share. They change parameters in place; what they remember of a parameter belongs to
/// its position in the list. https://pytorch.org/docs/stable/optim.html
template <class T>
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Changes every parameter that has a gradient; the others are skipped.
  virtual void step() = 0;

  /// Forgets the gradients of all parameters.
  void zero_grad() const;

  const std::vector<Variable<T>>& parameters() const { return parameters_; }

  double lr() const { return lr_; }
  /// Throws ValueError for a negative or infinite rate, or nan.
  void set_lr(double lr);

 protected:
  /// Throws ValueError for no parameters, and for one that is no leaf that requires a gradient.
  Optimizer(const char* name, std::vector<Variable<T>> parameters, double lr);
  Optimizer(const Optimizer&) = default;
  Optimizer& operator=(const Optimizer&) = default;

 private:
  const char* name_;
  std::vector<Variable<T>> parameters_;
  double lr_;
};

namespace detail {

/// Returns `number`. Throws ValueError "SGD: momentum must be finite and at least 0, got -1".
double checked_rate(const char* optimizer, const char* name, double number);

}  // namespace detail
}  // namespace xgrad
