#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../autograd/detail/trace.hpp"
#include "../../models/module.hpp"
#include "../value.hpp"
#include "graph_writer.hpp"
#include "operators/lengths.hpp"

namespace xgrad::onnx::detail {

using xgrad::detail::TracedOp;

/// A traced call of a model.
template <class T>
struct TracedCall {
  Values<T> given;
  std::vector<TracedOp<T>> ops;
  Values<T> results;
};

/// Collected, so that all are reported at once.
struct ExportProblem {
  std::string text;
};

[[noreturn]] inline void refuse(const std::string& text) { throw ExportProblem{text}; }

/// An op in both traced calls.
template <class T>
struct OpPair {
  const TracedOp<T>&first, &second;

  const OpInfo& info() const { return *first.op; }
  /// Index of an input in the description. Refuses an op whose description lacks it.
  std::size_t place(std::string_view input) const {
    const auto& names = info().inputs;
    const auto found = std::find(names.begin(), names.end(), input);
    if (found == names.end()) refuse("which lacks an input " + std::string(input));
    return static_cast<std::size_t>(found - names.begin());
  }
  bool has(std::string_view input) const { return has(place(input)); }
  const Shape& shape(std::string_view input) const { return shape(place(input)); }
  bool has(std::size_t input) const { return input < first.inputs.size() && first.inputs[input].defined(); }
  const Shape& shape(std::size_t input) const { return first.inputs[input].shape(); }
  bool has_attribute(const char* name) const { return first.attributes.contains(name); }
  /// An attribute that must not depend on lengths.
  template <class V>
  const V& attribute(const char* name) const {
    const auto [one, other] = arrays<V>(name);
    if (one != other) refuse("whose " + std::string(name) + " depends on lengths");
    return one;
  }
  /// An array attribute in both calls.
  template <class A>
  std::pair<const A&, const A&> arrays(const char* name) const {
    return {value<A>(first, name), value<A>(second, name)};
  }

 private:
  template <class V>
  static const V& value(const TracedOp<T>& op, const char* name) {
    const auto found = op.attributes.find(name);
    const V* const value = found == op.attributes.end() ? nullptr : std::get_if<V>(&found->second);
    if (value == nullptr) refuse("which lacks an attribute " + std::string(name) + " of its type");
    return *value;
  }
};

/// Builds the nodes of a graph from the ops of two calls with different lengths.
template <class T>
class Exporter {
 public:
  /// The axes of each input, as indices in `lengths`, or no_axis for a fixed length.
  using InputAxes = std::vector<std::pair<std::string, std::vector<std::size_t>>>;
  static constexpr std::size_t no_axis = static_cast<std::size_t>(-1);
  /// TensorProto.DataType of floats.
  static constexpr std::int64_t float_type = std::is_same_v<T, float> ? 1 : 11;

  Exporter(const Module<T>& model, std::int64_t opset, const AxisLengths& lengths, const InputAxes& axes,
           const TracedCall<T>& first, const TracedCall<T>& second);

  /// Throws ValueError that names everything that cannot be exported.
  GraphWriter write();

  // Used by emitters to add nodes: all of these return the name of a value, and throw ExportProblem.

  GraphWriter& graph() { return graph_; }
  const AxisLengths& lengths() const { return lengths_; }

  /// An input of an op: the result of another op, or a constant.
  std::string name_of(const OpPair<T>& op, std::size_t input);
  std::string name_of(const OpPair<T>& op, std::string_view input) { return name_of(op, op.place(input)); }
  /// name_of(), or empty for an omitted input.
  std::string name_if_given(const OpPair<T>& op, std::string_view input) {
    return op.has(input) ? name_of(op, input) : std::string();
  }
  /// Registers a value as the op's result.
  void result(const OpPair<T>& op, const std::string& name);

  std::string number(double value);
  /// Integers and conditions that are not results of ops, as a constant or derived from an input.
  std::string ids(const Ids& first, const Ids& second);
  std::string condition(const Mask& first, const Mask& second);

  SymbolicShape explained(const Shape& first, const Shape& second) const;
  /// Lengths as a list of integers.
  std::string list(const SymbolicShape& lengths);
  std::string reshaped(const std::string& x, const Shape& from_first, const Shape& from_second,
                       const Shape& to_first, const Shape& to_second);
  std::string transposed(const std::string& x, const std::vector<std::int64_t>& perm);
  /// A part along an axis, between bounds that are lists of one.
  std::string sliced(const std::string& x, std::int64_t axis, const std::string& start,
                     const std::string& end, std::int64_t step = 1);
  /// Of an operator that reduces: axes are an attribute, but of ReduceSum, until operator set 18.
  std::string reduced(const std::string& name, const std::string& x, const std::vector<std::int64_t>& axes,
                      bool keepdims);

  /// The results of the last node with several.
  GraphWriter::Names& several() { return several_; }

 private:
  /// Throws ValueError for a duplicate.
  void take_name(const std::string& name, const char* of);
  void add_inputs();
  void add_parameters(const Module<T>& model);
  void add_op(const OpPair<T>& op);
  void add_outputs();

  std::string constant(const Variable<T>& first, const Variable<T>& second);
  std::string shares(const Variable<T>& first, const Variable<T>& second);
  /// The condition that an input of integers is not equal to a number, in the input's shape.
  std::string not_equal(const std::string& input, std::int64_t number);
  std::string axis_length(std::size_t axis);

  const AxisLengths& lengths_;
  const InputAxes& axes_;
  const TracedCall<T>&first_, &second_;
  GraphWriter graph_;
  std::map<const void*, std::string> names_;      // of the values of the first call
  std::map<std::uint64_t, std::string> numbers_;  // by the bits of a double
  std::vector<std::string> axis_lengths_;
  std::vector<std::string> problems_;
  GraphWriter::Names several_;
};

}  // namespace xgrad::onnx::detail
