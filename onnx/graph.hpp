#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../models/module.hpp"
#include "value.hpp"

namespace xgrad::onnx {

/// An input or an output of a graph.
struct ValueDescription {
  /// A length, or the name of a variable length ("batch"); neither for an unnamed variable length.
  struct Length {
    std::optional<std::size_t> fixed;
    std::string name;
  };

  std::string name;
  std::string type;  ///< of the elements, with ONNX's name: "FLOAT", "INT64", "BOOL"
  std::optional<std::vector<Length>> shape;
};

/// What an ONNX file holds, also one that xgrad::onnx cannot compute.
struct Description {
  struct Tensor {
    std::string name, type;
    Shape shape;
  };

  std::vector<ValueDescription> inputs, outputs;  ///< the type of one that is no tensor is "no tensor"
  std::map<std::string, std::size_t> operators;   ///< the number of nodes of each, by name
  std::vector<Tensor> tensors;                    ///< initializers
  bool has_doubles = false;                       ///< a Graph<float> would round numbers of the file
};

/// Reads names, types and shapes of a file. Throws FileError for one that violates the format.
Description describe(const std::string& path);

namespace detail {

struct Model;
template <class T>
struct Program;

}  // namespace detail

/// The graph of an ONNX file as a module: runs the file's nodes as ops, which are recorded, so that it can be
/// differentiated and trained. Its parameters are the file's float initializers with at least one axis, by
/// name, and as they were if save() transposed them; all other constants are fixed. Running statistics of
/// batch norms are buffers.
///
/// Supports operator sets 7 to 24 of ONNX's default domain, and some operators of others. Floats of any width
/// become T, integers std::int64_t. Dropout is the identity unless the file says that it trains; then it
/// drops elements as long as the graph is in training mode.
template <class T = float>
class Graph : public Module<T> {
 public:
  /// Throws FileError: for a file that violates the format, for values that no preceding node computes, and
  /// for unsupported operators, attributes and types, all of which it names, with the first node of each.
  explicit Graph(const std::string& path);

  /// Reads the bytes of a file that contains all its weights; `name` replaces its path in errors.
  Graph(const std::string& name, std::span<const std::byte> bytes);

  /// The inputs of a call; those with an initializer have a default value.
  std::vector<ValueDescription> inputs() const;
  std::vector<ValueDescription> outputs() const;

  /// The number of nodes of each operator, by name.
  std::map<std::string, std::size_t> operators() const;

  /// All outputs, by name. Throws ValueError for missing, unknown and mistyped inputs, ShapeError for those
  /// of another shape, and the errors of ops, prefixed with the node's name.
  Values<T> operator()(const Values<T>& inputs) const;

 private:
  Graph(const std::string& name, const detail::Model& file);

  std::shared_ptr<const detail::Program<T>> program_;
};

/// Loads a graph: auto model = xgrad::onnx::load("model.onnx").
template <class T = float>
Graph<T> load(const std::string& path) {
  return Graph<T>(path);
}

}  // namespace xgrad::onnx
