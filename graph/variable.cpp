#include "variable.hpp"

#include <algorithm>

#include "detail/leaf.hpp"

namespace xgrad {
namespace {

template <class T>
detail::LeafNode<T>* leaf_of(const Variable<T>& variable) noexcept {
  detail::Node<T>* node = detail::Access<T>::node(variable).get();
  return node != nullptr && node->is_leaf() ? static_cast<detail::LeafNode<T>*>(node) : nullptr;
}

}  // namespace

template <Real T>
Variable<T>::Variable(Owned owned, bool requires_grad) {
  Array<T>& array = owned.array;
  // before it becomes a value, which is recycled when it goes
  detail::check_count("Variable", array.shape());
  if (array.storage().size() != element_count(array.shape())) {
    detail::fail<ShapeError>("Variable: the array must own its elements, got a moved-from array");
  }
  value_ = detail::Ref<detail::Value<T>>(new detail::Value<T>(std::move(array)));
  if (requires_grad) node_ = detail::Ref<detail::Node<T>>(new detail::LeafNode<T>(shape()));
}

template <Real T>
Variable<T>::Variable(Scalar scalar, bool requires_grad)
    : value_(detail::make_value<T>(Shape{}, "Variable")) {
  *value_->array.data() = scalar.value;
  if (requires_grad) node_ = detail::Ref<detail::Node<T>>(new detail::LeafNode<T>(Shape{}));
}

template <Real T>
std::size_t Variable<T>::shape(Int axis) const {
  return shape()[detail::normalize_axis("shape", axis, shape())];
}

template <Real T>
T Variable<T>::item() const {
  if (size() != 1) detail::fail<ShapeError>("item: the variable must have one element, got shape ", shape());
  return *value().data();
}

template <Real T>
Variable<T> Variable<T>::grad() const {
  checked("grad");
  if (!requires_grad())
    detail::fail<GraphError>("grad: the variable ", shape(), " does not require a gradient");
  const detail::LeafNode<T>* leaf = leaf_of(*this);
  if (leaf == nullptr) {
    detail::fail<GraphError>("grad: only leaves keep a gradient, this is the result of '", op(),
                             "'; use xgrad::grad(y, {x})");
  }
  if (!leaf->grad.defined()) {
    detail::fail<GraphError>("grad: the variable ", shape(),
                             " has no gradient yet; call backward() on a result of it first");
  }
  return leaf->grad;
}

template <Real T>
bool Variable<T>::has_grad() const noexcept {
  const detail::LeafNode<T>* leaf = leaf_of(*this);
  return leaf != nullptr && leaf->grad.defined();
}

template <Real T>
void Variable<T>::zero_grad() const {
  if (detail::LeafNode<T>* const leaf = leaf_of(*this)) leaf->grad = {};
}

template <Real T>
void Variable<T>::set_grad(Variable gradient) const {
  checked("set_grad");
  detail::LeafNode<T>* leaf = leaf_of(*this);
  if (leaf == nullptr || leaf->frozen) {
    detail::fail<GraphError>("set_grad: only a leaf that requires a gradient keeps one, this ",
                             requires_grad()
                                 ? detail::join({"is the result of '", op(), "'"})
                                 : detail::join({"variable ", to_string(shape()), " requires none"}));
  }
  if (!gradient.defined())
    detail::fail<GraphError>(
        "set_grad: the gradient must be defined, got an undefined one; zero_grad() clears it");
  if (gradient.shape() != shape()) {
    detail::fail<ShapeError>("set_grad: the gradient must have the variable's shape ", shape(), ", got ",
                             gradient.shape());
  }
  gradient.node_ = {};
  leaf->grad = gradient.value_->refs.unique() ? std::move(gradient) : Variable(gradient.value());
}

template <Real T>
Variable<T> Variable<T>::detach() const {
  checked("detach");
  return detail::Access<T>::make(value_, {});
}

template <Real T>
void Variable<T>::assign(const Array<T>& elements) const {
  checked("assign");
  if (!is_leaf()) {
    detail::fail<GraphError>("assign: only a leaf can be changed in place, this is the result of '", op(),
                             "'");
  }
  if (elements.shape() != shape()) {
    detail::fail<ShapeError>("assign: elements must have the variable's shape ", shape(), ", got ",
                             elements.shape());
  }
  std::copy(elements.data(), elements.data() + elements.size(), detail::mutable_data(*this));
}

namespace detail {

std::size_t normalize_axis(const char* op, std::ptrdiff_t axis, const Shape& shape, const char* name) {
  const auto rank = static_cast<std::ptrdiff_t>(shape.size());
  if (axis < -rank || axis >= rank) [[unlikely]] {
    fail<IndexError>(op, ": axis ", axis, " is out of range for ", name, " ", shape);
  }
  return static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
}

}  // namespace detail

template class Variable<float>;
template class Variable<double>;

}  // namespace xgrad
