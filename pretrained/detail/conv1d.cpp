#include "conv1d.hpp"

#include <vector>

#include "../../base/error.hpp"
#include "../../ops/index/indexing.hpp"
#include "../../ops/pointwise/arithmetic.hpp"
#include "../../ops/product/matmul.hpp"
#include "../../ops/shape/rearrange.hpp"
#include "../../ops/shape/shapes.hpp"

namespace xgrad::pretrained::detail {

template <class T>
Variable<T> conv1d(const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias) {
  const bool fits = x.dimension() == 3 && weight.dimension() == 3 && weight.shape(1) > 0 && x.shape(2) > 0 &&
                    x.shape(2) % weight.shape(1) == 0 &&
                    weight.shape(0) % (x.shape(2) / weight.shape(1)) == 0 &&
                    (!bias.defined() || same_shape(bias.shape(), {weight.shape(0)}));
  if (!fits) {
    xgrad::detail::fail<ShapeError>(
        "conv1d: x (batch, L, G I), weight (O, I, K) and bias (O) must fit together, got x ", x.shape(),
        ", weight ", weight.shape(), " and bias ", bias.defined() ? bias.shape() : Shape());
  }
  const std::size_t batch = x.shape(0), length = x.shape(1), out = weight.shape(0), in = weight.shape(1),
                    width = weight.shape(2), groups = x.shape(2) / in;
  if (width % 2 == 0) xgrad::detail::fail<ValueError>("conv1d: the width of weight must be odd, got ", width);
  const Variable<T> padded = pad(x, {0, 0, width / 2, width / 2});
  std::vector<Variable<T>> shifted;
  for (std::size_t s = 0; s < width; ++s) shifted.push_back(narrow(padded, 1, s, length));
  const Variable<T> columns =
      permute(reshape(stack(shifted, 2), {batch * length, width, groups, in}), {2, 0, 1, 3});
  const Variable<T> filters = permute(reshape(weight, {groups, out / groups, in, width}), {0, 3, 2, 1});
  const Variable<T> y = matmul(reshape(columns, {groups, batch * length, width * in}),
                               reshape(filters, {groups, width * in, out / groups}));
  const Variable<T> joined = reshape(permute(y, {1, 0, 2}), {batch, length, out});
  return bias.defined() ? joined + bias : joined;
}

template Variable<float> conv1d(const Variable<float>&, const Variable<float>&, const Variable<float>&);
template Variable<double> conv1d(const Variable<double>&, const Variable<double>&, const Variable<double>&);

}  // namespace xgrad::pretrained::detail
