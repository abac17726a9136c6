#include "dropout.hpp"

#include "../../ops/pointwise/dropout.hpp"
#include "../detail/sizes.hpp"

namespace xgrad {

template <class T>
Dropout<T>::Dropout(double p) : Module<T>("Dropout"), p_(detail::checked_probability("Dropout", "p", p)) {}

template <class T>
Variable<T> Dropout<T>::operator()(const Variable<T>& x) const {
  const auto scope = this->scope();
  return detail::dropout_if_training(x, p_, this->training());
}

template class Dropout<float>;
template class Dropout<double>;

}  // namespace xgrad
