#include "operators.hpp"

#include "../types.hpp"

namespace xgrad::onnx {

template <class T>
Value<T> to_value(const TensorView& array) {
  switch (array.dtype) {
    case DType::BOOL:
      return to_array<bool>(array);
    case DType::F64:
    case DType::F32:
    case DType::F16:
    case DType::BF16:
      return Variable<T>(to_array<T>(array));
    case DType::U64: {
      TensorView same_bits = array;
      same_bits.dtype = DType::I64;
      const Ids ids = to_array<std::int64_t>(same_bits);
      const auto is_large = [](std::int64_t id) { return id < 0; };
      if (std::ranges::any_of(ids, is_large))
        xgrad::detail::fail<ValueError>("integers of 2^63 and more are not supported");
      return ids;
    }
    default:
      return to_array<std::int64_t>(array);
  }
}

template Value<float> to_value(const TensorView&);
template Value<double> to_value(const TensorView&);

}  // namespace xgrad::onnx

namespace xgrad::onnx::detail {

template <class T>
const OperatorTable<T>& operators() {
  static const OperatorTable<T> table = [] {
    OperatorTable<T> all;
    add_elementwise_operators(all);
    add_shape_operators(all);
    add_index_operators(all);
    add_network_operators(all);
    add_norm_operators(all);
    add_window_operators(all);
    add_recurrent_operators(all);
    add_attention_operators(all);
    add_quantized_operators(all);
    add_constant_operators(all);
    return all;
  }();
  return table;
}

template <class T>
Value<T> value_of(const Tensor& tensor) {
  check_supported(tensor);
  return to_value<T>(tensor.view);
}

std::size_t axis_of(std::int64_t axis, std::size_t rank) {
  const auto count = static_cast<std::int64_t>(rank);
  if (axis < -count || axis >= count)
    xgrad::detail::fail<IndexError>("axis ", axis, " is out of range for ", rank, " axes");
  return static_cast<std::size_t>(axis < 0 ? axis + count : axis);
}

std::vector<std::size_t> axes_of(const std::vector<std::int64_t>& axes, std::size_t rank) {
  std::vector<std::size_t> found;
  found.reserve(axes.size());
  for (const std::int64_t axis : axes) found.push_back(axis_of(axis, rank));
  std::ranges::sort(found);
  if (std::ranges::adjacent_find(found) != found.end())
    xgrad::detail::fail<ValueError>("axes must be named once");
  return found;
}

Dims normalized_shape(std::int64_t axis, const Shape& x) {
  const auto rank = static_cast<std::int64_t>(x.size());
  if (axis < -rank || axis >= rank)
    xgrad::detail::fail<IndexError>("axis ", axis, " is out of range for x ", x);
  return {x.begin() + (axis < 0 ? axis + rank : axis), x.end()};
}

void check_precision(NodeAttributes& attributes, const char* name) {
  const std::int64_t type = attributes.integer(name, data_type::float32);
  if (type != data_type::float32 && type != data_type::float64)
    xgrad::detail::fail<ValueError>(name, " must be FLOAT or DOUBLE, got ", name_of_data_type(type));
}

template const OperatorTable<float>& operators();
template const OperatorTable<double>& operators();
template Value<float> value_of(const Tensor&);
template Value<double> value_of(const Tensor&);

}  // namespace xgrad::onnx::detail
