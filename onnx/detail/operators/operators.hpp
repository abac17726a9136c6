#pragma once

#include <map>
#include <string_view>

#include "../../../base/dims.hpp"
#include "../arguments.hpp"

namespace xgrad::onnx::detail {

/// The supported operators, by name: "Add", or "com.microsoft.Attention" outside of ONNX's own domain.
/// https://onnx.ai/onnx/operators/,
/// https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
template <class T>
using OperatorTable = std::map<std::string_view, MakeOperator<T>>;

template <class T>
const OperatorTable<T>& operators();

// Parts of the table, one per source file.
template <class T>
void add_elementwise_operators(OperatorTable<T>& table);
template <class T>
void add_shape_operators(OperatorTable<T>& table);
template <class T>
void add_index_operators(OperatorTable<T>& table);
template <class T>
void add_network_operators(OperatorTable<T>& table);
template <class T>
void add_norm_operators(OperatorTable<T>& table);
template <class T>
void add_window_operators(OperatorTable<T>& table);
template <class T>
void add_recurrent_operators(OperatorTable<T>& table);
template <class T>
void add_attention_operators(OperatorTable<T>& table);
template <class T>
void add_quantized_operators(OperatorTable<T>& table);
template <class T>
void add_constant_operators(OperatorTable<T>& table);

/// The values of a tensor: floats as T, integers as std::int64_t, BOOL as conditions.
template <class T>
Value<T> value_of(const Tensor& tensor);

/// An axis counted from the front; `rank` may be that of the result. Throws IndexError.
std::size_t axis_of(std::int64_t axis, std::size_t rank);

/// Axes counted from the front, ascending. Throws IndexError, and ValueError for a duplicate.
std::vector<std::size_t> axes_of(const std::vector<std::int64_t>& axes, std::size_t rank);

/// The lengths of x from an axis on. Throws IndexError for a missing axis.
Dims normalized_shape(std::int64_t axis, const Shape& x);

/// Reads the attribute that names the type of intermediate numbers. Throws ValueError for one that is
/// narrower than T may be.
void check_precision(NodeAttributes& attributes, const char* name);

}  // namespace xgrad::onnx::detail
