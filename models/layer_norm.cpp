#include "layer_norm.hpp"

#include "../ops/norm/layer_norm.hpp"

namespace xgrad {
namespace {

Shape checked_shape(const Dims& normalized_shape) {
  Shape shape;
  for (const std::ptrdiff_t length : normalized_shape) {
    if (length < 1) {
      detail::fail<ValueError>("LayerNorm: lengths of normalized_shape must be at least 1, got ", length);
    }
    shape.push_back(static_cast<std::size_t>(length));
  }
  if (shape.empty()) detail::fail<ValueError>("LayerNorm: normalized_shape must have a length, got ()");
  return shape;
}

}  // namespace

template <class T>
LayerNorm<T>::LayerNorm(Dims normalized_shape, double eps)
    : LayerNorm(xt::ones<T>(checked_shape(normalized_shape)), xt::zeros<T>(checked_shape(normalized_shape)),
                eps) {}

template <class T>
LayerNorm<T>::LayerNorm(Array<T> weight, Array<T> bias, double eps)
    : Module<T>("LayerNorm"), normalized_shape_(weight.shape().begin(), weight.shape().end()), eps_(eps) {
  checked_shape(normalized_shape_);
  if (!same_shape(weight.shape(), bias.shape())) {
    detail::fail<ShapeError>("LayerNorm: weight and bias must have the same shape, got ", weight.shape(),
                             " and ", bias.shape());
  }
  if (!(eps >= 0)) detail::fail<ValueError>("LayerNorm: eps must be at least 0, got ", eps);
  weight_ = this->parameter("weight", std::move(weight));
  bias_ = this->parameter("bias", std::move(bias));
}

template <class T>
Variable<T> LayerNorm<T>::operator()(const Variable<T>& x) const {
  const auto scope = this->scope();
  return layer_norm(x, normalized_shape_, weight_, bias_, eps_);
}

template <class T>
Variable<T> LayerNorm<T>::operator()(const Variable<T>& x, const Variable<T>& residual) const {
  const auto scope = this->scope();
  return add_layer_norm(x, residual, normalized_shape_, weight_, bias_, eps_);
}

template class LayerNorm<float>;
template class LayerNorm<double>;

}  // namespace xgrad
