#include "linear.hpp"

#include <cmath>

#include "../../base/random.hpp"
#include "../../ops/product/linear.hpp"
#include "../detail/kaiming.hpp"
#include "../detail/sizes.hpp"

namespace xgrad {
namespace {

void check_bias(const Shape& bias, const Shape& weight) {
  if (!same_shape(bias, {weight[0]}))
    detail::fail<ShapeError>("Linear: bias must be (out), got ", bias, " and weight ", weight);
}

}  // namespace

template <class T>
Linear<T>::Linear(std::size_t in_features, std::size_t out_features, bool bias) : Module<T>("Linear") {
  detail::checked_size("Linear", "in_features", in_features);
  detail::checked_size("Linear", "out_features", out_features);
  const double bound = detail::kaiming_bound(in_features);
  weight_ = this->parameter("weight", uniform<T>({out_features, in_features}, -bound, bound));
  if (!bias) return;
  const double bias_bound = 1 / std::sqrt(static_cast<double>(in_features));
  bias_ = this->parameter("bias", uniform<T>({out_features}, -bias_bound, bias_bound));
}

template <class T>
Linear<T>::Linear(Array<T> weight, std::optional<Array<T>> bias) : Module<T>("Linear") {
  if (weight.dimension() != 2)
    detail::fail<ShapeError>("Linear: weight must be (out, in), got ", weight.shape());
  if (bias) check_bias(bias->shape(), weight.shape());
  weight_ = this->parameter("weight", std::move(weight));
  if (bias) bias_ = this->parameter("bias", std::move(*bias));
}

template <class T>
Linear<T>::Linear(Int8Weight weight, std::optional<Array<T>> bias) requires std::same_as<T, float>
    : Module<T>("Linear") {
  if (bias) check_bias(bias->shape(), weight.shape());
  this->add_int8_weight("weight", weight);
  int8_weight_ = std::move(weight);
  if (!bias) return;
  bias_ = this->parameter("bias", std::move(*bias));
  this->requires_grad(false);
}

template <class T>
Linear<T>::Linear(Bfloat16Weight weight, std::optional<Array<T>> bias) : Module<T>("Linear") {
  if (bias) check_bias(bias->shape(), weight.shape());
  this->add_bfloat16_weight("weight", weight);
  bfloat16_weight_ = std::move(weight);
  if (bias) bias_ = this->parameter("bias", std::move(*bias));
}

template <class T>
Variable<T> Linear<T>::operator()(const Variable<T>& x) const {
  const auto scope = this->scope();
  if constexpr (std::is_same_v<T, float>) {
    if (int8_weight_) [[unlikely]]
      return int8_linear(x, *int8_weight_, bias_);
  }
  if (bfloat16_weight_) [[unlikely]]
    return bfloat16_linear(x, *bfloat16_weight_, bias_);
  return linear(x, weight_, bias_);
}

template class Linear<float>;
template class Linear<double>;

}  // namespace xgrad
