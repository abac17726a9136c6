#pragma once

// Derivatives of a function f of a Variable, or of a vector of Variables, at x.
//
//   const auto f = [](const Variable<double>& x) { return sum(exp(x) * x); };
//   const auto [y, g] = value_and_grad(f, x);
//   const Array<double> h = hessian(f, Array<double>{1, 2, 3});
//
// x is an array (any xtensor expression of float or double), a Variable, or a std::vector of either; f takes
// Variables and returns one. Results have the form of the arguments: arrays for arrays, Variables for
// Variables. Changes no grad(), neither of x nor of other Variables that f reads. Derivatives are 0 where f
// does not depend on x; a result without any graph throws GraphError unless allow_constant.
// https://pytorch.org/docs/stable/autograd.html#functional-higher-level-api

#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "../base/detail/by_name.hpp"
#include "../graph/detail/returns_variable.hpp"
#include "../graph/variable.hpp"

namespace xgrad {

/// Options of derivatives.
struct DerivativeOptions {
  detail::ByName by_name = {};
  /// Record the derivative, so that it is differentiable: with respect to the ancestors of x, if x is a
  /// Variable, and to everything else that f reads.
  bool create_graph = false;
  /// f may return a Variable without a graph, a constant, whose derivative is 0.
  bool allow_constant = false;
};

/// Options of jacobian() and hessian().
struct JacobianOptions {
  detail::ByName by_name = {};
  /// 0: calls f once on x, with a separate pass for each row of the result. Otherwise calls f once on this
  /// many copies of x, joined along a new first axis, with one pass for as many rows: faster if f is a chain
  /// of small ops; 32 is a good number for long chains. f must then map each copy independently: (rows, ...)
  /// to (rows, ...). One more pass checks this, two if a pass does not have all rows: throws ValueError if
  /// copies depend on one another.
  std::size_t rows = 0;
  /// The first axis of x and of f(x) counts independent samples: the result has one Jacobian or Hessian for
  /// each, (batch, y..., x...). Checked as rows are.
  bool batched = false;
  bool create_graph = false;    ///< as in DerivativeOptions
  bool allow_constant = false;  ///< as in DerivativeOptions
};

namespace detail {

template <class T>
using FunctionOf = std::function<Variable<T>(const std::vector<Variable<T>>&)>;

template <class T>
struct Derivatives {
  Variable<T> value;  ///< f(x)
  std::vector<Variable<T>> derivatives;
};

template <class T>
Derivatives<T> value_and_grad(const FunctionOf<T>& f, const std::vector<Variable<T>>& x, DerivativeOptions);
template <class T>
Derivatives<T> vjp(const FunctionOf<T>& f, const std::vector<Variable<T>>& x, const Variable<T>& v,
                   DerivativeOptions);
template <class T>
Derivatives<T> jvp(const FunctionOf<T>& f, const std::vector<Variable<T>>& x,
                   const std::vector<Variable<T>>& v, DerivativeOptions);
template <class T>
Derivatives<T> hvp(const FunctionOf<T>& f, const std::vector<Variable<T>>& x,
                   const std::vector<Variable<T>>& v, DerivativeOptions);
template <class T>
std::vector<Variable<T>> jacobian(const FunctionOf<T>& f, const std::vector<Variable<T>>& x,
                                  const JacobianOptions&);
template <class T>
std::vector<std::vector<Variable<T>>> hessian(const FunctionOf<T>& f, const std::vector<Variable<T>>& x,
                                              const JacobianOptions&);

/// f at x and the graph of its gradient.
template <class T>
class Tangents {
 public:
  Tangents(const FunctionOf<T>& f, const std::vector<Variable<T>>& x, DerivativeOptions options);

  Variable<T> value() const;
  /// J v
  Variable<T> apply(const std::vector<Variable<T>>& v) const;
  /// u J
  std::vector<Variable<T>> apply_transposed(const Variable<T>& u) const;

 private:
  std::vector<Variable<T>> x_;
  Variable<T> y_, seed_;
  std::vector<Variable<T>> gradients_;  // u J, which depends on the seed u
  DerivativeOptions options_;
};

/// The forms of x.
template <class X>
struct Argument;

template <Real T>
struct Argument<Variable<T>> {
  using Element = T;
  using Result = Variable<T>;
  static constexpr bool is_list = false;

  static Variable<T> in(const Variable<T>& x) { return x; }
  static Result out(Variable<T>&& v) { return std::move(v); }
};

template <class X>
requires is_expression<X> && Real<typename X::value_type>
struct Argument<X> {
  using Element = typename X::value_type;
  using Result = Array<Element>;
  static constexpr bool is_list = false;

  static Variable<Element> in(const X& x) { return Variable<Element>(x); }
  static Result out(Variable<Element>&& v) { return v.value(); }
};

template <class X>
struct Argument<std::vector<X>> {
  using Element = typename Argument<X>::Element;
  using Result = std::vector<typename Argument<X>::Result>;
  static constexpr bool is_list = true;
};

template <class X>
concept Differentiable = requires {
  typename Argument<X>::Element;
};

template <class X>
using ElementOf = typename Argument<X>::Element;

/// The form of f(x) for this form of x.
template <class X>
struct ValueForm {
  using type = X;
};
template <class X>
struct ValueForm<std::vector<X>> {
  using type = X;
};
template <class X>
using ValueArgument = Argument<typename ValueForm<X>::type>;
template <class X>
using ValueOf = typename ValueArgument<X>::Result;

template <class X>
std::vector<Variable<ElementOf<X>>> variables_of(const X& x) {
  if constexpr (Argument<X>::is_list) {
    std::vector<Variable<ElementOf<X>>> variables;
    for (const auto& one : x) variables.push_back(ValueArgument<X>::in(one));
    return variables;
  } else {
    return {Argument<X>::in(x)};
  }
}

template <class X>
typename Argument<X>::Result in_form_of(std::vector<Variable<ElementOf<X>>>&& variables) {
  if constexpr (Argument<X>::is_list) {
    typename Argument<X>::Result list;
    for (auto& one : variables) list.push_back(ValueArgument<X>::out(std::move(one)));
    return list;
  } else {
    return Argument<X>::out(std::move(variables.front()));
  }
}

/// f as a function of a vector of Variables.
template <class X, class F>
FunctionOf<ElementOf<X>> function_of(const F& f) {
  using V = Variable<ElementOf<X>>;
  if constexpr (Argument<X>::is_list) {
    check_returns_variable<ElementOf<X>, const F&, const std::vector<V>&>();
    return std::cref(f);
  } else {
    check_returns_variable<ElementOf<X>, const F&, const V&>();
    return [&f](const std::vector<V>& x) -> V { return f(x.front()); };
  }
}

template <class X>
std::pair<ValueOf<X>, typename Argument<X>::Result> pair_of(Derivatives<ElementOf<X>>&& found) {
  return {ValueArgument<X>::out(std::move(found.value)), in_form_of<X>(std::move(found.derivatives))};
}

}  // namespace detail

/// y = f(x), which must have one element, and dy/dx, of x's shape: {y, g}.
template <class F, detail::Differentiable X>
[[nodiscard]] auto value_and_grad(const F& f, const X& x, DerivativeOptions options = {}) {
  return detail::pair_of<X>(
      detail::value_and_grad(detail::function_of<X>(f), detail::variables_of(x), options));
}

/// The vector-Jacobian product: {y, v J} with y = f(x), J = dy/dx, and v of y's shape; one pass.
/// https://pytorch.org/docs/stable/generated/torch.autograd.functional.vjp.html
template <class F, detail::Differentiable X>
[[nodiscard]] auto vjp(const F& f, const X& x, const typename detail::ValueForm<X>::type& v,
                       DerivativeOptions options = {}) {
  return detail::pair_of<X>(detail::vjp(detail::function_of<X>(f), detail::variables_of(x),
                                        detail::ValueArgument<X>::in(v), options));
}

/// The Jacobian-vector product: {y, J v} with y = f(x), J = dy/dx, and v of x's shape, by two passes: u J is
/// linear in u, and its derivative in the direction v is J v. For further products, linearize() needs one
/// pass each. https://pytorch.org/docs/stable/generated/torch.autograd.functional.jvp.html
template <class F, detail::Differentiable X>
[[nodiscard]] std::pair<detail::ValueOf<X>, detail::ValueOf<X>> jvp(const F& f, const X& x, const X& v,
                                                                    DerivativeOptions options = {}) {
  auto found =
      detail::jvp(detail::function_of<X>(f), detail::variables_of(x), detail::variables_of(v), options);
  return {detail::ValueArgument<X>::out(std::move(found.value)),
          detail::ValueArgument<X>::out(std::move(found.derivatives.front()))};
}

/// The Hessian-vector product: {y, H v} with y = f(x), which must have one element, H = d2y/dx2, and v of x's
/// shape, by a backward pass through a backward pass.
/// https://pytorch.org/docs/stable/generated/torch.autograd.functional.hvp.html
template <class F, detail::Differentiable X>
[[nodiscard]] auto hvp(const F& f, const X& x, const X& v, DerivativeOptions options = {}) {
  return detail::pair_of<X>(
      detail::hvp(detail::function_of<X>(f), detail::variables_of(x), detail::variables_of(v), options));
}

/// dy/dx with y = f(x), of shape (y..., x...); for a vector of inputs, a vector with one for each.
/// https://pytorch.org/docs/stable/generated/torch.autograd.functional.jacobian.html
template <class F, detail::Differentiable X>
[[nodiscard]] auto jacobian(const F& f, const X& x, const JacobianOptions& options = {}) {
  return detail::in_form_of<X>(detail::jacobian(detail::function_of<X>(f), detail::variables_of(x), options));
}

/// d2y/dx2 with y = f(x), which must have one element (one for each copy and sample): of shape (x..., x...).
/// For a vector of inputs, element [i][j] is d2y/dx_i dx_j, of shape (x_i..., x_j...).
/// https://pytorch.org/docs/stable/generated/torch.autograd.functional.hessian.html
template <class F, detail::Differentiable X>
[[nodiscard]] auto hessian(const F& f, const X& x, const JacobianOptions& options = {}) {
  auto found = detail::hessian(detail::function_of<X>(f), detail::variables_of(x), options);
  if constexpr (detail::Argument<X>::is_list) {
    std::vector<typename detail::Argument<X>::Result> rows;
    for (auto& row : found) rows.push_back(detail::in_form_of<X>(std::move(row)));
    return rows;
  } else {
    return detail::in_form_of<X>(std::move(found.front()));
  }
}

/// The linearization of f at x, f(x) + J (. - x) with J = df/dx, for iterative solvers that need many
/// products J v and u J.
template <detail::Differentiable X>
class [[nodiscard]] Linearization {
 public:
  /// Use linearize().
  explicit Linearization(detail::Tangents<detail::ElementOf<X>> tangents) : tangents_(std::move(tangents)) {}

  /// f(x)
  [[nodiscard]] detail::ValueOf<X> value() const { return detail::ValueArgument<X>::out(tangents_.value()); }

  /// J v, for v of x's shape, by one pass.
  [[nodiscard]] detail::ValueOf<X> operator()(const X& v) const {
    return detail::ValueArgument<X>::out(tangents_.apply(detail::variables_of(v)));
  }

  /// u J, for u of f(x)'s shape, by one pass.
  [[nodiscard]] auto transposed(const typename detail::ValueForm<X>::type& u) const {
    return detail::in_form_of<X>(tangents_.apply_transposed(detail::ValueArgument<X>::in(u)));
  }

 private:
  detail::Tangents<detail::ElementOf<X>> tangents_;
};

/// Linearizes f at x: calls f once; each product with its Jacobian afterwards is one pass.
/// https://docs.jax.dev/en/latest/_autosummary/jax.linearize.html
template <class F, detail::Differentiable X>
Linearization<X> linearize(const F& f, const X& x, DerivativeOptions options = {}) {
  return Linearization<X>(
      detail::Tangents<detail::ElementOf<X>>(detail::function_of<X>(f), detail::variables_of(x), options));
}

}  // namespace xgrad
