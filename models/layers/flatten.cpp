#include "flatten.hpp"

#include "../../ops/shape/shapes.hpp"

namespace xgrad {

template <class T>
Flatten<T>::Flatten(Int start_dim, Int end_dim)
    : Module<T>("Flatten"), start_dim_(start_dim), end_dim_(end_dim) {}

template <class T>
Variable<T> Flatten<T>::operator()(const Variable<T>& x) const {
  const auto scope = this->scope();
  return flatten(x, start_dim_, end_dim_);
}

template class Flatten<float>;
template class Flatten<double>;

}  // namespace xgrad
