#include "masked_fill.hpp"

#include "../../graph/record.hpp"
#include "../../kernels/pointwise/binary.hpp"
#include "../pointwise/broadcast.hpp"

namespace xgrad {

template <class T>
Variable<T> masked_fill(const Variable<T>& x, const Mask& mask, std::type_identity_t<T> value) {
  const Shape shape = detail::broadcast_shape("masked_fill", x.shape(), mask.shape(), "x", "mask");
  Variable<T> y = detail::empty<T>(shape, "masked_fill");
  const detail::Strides mask_strides = detail::broadcast_strides(mask.shape(), shape),
                        x_strides = detail::broadcast_strides(x.shape(), shape), constant(shape.size(), 0);
  const Variable<T> filler(value);
  kernels::where<T>(shape, {mask.data(), mask_strides}, {detail::data(filler), constant},
                    {detail::data(x), x_strides}, detail::data(y));
  return record<T>(ops::masked_fill, std::move(y), Inputs(x), Attributes(mask, value), Saved(mask),
                   [](Variable<T> dy, Needs needs, const Mask& mask) -> Grads<T, 1> {
                     return {detail::summed(masked_fill(dy, mask, 0), needs.shape(0))};
                   });
}

#define XGRAD_INSTANTIATE(T) template Variable<T> masked_fill(const Variable<T>&, const Mask&, T);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
