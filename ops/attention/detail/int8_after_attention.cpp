#include "int8_after_attention.hpp"

#include "../../../graph/record.hpp"
#include "../../../kernels/low_precision/int8_after_attention.hpp"
#include "../../product/detail/reduced_rows.hpp"

namespace xgrad::detail {
namespace {

constexpr const char* name = ops::int8_after_attention.name;

const float* data_or_null(const Variable<float>& parameter, std::size_t size, const char* part) {
  if (!parameter.defined()) return nullptr;
  if (parameter.shape() != Shape{size})
    fail<ShapeError>(name, ": ", part, " must be (", size, "), got ", parameter.shape());
  return data(parameter);
}

kernels::Int8Layer checked_layer(const Int8LinearLayer& layer, const Shape& wanted, const char* part) {
  if (layer.weight.shape() != wanted)
    fail<ShapeError>(name, ": the weight of ", part, " must be ", wanted, ", got ", layer.weight.shape());
  return {int8_matrix(layer.weight), data_or_null(layer.bias, wanted[0], part)};
}

kernels::Int8LayersNorm checked_norm(const NormLayer& norm, std::size_t width, const char* part) {
  return {data_or_null(norm.weight, width, part), data_or_null(norm.bias, width, part),
          static_cast<float>(norm.eps)};
}

}  // namespace

Variable<float> int8_after_attention(const Variable<float>& context, const Variable<float>& x,
                                     const AfterAttentionLayers& layers) {
  const auto& [out, norm1, up, down, norm2] = layers;
  Shape rows = x.shape();
  if (!rows.empty()) rows.back() = context.dimension() == 0 ? 0 : context.shape().back();
  if (x.dimension() == 0 || context.shape() != rows)
    fail<ShapeError>(name, ": context (..., in) and x (..., D) must have the same rows, got ",
                     context.shape(), " and ", x.shape());
  const std::size_t in = context.shape().back(), width = x.shape().back();
  const std::size_t inner = up.weight.shape()[0];
  const kernels::Int8AfterAttention checked{
      checked_layer(out, {width, in}, "out"), checked_norm(norm1, width, "norm1"),
      checked_layer(up, {inner, width}, "up"), checked_layer(down, {width, inner}, "down"),
      checked_norm(norm2, width, "norm2")};
  const Inputs inputs(context, x, out.bias, norm1.weight, norm1.bias, up.bias, down.bias, norm2.weight,
                      norm2.bias);
  refuse_gradient_of_integers(
      name, std::apply([](const auto&... input) { return will_record(input...); }, inputs.variables));
  Variable<float> z = empty<float>(x.shape(), name);
  kernels::int8_after_attention_rows(checked, data(context), data(x), row_count(x.shape()), data(z));
  return record<float>(ops::int8_after_attention, std::move(z), inputs, Attributes(norm1.eps), Saved(),
                       [](Variable<float>, Needs) { return Grads<float, 9>(); });
}

}  // namespace xgrad::detail
