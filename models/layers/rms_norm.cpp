#include "rms_norm.hpp"

#include "../../ops/norm/rms_norm.hpp"
#include "../detail/normalized_shape.hpp"

namespace xgrad {

template <class T>
RMSNorm<T>::RMSNorm(Dims normalized_shape, std::optional<double> eps, double offset)
    : RMSNorm(Given{Array<T>(detail::checked_normalized_shape("RMSNorm", normalized_shape),
                             static_cast<T>(1 - offset))},
              eps, offset) {}

template <class T>
RMSNorm<T>::RMSNorm(Given given, std::optional<double> eps, double offset)
    : Module<T>("RMSNorm"),
      normalized_shape_(given.weight.shape().begin(), given.weight.shape().end()),
      eps_(eps),
      offset_(offset) {
  detail::checked_normalized_shape("RMSNorm", normalized_shape_);
  if (eps && !(*eps >= 0)) detail::fail<ValueError>("RMSNorm: eps must be at least 0, got ", *eps);
  weight_ = this->parameter("weight", std::move(given.weight));
}

template <class T>
Variable<T> RMSNorm<T>::operator()(const Variable<T>& x) const {
  const auto scope = this->scope();
  return rms_norm(x, normalized_shape_, weight_, {.eps = eps_, .offset = offset_});
}

template class RMSNorm<float>;
template class RMSNorm<double>;

}  // namespace xgrad
