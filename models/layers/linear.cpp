#include "linear.hpp"

#include <cmath>

#include "../../base/random.hpp"
#include "../detail/kaiming.hpp"
#include "../detail/sizes.hpp"

namespace xgrad {

template <class T>
Linear<T>::Linear(std::size_t in_features, std::size_t out_features, bool bias) : Module<T>("Linear") {
  detail::checked_size("Linear", "in_features", in_features);
  detail::checked_size("Linear", "out_features", out_features);
  const double bound = detail::kaiming_bound(in_features);
  projection_.weight = this->parameter("weight", uniform<T>({out_features, in_features}, -bound, bound));
  if (!bias) return;
  const double bias_bound = 1 / std::sqrt(static_cast<double>(in_features));
  projection_.bias = this->parameter("bias", uniform<T>({out_features}, -bias_bound, bias_bound));
}

template <class T>
Linear<T>::Linear(Array<T> weight, std::optional<Array<T>> bias)
    : Linear(Given{Variable<T>(std::move(weight), true)}, std::move(bias)) {}

template <class T>
Linear<T>::Linear(Given given, std::optional<Array<T>> bias) : Module<T>("Linear") {
  const Shape& weight = given.weight.shape();
  if (weight.size() != 2) detail::fail<ShapeError>("Linear: weight must be (out, in), got ", weight);
  if (bias && !same_shape(bias->shape(), {weight[0]}))
    detail::fail<ShapeError>("Linear: bias must be (out), got ", bias->shape(), " and weight ", weight);
  projection_.weight = this->Module<T>::weight("weight", std::move(given.weight));
  if (!bias) return;
  projection_.bias = this->parameter("bias", std::move(*bias));
  if (projection_.weight.dtype() == DType::I8) this->requires_grad(false);
}

template <class T>
Variable<T> Linear<T>::operator()(const Variable<T>& x) const {
  const auto scope = this->scope();
  return linear(x, projection_.weight, projection_.bias);
}

template class Linear<float>;
template class Linear<double>;

}  // namespace xgrad
