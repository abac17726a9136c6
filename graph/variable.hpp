#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <type_traits>
#include <vector>

#include "../base/array.hpp"
#include "../base/error.hpp"
#include "detail/node.hpp"
#include "grad_mode.hpp"

namespace xgrad {

/// How backward() treats the graph (torch.Tensor.backward).
struct BackwardOptions {
  bool retain_graph = false;  ///< keep what was saved, for another backward
  bool create_graph =
      false;  ///< record the backward pass, so that gradients can be differentiated; retains, too
};

namespace detail {

template <class T>
struct Access;

/// An array of shape (N).
template <class T, class E>
Array<T> array_of(std::span<const E> elements) {
  Array<T> array = Array<T>::from_shape({elements.size()});
  std::transform(elements.begin(), elements.end(), array.data(), [](E e) { return static_cast<T>(e); });
  return array;
}

template <class E>
inline constexpr bool is_expression = xt::is_xexpression<std::remove_cvref_t<E>>::value;

}  // namespace detail

/// A handle to an array that may take part in differentiation: a shared value and, if so, a shared node of
/// the graph. Copies alias. A default-constructed Variable is undefined: it has neither.
///
/// A leaf is made by the user from an array; with `requires_grad` backward() fills its grad(). Results of
/// operations record how they were made while grad_enabled() and an input requires a gradient. Handles may be
/// used by several threads at once as long as none of them writes; concurrent backward passes must not share
/// nodes, neither leaves nor results.
template <Real T = float>
class Variable {
 public:
  using value_type = T;

  Variable() = default;

  /// A scalar, of shape ().
  Variable(T scalar, bool requires_grad = false);

  /// Of a list with more than one element, of shape (N): Variable<double>({1.0, 2.0}).
  template <class E, std::size_t N>
  requires std::is_arithmetic_v<E> Variable(const E (&elements)[N], bool requires_grad = false)
      : Variable(detail::array_of<T, E>(elements), requires_grad) {}

  /// Of an array, which is moved in. Throws ShapeError for one that was moved from.
  Variable(Array<T> array, bool requires_grad = false);

  /// Of any xtensor expression, evaluated here.
  template <class E>
  Variable(const xt::xexpression<E>& expression, bool requires_grad = false)
      : Variable(Array<T>(expression), requires_grad) {}

  /// False for a default-constructed one.
  bool defined() const noexcept { return static_cast<bool>(value_); }

  /// The array, which lives as long as a handle to it does. Throws GraphError for an undefined variable, as
  /// all that reads a value does.
  const Array<T>& value() const { return checked("value").array; }
  const Shape& shape() const { return value().shape(); }
  std::size_t dimension() const { return value().dimension(); }
  std::size_t size() const { return value().size(); }

  /// The length of one axis; negative axes count from the end. Throws IndexError.
  std::size_t shape(int axis) const;

  /// The only element. Throws ShapeError unless there is exactly one.
  T item() const;

  /// True for a leaf that was made so, and for a recorded result of one.
  bool requires_grad() const noexcept { return static_cast<bool>(node_); }

  /// True unless a recorded op made this.
  bool is_leaf() const noexcept { return !node_ || node_->is_leaf(); }

  /// The name of the op that made this, "leaf" for a leaf.
  const char* op() const noexcept { return is_leaf() ? "leaf" : node_->op->name; }

  /// The gradient that backward() accumulated in this leaf. Throws GraphError if there is none (yet).
  Variable grad() const;
  bool has_grad() const noexcept;

  /// Forgets the gradient (torch: zero_grad(set_to_none=True)).
  void zero_grad() const;

  /// Makes this the gradient of a leaf that requires one, cut off from its graph and with an array of its own
  /// (torch: x.grad = gradient). Throws GraphError for another Variable, ShapeError for another shape.
  void set_grad(Variable gradient) const;

  /// Accumulates d(this)/d(leaf) in grad() of every leaf that this was computed from. This must have one
  /// element. Throws GraphError for a Variable without graph, a released graph or a saved value changed in
  /// place.
  void backward(BackwardOptions options = {}) const;

  /// The same for any shape, from `seed` = d(loss)/d(this), which must have this shape.
  void backward(const Variable& seed, BackwardOptions options = {}) const;

  /// Write backward({.retain_graph = true}): a bool would be taken for a seed.
  void backward(bool) const = delete;

  /// The same value, cut off from the graph; shares the array.
  Variable detach() const;

  /// Replaces a leaf's elements in place, for all handles: optimizers, loading. The shape must stay.
  /// A recorded op that saved the old ones will refuse to go backward.
  void assign(const Array<T>& elements) const;

  friend Variable operator+(const Variable& a, const Variable& b) { return add(a, b); }
  friend Variable operator+(const Variable& a, T b) { return add(a, b); }
  friend Variable operator+(T a, const Variable& b) { return add(b, a); }
  friend Variable operator-(const Variable& a, const Variable& b) { return sub(a, b); }
  friend Variable operator-(const Variable& a, T b) { return sub(a, b); }
  friend Variable operator-(T a, const Variable& b) { return add(neg(b), a); }
  friend Variable operator*(const Variable& a, const Variable& b) { return mul(a, b); }
  friend Variable operator*(const Variable& a, T b) { return mul(a, b); }
  friend Variable operator*(T a, const Variable& b) { return mul(b, a); }
  friend Variable operator/(const Variable& a, const Variable& b) { return div(a, b); }
  friend Variable operator/(const Variable& a, T b) { return div(a, b); }
  friend Variable operator/(T a, const Variable& b) { return div(Variable(a), b); }
  friend Variable operator-(const Variable& a) { return neg(a); }

 private:
  friend struct detail::Access<T>;

  detail::Value<T>& checked(const char* what) const {
    if (!value_) [[unlikely]]
      detail::fail<GraphError>(what, ": the variable is undefined");
    return *value_;
  }

  detail::Ref<detail::Value<T>> value_;
  detail::Ref<detail::Node<T>> node_;
};

/// What grad() is asked for (torch.autograd.grad).
template <class T>
struct GradOptions {
  Variable<T> seed = {};      ///< d(loss)/d(output), of its shape; needed unless output has one element
  bool retain_graph = false;  ///< keep what was saved, for another backward
  bool create_graph = false;  ///< record, so that the gradients can be differentiated again; retains, too
  bool allow_unused =
      false;  ///< an input that output does not depend on gives an undefined Variable, no error
};

/// d(output)/d(input) for each of the inputs, leaves or results of operations; no grad() changes.
/// Throws GraphError as backward() does, and for an input that requires no gradient or is not used.
template <class T>
std::vector<Variable<T>> grad(const Variable<T>& output, const std::vector<Variable<T>>& inputs,
                              const GradOptions<std::type_identity_t<T>>& options = {});

/// d(output)/d(leaf) for each of the leaves, as grad() gives it; but each is handed over, with the leaf's
/// place in the list, as soon as the pass adds nothing more to it, while the rest is still to be computed: to
/// send it to another process meanwhile, or to change the leaf and forget the gradient before the next one is
/// there. As in grad(), no grad() changes. Leaves come in the order in which they are complete; with
/// allow_unused, those that output does not depend on come first, with an undefined Variable. What `take`
/// computes is not recorded, unless under create_graph. Throws as grad() does, before it hands over anything;
/// but that an op itself gives no gradient for anything that depends on a leaf is noticed at the end. Throws
/// GraphError for a Variable that is no leaf, too, and ValueError for one that is there twice.
/// https://pytorch.org/docs/stable/generated/torch.Tensor.register_post_accumulate_grad_hook.html
template <class T>
void grad_each(const Variable<T>& output, const std::vector<Variable<T>>& leaves,
               const std::function<void(std::size_t, Variable<std::type_identity_t<T>>)>& take,
               const GradOptions<std::type_identity_t<T>>& options = {});

// The operators of Variable; the ops library defines them.
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

/// The same, where the other may be a number, too.
template <class A, class B>
concept VariableAndConstant =
    VariableAndExpression<A, B> ||
    (is_variable<std::remove_cvref_t<A>>&& std::is_arithmetic_v<std::remove_cvref_t<B>>) ||
    (std::is_arithmetic_v<std::remove_cvref_t<A>> && is_variable<std::remove_cvref_t<B>>);

template <class A, class B>
using variable_of =
    std::conditional_t<is_variable<std::remove_cvref_t<A>>, std::remove_cvref_t<A>, std::remove_cvref_t<B>>;

/// A Variable as it is, a number or an expression as a constant.
template <class V, class X>
V as_variable(X&& x) {
  if constexpr (std::is_arithmetic_v<std::remove_cvref_t<X>>) {
    return V(static_cast<typename V::value_type>(x));
  } else {
    return V(std::forward<X>(x));
  }
}

}  // namespace detail

// Variable with xtensor expression. Without these, xtensor's own operators would take the Variable for a
// scalar.
template <class A, class B>
requires detail::VariableAndExpression<A, B>
auto operator+(A&& a, B&& b) { return add(detail::variable_of<A, B>(a), detail::variable_of<A, B>(b)); }
template <class A, class B>
requires detail::VariableAndExpression<A, B>
auto operator-(A&& a, B&& b) { return sub(detail::variable_of<A, B>(a), detail::variable_of<A, B>(b)); }
template <class A, class B>
requires detail::VariableAndExpression<A, B>
auto operator*(A&& a, B&& b) { return mul(detail::variable_of<A, B>(a), detail::variable_of<A, B>(b)); }
template <class A, class B>
requires detail::VariableAndExpression<A, B>
auto operator/(A&& a, B&& b) { return div(detail::variable_of<A, B>(a), detail::variable_of<A, B>(b)); }

namespace detail {

/// The inside of handles, for the graph, the ops and the optimizers.
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

/// The elements of a result that nothing else refers to yet.
template <class T>
T* data(Variable<T>& fresh) {
  return Access<T>::value(fresh)->array.data();
}

template <class T>
const T* data(const Variable<T>& v) {
  return Access<T>::value(v)->array.data();
}

/// The elements for a change in place; counts as one.
template <class T>
T* mutable_data(const Variable<T>& v) {
  Value<T>& value = *Access<T>::value(v);
  ++value.version;
  return value.array.data();
}

/// A result of this shape, not yet filled. Throws ShapeError, in the name of `op`, for more elements than
/// memory can hold: an axis of length 0 lets inputs without elements ask for that.
template <class T>
Variable<T> empty(const Shape& shape, const char* op = "result") {
  return Access<T>::make(make_value<T>(shape, op), {});
}

/// grad(); but the pass does not go on from `ends`, which may be inputs, to what these were computed from.
template <class T>
std::vector<Variable<T>> grad_down_to(const std::vector<Variable<T>>& ends, const Variable<T>& output,
                                      const std::vector<Variable<T>>& inputs, const GradOptions<T>& options);

/// The axis counted from the front. Throws IndexError "op: axis -5 is out of range for x (2, 3)".
std::size_t normalize_axis(const char* op, std::ptrdiff_t axis, const Shape& shape, const char* name = "x");

}  // namespace detail
}  // namespace xgrad
