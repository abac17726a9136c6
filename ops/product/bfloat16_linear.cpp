#include "bfloat16_linear.hpp"

#include <algorithm>

#include "../../graph/fused.hpp"
#include "../../kernels/gemm/few_rows.hpp"
#include "../../kernels/gemm/gemm.hpp"
#include "../../kernels/gemm/linear.hpp"
#include "../../kernels/low_precision/bfloat16.hpp"
#include "../../kernels/rows/reduce.hpp"
#include "../detail/kernel_grads.hpp"
#include "linear.hpp"

namespace xgrad {
namespace {

constexpr const char* bfloat16_op = ops::bfloat16_linear.name;

/// Calls f(rows, first) for the rows of the weight as T, some at a time, from row `first` on.
template <class T, class F>
void for_blocks(const Bfloat16Weight& weight, const F& f) {
  constexpr std::size_t most_numbers = std::size_t{1} << 20;
  const std::size_t out = weight.shape()[0], in = weight.shape()[1];
  const std::size_t height =
      std::clamp<std::size_t>(most_numbers / std::max<std::size_t>(in, 1), 1, std::max<std::size_t>(out, 1));
  Variable<T> memory = detail::empty<T>(Shape{height, in}, bfloat16_op);
  for (std::size_t first = 0; first < out; first += height) {
    const std::size_t rows = std::min(height, out - first);
    kernels::from_bfloat16(weight.bits().data() + first * in, detail::data(memory), rows * in);
    f(kernels::Matrix<const T>(detail::data(memory), rows, in), first);
  }
}

}  // namespace

Bfloat16Weight::Bfloat16Weight(const Array<float>& weight) {
  if (weight.dimension() != 2)
    detail::fail<ShapeError>("Bfloat16Weight: weight must be (out, in), got ", weight.shape());
  out_ = weight.shape(0), in_ = weight.shape(1);
  std::vector<std::uint16_t> bits(weight.size());
  std::transform(weight.data(), weight.data() + weight.size(), bits.begin(),
                 [](float x) { return static_cast<std::uint16_t>(kernels::rounded_bits(x) >> 16); });
  bits_ = std::make_shared<const std::vector<std::uint16_t>>(std::move(bits));
}

Bfloat16Weight::Bfloat16Weight(std::vector<std::uint16_t> bits, const Shape& shape) {
  if (shape.size() != 2 || bits.size() != element_count(shape))
    detail::fail<ShapeError>("Bfloat16Weight: the numbers must fit a shape (out, in), got ", bits.size(),
                             " and ", shape);
  out_ = shape[0], in_ = shape[1];
  bits_ = std::make_shared<const std::vector<std::uint16_t>>(std::move(bits));
}

Array<float> Bfloat16Weight::floats() const {
  Array<float> numbers = Array<float>::from_shape(shape());
  kernels::from_bfloat16(bits_->data(), numbers.data(), bits_->size());
  return numbers;
}

template <class T>
Variable<T> bfloat16_linear(const Variable<T>& x, const Bfloat16Weight& weight,
                            const std::type_identity_t<Variable<T>>& bias) {
  const std::size_t out = weight.shape()[0], in = weight.shape()[1];
  if (x.dimension() == 0 || x.shape().back() != in)
    detail::fail<ShapeError>(bfloat16_op, ": the last axis of x must be weight's last, got x ", x.shape(),
                             " and weight ", weight.shape());
  if (bias.defined() && bias.shape() != Shape{out})
    detail::fail<ShapeError>(bfloat16_op, ": bias must have shape (", out, ") to fit weight ", weight.shape(),
                             ", got ", bias.shape());
  Shape shape = x.shape();
  shape.back() = out;
  const std::size_t rows = row_count(shape);
  Variable<T> y = detail::empty<T>(shape, bfloat16_op);
  const kernels::Matrix<const T> inputs(detail::data(x), rows, in);
  const kernels::Matrix<T> outputs(detail::data(y), rows, out);
  const auto product = [&] {
    if constexpr (std::is_same_v<T, float>) {
      if (rows > 0 && rows <= kernels::most_few_rows)
        return kernels::few_rows_bfloat16(inputs, weight.bits().data(), outputs);
    }
    for_blocks<T>(weight, [&](const kernels::Matrix<const T>& block, std::size_t first) {
      kernels::gemm<T>(1, inputs, block.transpose(), 0, outputs.some_cols(first, block.rows));
    });
  };
  product();
  if (bias.defined()) kernels::add_to_rows<T>(detail::data(y), detail::data(bias), rows, out);
  return fused<T>(
      ops::bfloat16_linear, std::move(y), Inputs(Unread(x), Unread(bias)), Attributes(), Saved(),
      [weight](const Variable<T>& x, const Variable<T>& bias) {
        return linear(x, Variable<T>(Array<T>(xt::cast<T>(weight.floats()))), bias);
      },
      [weight, rows](const Variable<T>& dy, Needs needs, const Variable<T>&,
                     const Variable<T>&) -> Grads<T, 2> {
        auto grads = detail::empty_grads<T, 2>(needs);
        auto& [dx, dbias] = grads;
        const std::size_t out = weight.shape()[0], in = weight.shape()[1];
        const kernels::Matrix<const T> gradients(detail::data(dy), rows, out);
        if (dx.defined()) {
          const kernels::Matrix<T> sum(detail::data(dx), rows, in);
          if (out == 0) std::fill_n(sum.data, rows * in, T(0));
          for_blocks<T>(weight, [&](const kernels::Matrix<const T>& block, std::size_t first) {
            kernels::gemm<T>(1, gradients.some_cols(first, block.rows), block, first == 0 ? T(0) : T(1), sum);
          });
        }
        if (dbias.defined()) kernels::sum_middle<T>(detail::data(dy), 1, rows, out, detail::data(dbias));
        return grads;
      });
}

#define XGRAD_INSTANTIATE(T) \
  template Variable<T> bfloat16_linear(const Variable<T>&, const Bfloat16Weight&, const Variable<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
