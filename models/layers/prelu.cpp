#include "prelu.hpp"

#include "../../ops/pointwise/prelu.hpp"
#include "../detail/sizes.hpp"

namespace xgrad {

template <class T>
PReLU<T>::PReLU(std::size_t num_parameters, std::type_identity_t<T> init)
    : Module<T>("PReLU"),
      weight_(this->parameter(
          "weight", Array<T>(Shape{detail::checked_size("PReLU", "num_parameters", num_parameters)}, init))) {
}

template <class T>
Variable<T> PReLU<T>::operator()(const Variable<T>& x) const {
  const auto scope = this->scope();
  return prelu(x, weight_);
}

template class PReLU<float>;
template class PReLU<double>;

}  // namespace xgrad
