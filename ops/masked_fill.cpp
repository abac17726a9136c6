#include <xgrad/ops/masked_fill.hpp>

#include <xtensor/xbroadcast.hpp>

#include <xgrad/graph/record.hpp>
#include <xgrad/ops/arithmetic.hpp>

namespace xgrad {

template <class T>
Variable<T> masked_fill(const Variable<T>& x, const Mask& mask, std::type_identity_t<T> value) {
  const Shape shape = detail::broadcast_shape("masked_fill", x.shape(), mask.shape(), "x", "mask");
  if (shape != x.shape()) return masked_fill(broadcast_to(x, shape), mask, value);
  if (shape != mask.shape()) return masked_fill(x, Mask(xt::broadcast(mask, shape)), value);

  Variable<T> y = detail::empty<T>(shape);
  const T* from = detail::data(x);
  const bool* masked = mask.data();
  T* to = detail::data(y);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const T kept = from[i];
    to[i] = masked[i] ? value : kept;
  }
  if (!records(x)) return y;
  return record<T>("masked_fill", std::move(y), on(x), save(),
                   [mask](Variable<T> dy, Needs) -> Grads<T, 1> { return {masked_fill(dy, mask, 0)}; });
}

template Variable<float> masked_fill(const Variable<float>&, const Mask&, float);
template Variable<double> masked_fill(const Variable<double>&, const Mask&, double);

}  // namespace xgrad
