#pragma once

#include <map>
#include <string_view>

#include "../../graph/dims.hpp"
#include "arguments.hpp"

namespace xgrad::onnx::detail {

/// The operators of ONNX's own domain that can be computed, by name.
/// https://onnx.ai/onnx/operators/
template <class T>
using OperatorTable = std::map<std::string_view, MakeOperator<T>>;

template <class T>
const OperatorTable<T>& operators();

// The parts of that table, a file each.
template <class T>
void add_elementwise_operators(OperatorTable<T>& table);
template <class T>
void add_shape_operators(OperatorTable<T>& table);
template <class T>
void add_network_operators(OperatorTable<T>& table);
template <class T>
void add_constant_operators(OperatorTable<T>& table);

/// The values of a tensor: floats as T, integers as std::int64_t, BOOL as conditions.
template <class T>
Value<T> value_of(const Tensor& tensor);

/// The lengths of x from an axis on. Throws IndexError for one that x does not have.
Dims normalized_shape(std::int64_t axis, const Shape& x);

/// Throws ValueError for more elements than an operator may make of a few: a file of some bytes must not ask
/// for all memory.
void check_made(const Shape& shape);

}  // namespace xgrad::onnx::detail
