#pragma once

#include <map>
#include <string>
#include <variant>

#include "../files/tensor_view.hpp"
#include "../graph/variable.hpp"

namespace xgrad::onnx {

/// A value of a graph: floats of any width as T, integers of any width as std::int64_t, conditions.
template <class T>
using Value = std::variant<Variable<T>, Ids, Mask>;

/// Values by name.
template <class T>
using Values = std::map<std::string, Value<T>>;

/// The shape of a value.
template <class T>
Shape shape_of(const Value<T>& value) {
  return std::visit([](const auto& array) -> Shape { return array.shape(); }, value);
}

/// The values of an array of a file: floats as T, integers as std::int64_t, BOOL as conditions. Throws
/// ValueError for integers of 2^63 and more, and for types that are none of these.
template <class T>
Value<T> to_value(const TensorView& array);

}  // namespace xgrad::onnx
