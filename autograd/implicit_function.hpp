#pragma once

#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "../base/detail/by_name.hpp"
#include "../graph/detail/returns_variable.hpp"
#include "../graph/op.hpp"
#include "../graph/variable.hpp"

namespace xgrad {

/// Options of implicit_function().
struct ImplicitOptions {
  detail::ByName by_name = {};
  /// The first axis of y counts independent samples: residual(y, theta)[i] depends on no sample of y but
  /// y[i], which gives a small system of equations for each instead of one large system.
  bool batched = false;
  /// How far y may be from the root, as one step of Newton's method estimates it: relative to the largest
  /// |y_i|, or to 1 if that is smaller.
  double tolerance = 1e-3;
};

namespace detail {

template <class T>
using SolverOf = std::function<Variable<T>(const std::vector<Variable<T>>& theta)>;
template <class T>
using ResidualOf = std::function<Variable<T>(const Variable<T>& y, const std::vector<Variable<T>>& theta)>;

template <class T>
Variable<T> implicit_function(const std::vector<Variable<T>>& theta, const SolverOf<T>& solver,
                              ResidualOf<T> residual, ImplicitOptions options);

}  // namespace detail

/// y(theta), the solution of residual(y, theta) = 0: roots, fixed points with the residual y - f(y, theta),
/// steps of implicit schemes, minima with the gradient as residual. With F = residual, and lambda solving
/// (dF/dy)^T lambda = dy: dtheta = -lambda dF/dtheta (the implicit function theorem). The solver's steps are
/// not differentiated; its result must be close to the root, as the gradients are those there.
///
///   const auto y = implicit_function(theta,
///       [](const Array<double>& theta) { return Array<double>(xt::cbrt(theta)); },
///       [](const Variable<double>& y, const Variable<double>& theta) { return y * y * y - theta; });
///
/// theta is a Variable, or a vector of them; solver(theta) takes an array, a vector of arrays, or Variables,
/// records nothing, and returns y as an array or a Variable. residual(y, theta) is composed of ops on
/// Variables and returns the shape of y. The graph keeps it, so it must not refer to objects destroyed before
/// the backward pass. Other Variables that it reads, such as a model's parameters, get gradients, too.
/// Derivatives of any order; the backward pass computes dF/dy, with one pass for each element of y (or of a
/// sample), and solves one system.
///
/// Throws ShapeError for a residual of another shape, and ValueError, in the backward pass, for a singular
/// dF/dy and for a y that is not within the tolerance of a root.
///
/// Griewank and Walther, Evaluating derivatives (2008), section 15.1;
/// Blondel et al., Efficient and modular implicit differentiation (2021), arXiv:2105.15183
template <class T, class Solver, class Residual>
Variable<T> implicit_function(const std::vector<Variable<T>>& theta, const Solver& solver, Residual residual,
                              ImplicitOptions options = {}) {
  using List = std::vector<Variable<T>>;
  detail::check_returns_variable<T, Residual&, const Variable<T>&, const List&>();
  const auto solve = [&solver](const List& at) -> Variable<T> {
    if constexpr (std::is_invocable_v<const Solver&, const List&>) {
      return solver(at);
    } else {
      std::vector<Array<T>> arrays;
      for (const Variable<T>& one : at) arrays.push_back(one.value());
      return solver(std::as_const(arrays));
    }
  };
  return detail::implicit_function<T>(theta, solve, std::move(residual), options);
}

template <class T, class Solver, class Residual>
Variable<T> implicit_function(const Variable<T>& theta, const Solver& solver, Residual residual,
                              ImplicitOptions options = {}) {
  using List = std::vector<Variable<T>>;
  detail::check_returns_variable<T, const Residual&, const Variable<T>&, const Variable<T>&>();
  const auto solve = [&solver](const List& at) -> Variable<T> {
    if constexpr (std::is_invocable_v<const Solver&, const Variable<T>&>) {
      return solver(at.front());
    } else {
      return solver(at.front().value());
    }
  };
  return detail::implicit_function<T>(
      List{theta}, solve,
      [residual = std::move(residual)](const Variable<T>& y, const List& at) -> Variable<T> {
        return residual(y, at.front());
      },
      options);
}

namespace ops {

inline constexpr Op implicit_function("implicit_function", {"theta"});

}  // namespace ops
}  // namespace xgrad
