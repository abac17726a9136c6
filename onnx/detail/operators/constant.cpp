// Operators that make values of none, or of a shape.

#include <algorithm>
#include <cmath>

#include "../types.hpp"
#include "operators.hpp"

namespace xgrad::onnx::detail {
namespace {

using xgrad::detail::fail;

template <class T>
Value<T> filled(const Value<T>& element, const Shape& shape) {
  return std::visit(
      [&]<class A>(const A& one) -> Value<T> {
        if (one.size() != 1) fail<ShapeError>("value must be one element, got ", one.shape());
        if constexpr (std::is_same_v<A, Variable<T>>) {
          return Variable<T>(Array<T>(shape, one.item()));
        } else {
          return A(shape, *one.data());
        }
      },
      element);
}

template <class T>
Operator<T> constant(const NodeDescription& node) {
  NodeAttributes& attributes = node.attributes;
  Value<T> value;
  if (const Tensor* const tensor = attributes.tensor("value")) {
    value = value_of<T>(*tensor);
  } else if (attributes.has("value_float")) {
    value = Variable<T>(static_cast<T>(attributes.number("value_float", 0)));
  } else if (attributes.has("value_int")) {
    value = Ids(Shape{}, attributes.integer("value_int", 0));
  } else if (const auto numbers = attributes.numbers("value_floats")) {
    value = Variable<T>(xgrad::detail::array_of<T>(std::span<const float>(*numbers)));
  } else if (const auto integers = attributes.integers("value_ints")) {
    value = xgrad::detail::array_of<std::int64_t>(std::span<const std::int64_t>(*integers));
  } else {
    fail<ValueError>("a constant must be a tensor, floats or integers");
  }
  return [value](const Arguments<T>&) -> Results<T> { return {value}; };
}

template <class T>
Operator<T> constant_of_shape(const NodeDescription& node) {
  const Tensor* const tensor = node.attributes.tensor("value");
  const Value<T> element = tensor != nullptr ? value_of<T>(*tensor) : Value<T>(Variable<T>(T{0}));
  return [element](const Arguments<T>& given) -> Results<T> {
    Shape shape;
    for (const std::int64_t length : given.list(0)) {
      if (length < 0) fail<ShapeError>("lengths must be at least 0, got ", length);
      shape.push_back(static_cast<std::size_t>(length));
    }
    given.check_result(shape);
    return {filled<T>(element, shape)};
  };
}

/// 1 on the k-th diagonal, else 0, in the shape of a matrix and of the type in `dtype` or that of the matrix.
template <class T>
Operator<T> eye_like(const NodeDescription& node) {
  const std::int64_t k = node.attributes.integer("k", 0);
  const std::int64_t dtype = node.attributes.integer("dtype", 0);
  const std::int64_t type = dtype != 0 ? dtype : node.type(0);
  if (!dtype_of_data_type(type))
    fail<ValueError>("elements of type ", name_of_data_type(type), " are not supported");
  return [k, type](const Arguments<T>& given) -> Results<T> {
    const Shape& shape = shape_of<T>(given.value(0));
    if (shape.size() != 2) fail<ShapeError>("x must be a matrix, got ", shape);
    const auto filled_as = [&]<class E>(E zero, E one) {
      Array<E> y(shape, zero);
      for (std::size_t i = 0; i < y.size(); ++i) {
        const auto row = static_cast<std::int64_t>(i / shape[1]),
                   column = static_cast<std::int64_t>(i % shape[1]);
        if (column - row == k) y.data()[i] = one;
      }
      return y;
    };
    switch (type) {
      case data_type::float32:
      case data_type::float64:
      case data_type::float16:
      case data_type::bfloat16:
        return {Variable<T>(filled_as(T{0}, T{1}))};
      case data_type::boolean:
        return {filled_as(false, true)};
      default:
        return {filled_as(std::int64_t{0}, std::int64_t{1})};
    }
  };
}

/// ceil((limit - start) / delta), or 0 if that is negative.
std::size_t steps(std::int64_t start, std::int64_t limit, std::int64_t delta) {
  if (delta == 0) fail<ValueError>("delta must not be 0");
  if (delta > 0 ? start >= limit : start <= limit) return 0;
  // differences of 64 bits need no sign
  const auto from = static_cast<std::uint64_t>(start), to = static_cast<std::uint64_t>(limit),
             by = static_cast<std::uint64_t>(delta);
  const std::uint64_t length = delta > 0 ? to - from : from - to, step = delta > 0 ? by : 0 - by;
  return static_cast<std::size_t>((length - 1) / step + 1);
}

/// ceil((limit - start) / delta) elements; none if that is negative.
template <class T>
Operator<T> range_operator(const NodeDescription&) {
  return [](const Arguments<T>& given) -> Results<T> {
    if (std::holds_alternative<Ids>(given.value(0))) {
      const auto number = [&](std::size_t i) {
        const std::vector<std::int64_t> list = given.list(i);
        if (list.size() != 1) fail<ShapeError>("input ", i, " must be one number, got ", list.size());
        return list.front();
      };
      const std::int64_t start = number(0), limit = number(1), delta = number(2);
      const Shape shape{steps(start, limit, delta)};
      given.check_result(shape);
      Ids ids = Ids::from_shape(shape);
      for (std::size_t i = 0; i < ids.size(); ++i)
        ids.data()[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(start) +
                                                  i * static_cast<std::uint64_t>(delta));
      return {std::move(ids)};
    }
    const T start = given.floats(0).item(), limit = given.floats(1).item(), delta = given.floats(2).item();
    if (delta == 0) fail<ValueError>("delta must not be 0");
    const double count =
        std::ceil((static_cast<double>(limit) - static_cast<double>(start)) / static_cast<double>(delta));
    if (!(count < 1e15)) fail<ValueError>("the number of elements must be below 1e15, got ", count);
    const Shape shape{count > 0 ? static_cast<std::size_t>(count) : 0};
    given.check_result(shape);
    Array<T> numbers = Array<T>::from_shape(shape);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers.data()[i] = start + static_cast<T>(i) * delta;
    return {Variable<T>(std::move(numbers))};
  };
}

}  // namespace

template <class T>
void add_constant_operators(OperatorTable<T>& table) {
  table["Constant"] = constant<T>;
  table["ConstantOfShape"] = constant_of_shape<T>;
  table["EyeLike"] = eye_like<T>;
  table["Range"] = range_operator<T>;
}

template void add_constant_operators(OperatorTable<float>&);
template void add_constant_operators(OperatorTable<double>&);

}  // namespace xgrad::onnx::detail
