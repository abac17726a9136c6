#include "implicit_function.hpp"

#include <algorithm>
#include <cmath>

#include "../graph/kernel_backward.hpp"
#include "../graph/record_many.hpp"
#include "../ops/linalg/detail/solutions.hpp"
#include "../ops/shape/shapes.hpp"
#include "detail/called_again.hpp"
#include "functional.hpp"

namespace xgrad::detail {
namespace {

/// F at y. Throws ShapeError for one of another shape.
template <class T>
Variable<T> residual_at(const ResidualOf<T>& residual, const Variable<T>& y,
                        const std::vector<Variable<T>>& theta) {
  Variable<T> f = residual(y, theta);
  if (!f.defined())
    fail<GraphError>("implicit_function: residual must return a variable, got an undefined one");
  if (f.shape() != y.shape()) {
    fail<ShapeError>("implicit_function: residual must return the shape of y ", y.shape(), ", got ",
                     f.shape());
  }
  return f;
}

/// Throws ValueError if a step of Newton's method from y, where the residual is f, would be long.
template <class T>
void check_root(const Variable<T>& step, const Variable<T>& y, std::size_t samples, double tolerance) {
  const std::size_t n = y.size() / samples;
  for (std::size_t sample = 0; sample < samples; ++sample) {
    double length = 0, scale = 1;
    for (std::size_t i = sample * n; i < (sample + 1) * n; ++i) {
      length = std::max(length, std::abs(static_cast<double>(data(step)[i])));
      scale = std::max(scale, std::abs(static_cast<double>(data(y)[i])));
    }
    if (!(length > tolerance * scale)) continue;
    fail<ValueError>("implicit_function: the solver must return a root of residual, got a y ", length,
                     " from one by Newton's method", samples == 1 ? "" : ", for sample ",
                     samples == 1 ? std::string() : std::to_string(sample), "; tolerance is ", tolerance,
                     " of ", scale);
  }
}

/// Solves (dF/dy)^T lambda = dy, for each of `samples` samples of y, where F is `residual`.
template <class T>
Variable<T> adjoint(const Variable<T>& jacobian, const Variable<T>& residual, const Variable<T>& y,
                    const Variable<T>& dy, std::size_t samples, double tolerance) {
  const std::size_t n = dy.size() / samples;
  const Variable<T> matrices = reshape(jacobian, Shape{samples, n, n});
  const auto lu = lu_factors(matrices);
  for (std::size_t sample = 0; sample < samples; ++sample) {
    if (lu->zero_pivots[sample] == 0) continue;
    fail<ValueError>(
        "implicit_function: the derivative of residual with respect to y must be invertible, pivot ",
        lu->zero_pivots[sample], " of ", n, " is 0",
        samples == 1 ? std::string() : " for sample " + std::to_string(sample));
  }
  {
    const NoGrad guard;
    const Variable<T> step =
        lu_solution(matrices.detach(), lu, reshape(residual.detach(), Shape{samples, n, 1}), false);
    check_root(step, y, samples, tolerance);
  }
  return reshape(lu_solution(matrices, lu, reshape(dy, Shape{samples, n, 1}), true), Shape(dy.shape()));
}

}  // namespace

template <class T>
Variable<T> implicit_function(const std::vector<Variable<T>>& theta, const SolverOf<T>& solver,
                              ResidualOf<T> residual, ImplicitOptions options) {
  using List = std::vector<Variable<T>>;
  List values, at, inputs = theta;
  for (std::size_t i = 0; i < theta.size(); ++i) {
    if (!theta[i].defined()) fail<GraphError>("implicit_function: theta[", i, "] is undefined");
    values.push_back(theta[i].detach());
    at.push_back(theta[i].requires_grad() ? leaf_like(theta[i]) : theta[i]);
  }
  Variable<T> y;
  {
    const NoGrad guard;
    y = solver(values);
  }
  if (!y.defined())
    fail<GraphError>("implicit_function: solver must return a variable, got an undefined one");
  if (options.batched && y.dimension() == 0)
    fail<ShapeError>("implicit_function: with batched, y must have an axis of samples, got shape ",
                     y.shape());
  y = y.detach();
  if (!grad_enabled()) return y;

  // What the residual reads besides theta are inputs, too. Their values are not needed: it has them.
  const std::uint64_t start = next_order(0);
  const Variable<T> f = residual_at(residual, y, at);
  if (f.requires_grad()) {
    for (Ref<Node<T>>& node : outer_nodes(f, at, start))
      inputs.push_back(Access<T>::make({}, std::move(node)));
  }

  auto backward = [residual = std::move(residual), options,
                   nodes = List(inputs.begin() + static_cast<std::ptrdiff_t>(theta.size()), inputs.end())](
                      Variable<T> dy, Needs needs, const List& theta, Variable<T> y) {
    if (y.size() == 0) return List(theta.size() + nodes.size());
    const bool create_graph = grad_enabled();
    const EnableGrad guard;
    List ends = called_again_with(theta, needs);
    const FunctionOf<T> of_y = [&](const List& only) { return residual_at(residual, only.front(), ends); };
    const Variable<T> derivative =
        jacobian<T>(of_y, {y},
                    {.batched = options.batched, .create_graph = create_graph, .allow_constant = true})
            .front();
    const Variable<T> root = y.requires_grad() ? same_elements(ops::alias, y.detach(), y) : y;
    const Variable<T> f = residual_at(residual, root, ends);
    const Variable<T> lambda =
        adjoint(derivative, f, y, dy, options.batched ? y.shape(0) : std::size_t{1}, options.tolerance);
    ends.insert(ends.end(), nodes.begin(), nodes.end());
    const std::size_t count = ends.size();
    if (root.requires_grad()) ends.push_back(root);
    return needed_gradients(f, ends, count, needs, -lambda, create_graph);
  };
  return record_list<T>(ops::implicit_function, std::move(y), inputs, Attributes(), Saved(theta, Output()),
                        ByOps{std::move(backward)});
}

#define XGRAD_INSTANTIATE(T)                                                                                 \
  template Variable<T> implicit_function(const std::vector<Variable<T>>&, const SolverOf<T>&, ResidualOf<T>, \
                                         ImplicitOptions);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::detail
