#pragma once

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
  /// A length, or the name of one that the file leaves open ("batch"); neither for one without a name.
  struct Length {
    std::optional<std::size_t> fixed;
    std::string name;
  };

  std::string name;
  std::string type;  ///< of the elements, as ONNX calls it: "FLOAT", "INT64", "BOOL"
  std::optional<std::vector<Length>> shape;
};

namespace detail {

struct Model;
template <class T>
struct Program;

}  // namespace detail

/// The graph of an ONNX file as a module: it computes what the file says, op by op, and records it, so that
/// it can be differentiated and trained. Its parameters are the file's initializers of floats with at least
/// one axis, under their names; all other constants stay as they are.
///
/// Operator sets 7 to 20 of ONNX's own domain. Floats of any width become T, integers std::int64_t. A
/// dropout does nothing.
template <class T = float>
class Graph : public Module<T> {
 public:
  /// Throws FileError: for a file that breaks the format, for values that no node before them makes, and for
  /// operators and attributes that are not supported, all of which it names.
  explicit Graph(const std::string& path);

  /// The same for the bytes of a file, which has all of its weights inside; `name` stands for its path in
  /// errors.
  Graph(const std::string& name, std::span<const std::byte> bytes);

  /// The inputs to give; those with an initializer have a value already.
  const std::vector<ValueDescription>& inputs() const;
  const std::vector<ValueDescription>& outputs() const;

  /// How many nodes there are of each operator, by name.
  const std::map<std::string, std::size_t>& operators() const;

  /// All outputs, by their names. Throws ValueError for inputs that are missing, unknown or of another type,
  /// ShapeError for those of another shape, and what an op throws, with the node's name in front.
  Values<T> operator()(const Values<T>& inputs) const;

 private:
  Graph(const std::string& name, const detail::Model& model);

  std::shared_ptr<const detail::Program<T>> program_;
};

/// The same: auto model = xgrad::onnx::load("model.onnx").
template <class T = float>
Graph<T> load(const std::string& path) {
  return Graph<T>(path);
}

}  // namespace xgrad::onnx
