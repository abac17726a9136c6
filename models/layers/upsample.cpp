#include "upsample.hpp"

#include "../../base/error.hpp"

namespace xgrad {

template <class T>
Upsample<T>::Upsample(Dims scale_factor, InterpolateOptions options)
    : Module<T>("Upsample"), scale_factor_(std::move(scale_factor)), options_(options) {
  for (const std::ptrdiff_t factor : scale_factor_)
    if (factor < 1) detail::fail<ValueError>("Upsample: scale_factor must be at least 1, got ", factor);
}

template <class T>
Variable<T> Upsample<T>::operator()(const Variable<T>& x) const {
  const auto scope = this->scope();
  const std::size_t axes = x.dimension() < 2 ? 0 : x.dimension() - 2, factors = scale_factor_.size();
  if (axes == 0 || (factors != 1 && factors != axes)) {
    detail::fail<ShapeError>("Upsample: x must have ", factors == 1 ? "one or two" : "two",
                             " axes behind its channels, got ", x.shape());
  }
  Shape size;
  for (std::size_t axis = 0; axis < axes; ++axis)
    size.push_back(x.shape(axis + 2) * static_cast<std::size_t>(scale_factor_[axis % factors]));
  return interpolate(x, size, options_);
}

template class Upsample<float>;
template class Upsample<double>;

}  // namespace xgrad
