#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../../models/module.hpp"
#include "../value.hpp"
#include "graph_writer.hpp"
#include "lengths.hpp"
#include "trace.hpp"

namespace xgrad::onnx::detail {

/// A call of a model, and what it did.
template <class T>
struct TracedCall {
  Values<T> given;
  std::vector<TracedOp<T>> ops;
  Values<T> results;
};

/// Makes the nodes of a graph from the ops of two calls with other lengths.
template <class T>
class Exporter {
 public:
  /// The axes of each input, by their numbers in `lengths`, or no_axis for a fixed one.
  using InputAxes = std::vector<std::pair<std::string, std::vector<std::size_t>>>;
  static constexpr std::size_t no_axis = static_cast<std::size_t>(-1);

  Exporter(const Module<T>& model, const AxisLengths& lengths, const InputAxes& axes,
           const TracedCall<T>& first, const TracedCall<T>& second);

  /// Throws ValueError that names all that cannot be exported.
  GraphWriter write();

 private:
  using Names = GraphWriter::Names;
  using SymbolicShape = std::vector<SymbolicLength>;

  /// An op in both calls.
  struct Pair {
    const TracedOp<T>&first, &second;

    bool has(std::size_t input) const { return input < first.inputs.size() && first.inputs[input].defined(); }
    const Shape& shape(std::size_t input) const { return first.inputs[input].shape(); }
    /// One that must not depend on lengths.
    template <class V>
    const V& attribute(const char* name) const {
      const V& value = std::get<V>(first.attributes.at(name));
      if (value != std::get<V>(second.attributes.at(name)))
        refuse("whose " + std::string(name) + " depends on lengths");
      return value;
    }
    /// An array in both calls.
    template <class A>
    std::pair<const A&, const A&> arrays(const char* name) const {
      return {std::get<A>(first.attributes.at(name)), std::get<A>(second.attributes.at(name))};
    }
    bool has_attribute(const char* name) const { return first.attributes.contains(name); }
  };
  using Emit = void (Exporter::*)(const Pair&);

  /// Collected, so that all are named at once.
  struct Problem {
    std::string text;
  };
  [[noreturn]] static void refuse(const std::string& text) { throw Problem{text}; }

  static const std::map<std::string, Emit>& emitters();

  void add_inputs();
  void add_parameters(const Module<T>& model);
  void add_op(const Pair& op);
  void add_outputs();

  std::string name_of(const Pair& op, std::size_t input);
  std::string constant(const Variable<T>& first, const Variable<T>& second);
  std::string number(double value);
  std::string condition(const Mask& first, const Mask& second);
  std::string ids(const Ids& first, const Ids& second);
  std::string shares(const Variable<T>& first, const Variable<T>& second);
  /// The name of a condition where an input of integers is not one number, in the input's shape.
  std::string not_equal(const std::string& input, std::int64_t number);

  SymbolicShape explained(const Shape& first, const Shape& second) const;
  std::string axis_length(std::size_t axis);
  std::string list(const SymbolicShape& lengths);
  std::string reshaped(const std::string& x, const Shape& from_first, const Shape& from_second,
                       const Shape& to_first, const Shape& to_second);
  std::string transposed(const std::string& x, std::vector<std::int64_t> perm);
  std::string last_axes_swapped(const std::string& x, std::size_t rank);

  void result(const Pair& op, const std::string& name);
  std::string linear(const std::string& x, const std::string& weight, const std::string& bias);
  std::string attention(const Pair& op, Names qkv, std::size_t rank, const std::string& bias,
                        const std::pair<Shape, Shape>& scores);

  void emit_unary(const Pair& op);
  void emit_binary(const Pair& op);
  void emit_composed_unary(const Pair& op);
  void emit_gelu(const Pair& op);
  void emit_clamp(const Pair& op);
  void emit_linear(const Pair& op);
  void emit_matmul(const Pair& op);
  void emit_layer_norm(const Pair& op);
  void emit_attention(const Pair& op);
  void emit_self_attention(const Pair& op);
  void emit_reduction(const Pair& op);
  void emit_softmax(const Pair& op);
  void emit_reshape(const Pair& op);
  void emit_permute(const Pair& op);
  void emit_expand(const Pair& op);
  void emit_joined(const Pair& op);
  void emit_part(const Pair& op);
  void emit_embedding(const Pair& op);
  void emit_index_select(const Pair& op);
  void emit_where(const Pair& op);
  void emit_masked_fill(const Pair& op);

  const AxisLengths& lengths_;
  const InputAxes& axes_;
  const TracedCall<T>&first_, &second_;
  GraphWriter graph_;
  std::map<const void*, std::string> names_;  // of the values of the first call
  std::map<double, std::string> numbers_;
  std::vector<std::string> axis_lengths_;
  std::vector<std::string> problems_;
};

}  // namespace xgrad::onnx::detail
