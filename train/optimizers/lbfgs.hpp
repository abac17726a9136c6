#pragma once

#include <memory>
#include <vector>

#include "../../base/detail/by_name.hpp"
#include "../../graph/detail/returns_variable.hpp"
#include "optimizer.hpp"

namespace xgrad {

/// Line search of LBFGS.
enum class LineSearch {
  none,         ///< steps of lr times the direction; a shorter first step if the gradient is large
  strong_wolfe  ///< steps that satisfy the strong Wolfe conditions (Nocedal and Wright, alg. 3.5, 3.6)
};

struct LBFGSOptions {
  detail::ByName by_name = {};
  double lr = 1;
  std::size_t max_iter = 20;  ///< maximum number of directions per step
  /// Maximum number of closure calls per step; a line search may make one more. Default: max_iter * 5 / 4.
  std::optional<std::size_t> max_eval = {};
  double tolerance_grad = 1e-7;    ///< stop if no element of the gradient is larger
  double tolerance_change = 1e-9;  ///< stop if neither the parameters nor the loss change by more
  std::size_t history_size = 100;  ///< number of stored changes of the gradient
  LineSearch line_search_fn = LineSearch::none;
};

/// Limited-memory BFGS (Liu and Nocedal 1989): Newton's method with an inverse Hessian estimated from the
/// last changes of the parameters, s, and of the gradient, y, by the two-loop recursion from s.y / y.y times
/// the identity. For deterministic functions, such as a fit to all data at once.
///
/// A step changes the parameters up to max_iter times, each after one or more calls of the closure, which
/// computes the loss, calls backward and returns the loss; the gradients are cleared before each call:
///
///   optimizer.step([&] {
///     const Variable<double> loss = mse_loss(model(x), y);
///     loss.backward();
///     return loss;
///   });
///
/// All parameters form one vector, with zeros for those without a gradient; there is one group. Results equal
/// PyTorch's, with the same bits for any number of threads. The state dict contains the options, where
/// line_search_fn is 0 or 1, and the history, so that a loaded optimizer continues as the saved one. Throws
/// ValueError for invalid options, and from a step() without a closure, which a reference to Optimizer
/// allows; GraphError if no parameter has a gradient after a call of the closure.
/// https://pytorch.org/docs/stable/generated/torch.optim.LBFGS.html
template <class T>
class LBFGS : public Optimizer<T> {
 public:
  using Closure = detail::VariableFunction<T>;

  explicit LBFGS(const std::vector<Variable<T>>& parameters, LBFGSOptions options = {});

  /// Returns the value of the loss at the start of the step. Throws ShapeError unless the closure returns one
  /// number. A step that throws, or whose closure does, has changed no parameter and no state; the gradients
  /// are those that the closure left.
  T step(const Closure& closure);

 private:
  /// A change of the parameters, and the resulting change of the gradient.
  struct Change {
    Array<T> gradient, step;
    double ro;  ///< 1 / (gradient . step)
  };

  /// All that a step needs of those before it.
  struct State {
    std::size_t iterations = 0, evaluations = 0;
    std::vector<std::shared_ptr<Change>> history = {};  // shared with the state from before the step
    double scale = 1, step_size = 0;
    Array<T> direction = {}, previous_gradient = {};
  };

  void step() override;
  double group_lr(std::size_t) const override { return options_.lr; }
  void set_group_lr(std::size_t, double lr) override { options_.lr = lr; }
  void keep_state(StateArchive& state) override;
  void list_options(StateArchive& state, const std::string& prefix, std::size_t group) override;
  void list_parameter(StateArchive& state, const std::string& name, std::size_t parameter) override;

  T search(const Closure& closure);
  Variable<T> evaluate(const Closure& closure);
  Array<T> gathered(bool gradients) const;
  void place(const Array<T>& values) const;
  void turn(const Array<T>& gradient);

  LBFGSOptions options_;
  std::size_t size_ = 0;  // of all parameters together
  State state_;
};

}  // namespace xgrad
