#include "rotary.hpp"

#include <algorithm>

#include "../../graph/fused.hpp"
#include "../../kernels/attention/rotary.hpp"
#include "../detail/kernel_grads.hpp"
#include "../index/indexing.hpp"
#include "../pointwise/arithmetic.hpp"
#include "../shape/shapes.hpp"

namespace xgrad {
namespace {

template <class T>
kernels::RotarySizes rotary_sizes(const Variable<T>& x, const Variable<T>& cos, const Variable<T>& sin,
                                  const RotaryOptions& options) {
  if (options.num_heads == 0) throw ValueError("rotary: num_heads must be at least 1, got 0");
  const Shape &shape = x.shape(), &angles = cos.shape();
  const std::size_t rank = shape.size(), heads = options.num_heads;
  const bool of_each_row =
      angles.size() == rank && std::equal(shape.begin(), shape.end() - 1, angles.begin());
  const bool of_positions = angles.size() == 2 && rank >= 2 && angles[0] == shape[rank - 2];
  if (rank < 2 || !(of_each_row || of_positions) || !same_shape(angles, sin.shape()) ||
      shape.back() % heads != 0 || 2 * angles.back() > shape.back() / heads) {
    detail::fail<ShapeError>(
        "rotary: x must be (..., L, H E), cos and sin (L, r) or (..., L, r) with 2 r <= E, ", "got x ", shape,
        ", cos ", angles, " and sin ", sin.shape(), " for ", heads, " heads");
  }
  return {row_count(shape),  heads,         shape.back() / heads,
          row_count(angles), angles.back(), options.interleaved};
}

template <class T>
Variable<T> rotary_composed(const kernels::RotarySizes& sizes, const Variable<T>& x, const Variable<T>& cos,
                            const Variable<T>& sin) {
  const auto pairs = static_cast<std::ptrdiff_t>(sizes.pairs),
             dim = static_cast<std::ptrdiff_t>(sizes.head_dim);
  const std::size_t batch = sizes.angle_rows > 0 ? sizes.rows / sizes.angle_rows : 0;
  const Variable<T> heads = reshape(x, {batch, sizes.angle_rows, sizes.heads, sizes.head_dim});
  const Dims of_heads{sizes.angle_rows, 1, sizes.pairs};
  const Variable<T> c = reshape(cos, of_heads), s = reshape(sin, of_heads);
  Variable<T> a, b;
  if (sizes.interleaved) {
    const Variable<T> couples = reshape(narrow(heads, 3, 0, 2 * pairs),
                                        {batch, sizes.angle_rows, sizes.heads, sizes.pairs, std::size_t{2}});
    a = select(couples, 4, 0);
    b = select(couples, 4, 1);
  } else {
    a = narrow(heads, 3, 0, pairs);
    b = narrow(heads, 3, pairs, pairs);
  }
  const Variable<T> first = a * c - b * s, second = b * c + a * s;
  Variable<T> y = sizes.interleaved ? reshape(stack({first, second}, 4),
                                              {batch, sizes.angle_rows, sizes.heads, 2 * sizes.pairs})
                                    : cat({first, second}, 3);
  if (2 * pairs < dim) y = cat({y, narrow(heads, 3, 2 * pairs, dim - 2 * pairs)}, 3);
  return reshape(y, x.shape());
}

}  // namespace

template <class T>
Variable<T> rotary(const Variable<T>& x, const Variable<T>& cos, const Variable<T>& sin,
                   RotaryOptions options) {
  const kernels::RotarySizes sizes = rotary_sizes(x, cos, sin, options);
  Variable<T> y = detail::empty<T>(x.shape());
  kernels::rotary<T>(sizes, detail::data(x), detail::data(cos), detail::data(sin), false, detail::data(y));
  return fused<T>(
      ops::rotary, std::move(y), Inputs(x, cos, sin), Attributes(options.num_heads, options.interleaved),
      Saved(),
      [sizes](const Variable<T>& x, const Variable<T>& cos, const Variable<T>& sin) {
        return rotary_composed(sizes, x, cos, sin);
      },
      [sizes](const Variable<T>& dy, Needs needs, const Variable<T>& x, const Variable<T>& cos,
              const Variable<T>& sin) -> Grads<T, 3> {
        Grads<T, 3> grads;
        if (needs[0]) {
          grads[0] = detail::empty_grad<T>(needs, 0);
          kernels::rotary<T>(sizes, detail::data(dy), detail::data(cos), detail::data(sin), true,
                             detail::data(grads[0]));
        }
        if (needs[1] || needs[2]) {
          Variable<T> dcos = detail::empty<T>(cos.shape()), dsin = detail::empty<T>(cos.shape());
          kernels::rotary_grad_angles<T>(sizes, detail::data(dy), detail::data(x), detail::data(dcos),
                                         detail::data(dsin));
          if (needs[1]) grads[1] = std::move(dcos);
          if (needs[2]) grads[2] = std::move(dsin);
        }
        return grads;
      });
}

#define XGRAD_INSTANTIATE(T) \
  template Variable<T> rotary(const Variable<T>&, const Variable<T>&, const Variable<T>&, RotaryOptions);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
