#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../graph.hpp"
#include "arguments.hpp"
#include "model.hpp"

namespace xgrad::onnx::detail {

/// The place of a value that is left out.
inline constexpr std::size_t no_slot = static_cast<std::size_t>(-1);

/// A node, whose values have numbers instead of names.
template <class T>
struct Step {
  std::string name;  // "Add 'encoder/add'"
  Operator<T> compute;
  std::vector<std::size_t> inputs, outputs;  // no_slot for one that is left out
  std::vector<std::size_t> done;             // values that no later step reads
};

/// The nodes of a graph in order. The slots of initializers come first.
template <class T>
struct Program {
  std::vector<ValueDescription> inputs, outputs;
  std::map<std::string, std::size_t> operators;
  std::vector<std::size_t> input_slots, output_slots;
  std::vector<std::pair<std::size_t, Value<T>>> constants;  // parameters among them, and others that are read
  std::vector<Step<T>> steps;
  std::size_t slots = 0;

  /// For each slot whether a step reads it, or it is an output.
  std::vector<bool> read_slots() const;

  /// All outputs, from the values of the inputs. All values together may have `most` elements, of which
  /// `held` are those of the graph around; 0: as many as the constants and the inputs allow.
  std::vector<Value<T>> run(const std::vector<const Value<T>*>& given, bool is_training, std::size_t most = 0,
                            std::size_t held = 0) const;
};

/// Throws ValueError for a graph that violates the format, and for all that a graph has and xgrad::onnx has
/// not: operators, attributes, types and operator sets, with the number of nodes and the first one.
template <class T>
Program<T> compiled(const Model& model);

/// The description of an input or an output.
ValueDescription description_of(const ValueInfo& info);

}  // namespace xgrad::onnx::detail
