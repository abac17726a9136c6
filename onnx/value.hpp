#pragma once

#include <map>
#include <string>
#include <variant>

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

}  // namespace xgrad::onnx
