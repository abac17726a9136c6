#include "prelu.hpp"

#include "../index/masked_fill.hpp"
#include "../shape/shapes.hpp"
#include "arithmetic.hpp"
#include "elementwise.hpp"

namespace xgrad {

template <class T>
Variable<T> prelu(const Variable<T>& x, const Variable<T>& weight) {
  const std::size_t channels = x.dimension() < 2 ? 1 : x.shape(1);
  if (weight.dimension() > 1 || (weight.size() != 1 && weight.size() != channels)) {
    detail::fail<ShapeError>("prelu: weight must have shape (", channels, "), (1) or () to fit x ", x.shape(),
                             ", got ", weight.shape());
  }
  Shape shape(x.dimension() < 2 ? x.dimension() : x.dimension() - 1, 1);
  if (!shape.empty()) shape[0] = weight.size();
  const Variable<T> negative = masked_fill(x, Mask(x.value() > T(0)), T(0));
  return relu(x) + negative * reshape(weight, shape);
}

#define XGRAD_INSTANTIATE(T) template Variable<T> prelu(const Variable<T>&, const Variable<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
