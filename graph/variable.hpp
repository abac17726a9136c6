#pragma once

#include <span>
#include <type_traits>
#include <vector>

#include "../base/array.hpp"
#include "../base/detail/arrays/expression.hpp"
#include "../base/detail/by_name.hpp"
#include "../base/dims.hpp"
#include "../base/error.hpp"
#include "detail/node.hpp"
#include "grad_mode.hpp"

namespace xgrad {

/// How backward() treats the graph (torch.Tensor.backward).
struct BackwardOptions {
  detail::ByName by_name = {};
  bool retain_graph = false;  ///< keep the saved values, for another backward
  bool create_graph = false;  ///< record the backward pass; implies retain_graph
};

namespace detail {

template <class T>
struct Access;

}  // namespace detail

/// A handle to an array that may take part in differentiation: a shared value and an optional shared node of
/// the graph. Copies alias. A default-constructed Variable is undefined: it has neither.
///
/// The user makes a leaf from an array; with `requires_grad`, backward() fills its grad(). Results of
/// operations are recorded if grad_enabled() and an input requires a gradient. Several threads may read the
/// same handles; concurrent backward passes must not share nodes, neither leaves nor results.
template <Real T = float>
class [[nodiscard]] Variable {
 public:
  using value_type = T;

  Variable() = default;
  Variable(const Variable&) = default;
  Variable(Variable&&) = default;
  /// Makes this a handle of another array.
  Variable& operator=(const Variable&) & = default;
  Variable& operator=(Variable&&) & = default;
  /// Does not compile: nothing would keep what a temporary is assigned.
  template <class E>
  void operator=(E&&) && {
    static_assert(
        sizeof(E) == 0,
        "a temporary Variable, such as x.grad(), keeps nothing: use x.set_grad(...) or x.assign(...)");
  }

  /// A scalar, of shape (); rounded to T. B is bool: in V{1, 1} an integer is no requires_grad.
  template <class S, std::same_as<bool> B = bool>
  requires detail::Number<S> Variable(S scalar, B requires_grad = false)
      : Variable(Scalar{static_cast<T>(scalar)}, requires_grad) {}

  /// A bool or a character is no number.
  template <std::integral S>
  requires(!detail::Integer<S>) Variable(S scalar, bool requires_grad = false)
  = delete;

  /// A list, of shape (N): Variable<double>({1.0, 2.0}), Variable<double>({5}).
  template <class E, std::size_t N, std::same_as<bool> B = bool>
  requires detail::Number<E> Variable(const E (&elements)[N], B requires_grad = false)
      : Variable(detail::array_of<T, E>(elements), requires_grad) {}

  /// Moves an array in. Throws ShapeError for a moved-from array.
  template <std::same_as<bool> B = bool>
  Variable(Array<T> array, B requires_grad = false) : Variable(Owned{std::move(array)}, requires_grad) {}

  /// Evaluates any xtensor expression. One of double does not compile for float.
  template <class E, std::same_as<bool> B = bool>
  Variable(const xt::xexpression<E>& expression, B requires_grad = false)
      : Variable(detail::evaluated<T>(expression), requires_grad) {}

  /// False for a default-constructed Variable.
  [[nodiscard]] bool defined() const noexcept { return static_cast<bool>(value_); }

  /// The array, valid for the lifetime of its handles; of a temporary handle, a copy. Throws GraphError for
  /// an undefined variable, as does everything that reads a value.
  [[nodiscard]] const Array<T>& value() const& { return checked("value").array; }
  [[nodiscard]] Array<T> value() && { return checked("value").array; }
  [[nodiscard]] const Shape& shape() const& { return checked("value").array.shape(); }
  [[nodiscard]] Shape shape() && { return checked("value").array.shape(); }
  [[nodiscard]] std::size_t dimension() const { return checked("value").array.dimension(); }
  [[nodiscard]] std::size_t size() const { return checked("value").array.size(); }

  /// The length of one axis; negative axes count from the end. Throws IndexError.
  [[nodiscard]] std::size_t shape(Int axis) const;

  /// The only element. Throws ShapeError unless there is exactly one.
  [[nodiscard]] T item() const;

  /// True for a leaf created with requires_grad, unless Module::requires_grad(false) has frozen it, and for a
  /// result recorded from one.
  [[nodiscard]] bool requires_grad() const noexcept { return node_ && !node_->frozen; }

  /// True unless this is the result of a recorded op.
  [[nodiscard]] bool is_leaf() const noexcept { return !node_ || node_->is_leaf(); }

  /// Name of the op whose result this is; "leaf" for a leaf.
  [[nodiscard]] const char* op() const noexcept { return is_leaf() ? "leaf" : node_->op->name; }

  /// The gradient accumulated by backward() in this leaf. Throws GraphError if it has no gradient.
  Variable grad() const;
  [[nodiscard]] bool has_grad() const noexcept;

  /// Resets the gradient to undefined (torch: zero_grad(set_to_none=True)).
  void zero_grad() const;

  /// Sets the gradient of a leaf that requires one, detached and with an unshared array (torch: x.grad =
  /// gradient). Throws GraphError for another Variable, ShapeError for another shape.
  void set_grad(Variable gradient) const;

  /// Accumulates d(this)/d(leaf) in grad() of every leaf that this depends on. This must have one element.
  /// Throws GraphError for a Variable without graph, a released graph or a saved value changed in place.
  void backward(BackwardOptions options = {}) const;

  /// backward() for any shape, from `seed` = d(loss)/d(this), which must have this shape.
  void backward(const Variable& seed, BackwardOptions options = {}) const;

  /// Use backward({.retain_graph = true}).
  void backward(bool) const = delete;

  /// The same value without its graph; shares the array.
  Variable detach() const;

  /// Replaces a leaf's elements in place, for all handles: optimizers, loading. The shape must not change.
  /// The backward of a recorded op that saved the old elements throws GraphError.
  void assign(const Array<T>& elements) const;
  /// Evaluates an xtensor expression. One of double does not compile for float.
  template <class E>
  void assign(const xt::xexpression<E>& expression) const {
    assign(detail::evaluated<T>(expression));
  }

  // A number, of any type, is rounded to T.
  friend Variable operator+(const Variable& a, const Variable& b) { return add(a, b); }
  template <detail::Number N>
  friend Variable operator+(const Variable& a, N b) {
    return add(a, static_cast<T>(b));
  }
  template <detail::Number N>
  friend Variable operator+(N a, const Variable& b) {
    return add(b, static_cast<T>(a));
  }
  friend Variable operator-(const Variable& a, const Variable& b) { return sub(a, b); }
  template <detail::Number N>
  friend Variable operator-(const Variable& a, N b) {
    return sub(a, static_cast<T>(b));
  }
  template <detail::Number N>
  friend Variable operator-(N a, const Variable& b) {
    return add(neg(b), static_cast<T>(a));
  }
  friend Variable operator*(const Variable& a, const Variable& b) { return mul(a, b); }
  template <detail::Number N>
  friend Variable operator*(const Variable& a, N b) {
    return mul(a, static_cast<T>(b));
  }
  template <detail::Number N>
  friend Variable operator*(N a, const Variable& b) {
    return mul(b, static_cast<T>(a));
  }
  friend Variable operator/(const Variable& a, const Variable& b) { return div(a, b); }
  template <detail::Number N>
  friend Variable operator/(const Variable& a, N b) {
    return div(a, static_cast<T>(b));
  }
  template <detail::Number N>
  friend Variable operator/(N a, const Variable& b) {
    return div(Variable(a), b);
  }
  friend Variable operator-(const Variable& a) { return neg(a); }

 private:
  friend struct detail::Access<T>;

  struct Scalar {
    T value;
  };
  struct Owned {
    Array<T> array;
  };
  Variable(Scalar scalar, bool requires_grad);
  Variable(Owned owned, bool requires_grad);

  detail::Value<T>& checked(const char* what) const {
    if (!value_) [[unlikely]]
      detail::fail<GraphError>(what, ": the variable is undefined (moved from?)");
    return *value_;
  }

  detail::Ref<detail::Value<T>> value_;
  detail::Ref<detail::Node<T>> node_;
};

/// Options of grad() (torch.autograd.grad).
template <class T>
struct GradOptions {
  detail::ByName by_name = {};
  Variable<T> seed = {};      ///< d(loss)/d(output), of its shape; required unless output has one element
  bool retain_graph = false;  ///< keep the saved values, for another backward
  bool create_graph = false;  ///< record, so that the gradients are differentiable; implies retain_graph
  bool allow_unused = false;  ///< return an undefined Variable for an input that output does not depend on,
                              ///< instead of an error
};

/// d(output)/d(input) for each of the inputs, leaves or results of operations; changes no grad(). Throws
/// GraphError as backward() does, and for an input that requires no gradient or is unused.
template <class T>
[[nodiscard]] std::vector<Variable<T>> grad(const Variable<T>& output, const std::vector<Variable<T>>& inputs,
                                            const GradOptions<std::type_identity_t<T>>& options = {});

// Operators of Variable; defined in the ops library.
template <class T>
Variable<T> add(const Variable<T>& a, const Variable<T>& b);
template <class T>
Variable<T> add(const Variable<T>& a, std::type_identity_t<T> b);
template <class T>
Variable<T> sub(const Variable<T>& a, const Variable<T>& b);
template <class T>
Variable<T> sub(const Variable<T>& a, std::type_identity_t<T> b);
template <class T>
Variable<T> mul(const Variable<T>& a, const Variable<T>& b);
template <class T>
Variable<T> mul(const Variable<T>& a, std::type_identity_t<T> b);
template <class T>
Variable<T> div(const Variable<T>& a, const Variable<T>& b);
template <class T>
Variable<T> div(const Variable<T>& a, std::type_identity_t<T> b);
template <class T>
Variable<T> neg(const Variable<T>& x);

namespace detail {

template <class V>
inline constexpr bool is_variable = false;
template <class T>
inline constexpr bool is_variable<Variable<T>> = true;

/// One of A and B is a Variable, the other an xtensor expression.
template <class A, class B>
concept VariableAndExpression = (is_variable<std::remove_cvref_t<A>> && is_expression<B>) ||
                                (is_expression<A> && is_variable<std::remove_cvref_t<B>>);

template <class A, class B>
using variable_of =
    std::conditional_t<is_variable<std::remove_cvref_t<A>>, std::remove_cvref_t<A>, std::remove_cvref_t<B>>;

/// An operand of an operator as a Variable.
template <class V, class A>
V operand(A&& a) {
  static_assert(
      !IdsExpression<A>,
      "an array of integers is no operand, as integers divide without a remainder and overflow: write "
      "xt::cast<float>(array) for each such array, before it is computed with");
  return V(std::forward<A>(a));
}

}  // namespace detail

// Variable with xtensor expression. Without these overloads, xtensor's operators would treat the Variable as
// a scalar.
template <class A, class B>
requires detail::VariableAndExpression<A, B> detail::variable_of<A, B>
operator+(A&& a, B&& b) {
  return add(detail::operand<detail::variable_of<A, B>>(a), detail::operand<detail::variable_of<A, B>>(b));
}
template <class A, class B>
requires detail::VariableAndExpression<A, B> detail::variable_of<A, B>
operator-(A&& a, B&& b) {
  return sub(detail::operand<detail::variable_of<A, B>>(a), detail::operand<detail::variable_of<A, B>>(b));
}
template <class A, class B>
requires detail::VariableAndExpression<A, B> detail::variable_of<A, B>
operator*(A&& a, B&& b) {
  return mul(detail::operand<detail::variable_of<A, B>>(a), detail::operand<detail::variable_of<A, B>>(b));
}
template <class A, class B>
requires detail::VariableAndExpression<A, B> detail::variable_of<A, B>
operator/(A&& a, B&& b) {
  return div(detail::operand<detail::variable_of<A, B>>(a), detail::operand<detail::variable_of<A, B>>(b));
}

namespace detail {

/// Access to the internals of handles, for the graph, the ops and the optimizers.
template <class T>
struct Access {
  static Variable<T> make(Ref<Value<T>> value, Ref<Node<T>> node) {
    Variable<T> variable;
    variable.value_ = std::move(value);
    variable.node_ = std::move(node);
    return variable;
  }
  static const Ref<Value<T>>& value(const Variable<T>& v) { return v.value_; }
  static Ref<Value<T>>& value(Variable<T>& v) { return v.value_; }
  static const Ref<Node<T>>& node(const Variable<T>& v) { return v.node_; }
  static Ref<Node<T>>& node(Variable<T>& v) { return v.node_; }
};

/// The elements of a new, unshared result.
template <class T>
T* data(Variable<T>& fresh) {
  return Access<T>::value(fresh)->array.data();
}

template <class T>
const T* data(const Variable<T>& v) {
  return Access<T>::value(v)->array.data();
}

/// The elements, to be changed in place; increments the version.
template <class T>
T* mutable_data(const Variable<T>& v) {
  Value<T>& value = *Access<T>::value(v);
  ++value.version;
  return value.array.data();
}

/// An uninitialized result of this shape. Throws ShapeError, in the name of `op`, for more elements than fit
/// in memory, which inputs with an axis of length 0 may request.
template <class T>
Variable<T> empty(const Shape& shape, const char* op = "result") {
  return Access<T>::make(make_value<T>(shape, op), {});
}

/// grad() whose pass stops at `ends`, which may be inputs.
template <class T>
std::vector<Variable<T>> grad_down_to(const std::vector<Variable<T>>& ends, const Variable<T>& output,
                                      const std::vector<Variable<T>>& inputs, const GradOptions<T>& options);

/// The axis counted from the front. Throws IndexError "op: axis -5 is out of range for x (2, 3)".
std::size_t normalize_axis(const char* op, std::ptrdiff_t axis, const Shape& shape, const char* name = "x");

}  // namespace detail
}  // namespace xgrad
