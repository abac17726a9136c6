#pragma once

#include <deque>
#include <functional>

#include "optimizer.hpp"

namespace xgrad {

/// How far LBFGS goes along a direction.
enum class LineSearch {
  none,         ///< lr times the direction; in the first step of all, less where the gradient is large
  strong_wolfe  ///< to where the strong Wolfe conditions hold (Nocedal and Wright, algorithms 3.5 and 3.6)
};

struct LBFGSOptions {
  double lr = 1;
  std::size_t max_iter = 20;  ///< at most so many directions in one step
  /// After so many calls of the closure a step ends, and so does a line search in it, which may make one more
  /// call; by default max_iter * 5 / 4.
  std::optional<std::size_t> max_eval = {};
  double tolerance_grad = 1e-7;    ///< done where no element of the gradient is larger
  double tolerance_change = 1e-9;  ///< done where neither the parameters nor the loss change by more
  std::size_t history_size = 100;  ///< how many changes of the gradient are remembered
  LineSearch line_search_fn = LineSearch::none;
};

/// Limited-memory BFGS (Liu and Nocedal 1989): Newton's method with an inverse Hessian that the last changes
/// of the parameters, s, and of the gradient, y, imply, by the two-loop recursion from s.y / y.y times the
/// identity. For functions that give the same loss each time, such as a fit to all data at once.
///
/// A step makes up to max_iter changes of the parameters, each after one or more calls of the closure, which
/// forgets the gradients, computes the loss, calls backward and returns the loss:
///
///   optimizer.step([&] {
///     optimizer.zero_grad();
///     const Variable<double> loss = mse_loss(model(x), y);
///     loss.backward();
///     return loss;
///   });
///
/// All parameters make one vector, those without a gradient with zeros; there is one group. The numbers are
/// PyTorch's, and the bits the same for any number of threads. The state dict has the options, of which
/// line_search_fn is 0 or 1, and the history, so that a loaded optimizer goes on as the saved one would have.
/// Throws ValueError for invalid options, and from step() without a closure, which a reference to
/// Optimizer allows.
/// https://pytorch.org/docs/stable/generated/torch.optim.LBFGS.html
template <class T>
class LBFGS : public Optimizer<T> {
 public:
  using Closure = std::function<Variable<T>()>;

  explicit LBFGS(const std::vector<Variable<T>>& parameters, LBFGSOptions options = {});

  /// Returns the loss at which the step began. Throws ShapeError if the closure returns anything but one
  /// number. If it throws, the parameters are those after the last complete change.
  Variable<T> step(const Closure& closure);

 private:
  /// A change of the parameters, and what it changed in the gradient.
  struct Change {
    Array<T> gradient, step;
    double ro;  ///< 1 / (gradient . step)
  };

  void step() override;
  double group_lr(std::size_t) const override { return options_.lr; }
  void set_group_lr(std::size_t, double lr) override { options_.lr = lr; }
  void list_options(StateArchive& state, const std::string& prefix, std::size_t group) override;
  void list_parameter(StateArchive& state, const std::string& name, std::size_t parameter) override;

  Variable<T> evaluate(const Closure& closure);
  Array<T> gathered(bool gradients) const;
  void place(const Array<T>& values) const;
  void turn(const Array<T>& gradient);

  LBFGSOptions options_;
  std::size_t size_ = 0;  // of all parameters together
  std::size_t iterations_ = 0, evaluations_ = 0;
  std::deque<Change> history_;
  double scale_ = 1, step_size_ = 0;
  Array<T> direction_, previous_gradient_;
};

}  // namespace xgrad
