#include "operators.hpp"

namespace xgrad::onnx::detail {

template <class T>
const OperatorTable<T>& operators() {
  static const OperatorTable<T> table = [] {
    OperatorTable<T> all;
    add_elementwise_operators(all);
    add_shape_operators(all);
    add_network_operators(all);
    add_constant_operators(all);
    return all;
  }();
  return table;
}

template <class T>
Value<T> value_of(const Tensor& tensor) {
  switch (tensor.view.dtype) {
    case DType::BOOL:
      return to_array<bool>(tensor.view);
    case DType::F64:
    case DType::F32:
    case DType::F16:
    case DType::BF16:
      return Variable<T>(to_array<T>(tensor.view));
    case DType::U64: {
      TensorView same_bits = tensor.view;
      same_bits.dtype = DType::I64;
      const Ids ids = to_array<std::int64_t>(same_bits);
      const auto is_large = [](std::int64_t id) { return id < 0; };
      if (std::ranges::any_of(ids, is_large))
        xgrad::detail::fail<ValueError>("integers of 2^63 and more are not supported");
      return ids;
    }
    default:
      return to_array<std::int64_t>(tensor.view);
  }
}

Dims normalized_shape(std::int64_t axis, const Shape& x) {
  const auto rank = static_cast<std::int64_t>(x.size());
  if (axis < -rank || axis >= rank)
    xgrad::detail::fail<IndexError>("axis ", axis, " is out of range for x ", x);
  return {x.begin() + (axis < 0 ? axis + rank : axis), x.end()};
}

void check_made(const Shape& shape) {
  constexpr std::size_t most = std::size_t{1} << 28;
  std::size_t count = 1;
  for (const std::size_t length : shape) {
    if (length != 0 && count > most / length)
      xgrad::detail::fail<ValueError>("a result ", shape, " would have more than ", most, " elements");
    count *= length == 0 ? 1 : length;
  }
}

template const OperatorTable<float>& operators();
template const OperatorTable<double>& operators();
template Value<float> value_of(const Tensor&);
template Value<double> value_of(const Tensor&);

}  // namespace xgrad::onnx::detail
