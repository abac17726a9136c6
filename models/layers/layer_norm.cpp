#include "layer_norm.hpp"

#include "../../ops/norm/layer_norm.hpp"
#include "../detail/normalized_shape.hpp"

namespace xgrad {
template <class T>
LayerNorm<T>::LayerNorm(Dims normalized_shape, double eps)
    : LayerNorm(xt::ones<T>(detail::checked_normalized_shape("LayerNorm", normalized_shape)),
                Array<T>(xt::zeros<T>(detail::checked_normalized_shape("LayerNorm", normalized_shape))),
                eps) {}

template <class T>
LayerNorm<T>::LayerNorm(Array<T> weight, std::optional<Array<T>> bias, double eps)
    : Module<T>("LayerNorm"), normalized_shape_(weight.shape().begin(), weight.shape().end()), eps_(eps) {
  detail::checked_normalized_shape("LayerNorm", normalized_shape_);
  if (bias && !same_shape(weight.shape(), bias->shape())) {
    detail::fail<ShapeError>("LayerNorm: weight and bias must have the same shape, got ", weight.shape(),
                             " and ", bias->shape());
  }
  if (!(eps >= 0)) detail::fail<ValueError>("LayerNorm: eps must be at least 0, got ", eps);
  weight_ = this->parameter("weight", std::move(weight));
  if (bias) bias_ = this->parameter("bias", std::move(*bias));
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
