#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../../base/array.hpp"
#include "../../base/detail/bytes/protobuf.hpp"
#include "../../base/file.hpp"

namespace xgrad::onnx::detail {

using xgrad::detail::MessageWriter;

/// Attributes of a node to write.
class AttributeWriter {
 public:
  AttributeWriter& integer(std::string_view name, std::int64_t value);
  AttributeWriter& number(std::string_view name, float value);
  AttributeWriter& integers(std::string_view name, std::span<const std::int64_t> values);
  AttributeWriter& text(std::string_view name, std::string_view value);
  AttributeWriter& texts(std::string_view name, std::initializer_list<std::string_view> values);

  const std::vector<MessageWriter>& written() const { return attributes_; }

 private:
  std::vector<MessageWriter> attributes_;
};

/// Builds the graph of an ONNX file, node by node.
class GraphWriter {
 public:
  using Names = std::vector<std::string>;

  /// For a version of ONNX's operators.
  explicit GraphWriter(std::int64_t opset) : opset_(opset) {}

  std::int64_t opset() const { return opset_; }

  /// An unused name with this prefix.
  std::string new_name(const std::string& begin);

  /// Adds a node, and returns the name of its result, which begins with `scope`, or is `result` if given.
  /// Nodes that no output needs are omitted from the file.
  std::string node(std::string_view op, const Names& inputs, const AttributeWriter& attributes = {},
                   const std::string& result = "");

  /// Adds a node with several results.
  Names nodes(std::string_view op, const Names& inputs, const AttributeWriter& attributes,
              std::size_t results);

  /// Sets the prefix of names of subsequent nodes.
  void begin_scope(std::string scope) { scope_ = std::move(scope); }

  /// Adds a named constant; equal lists of integers share one. Constants that no node reads are omitted from
  /// the file.
  std::string integers(const std::vector<std::int64_t>& list);
  std::string integer(std::int64_t value);
  template <class E>
  void initializer(const std::string& name, const Shape& shape, std::span<const E> elements);

  /// The transpose of a matrix. That of a constant is a constant, too, unless nodes read both: the file has
  /// one of them only.
  std::string transposed(const std::string& matrix);

  struct Axis {
    std::int64_t length;  ///< -1 if named
    std::string name;
  };
  void input(const std::string& name, std::int64_t type, const std::vector<Axis>& axes);
  void output(const std::string& name, std::int64_t type, const std::vector<Axis>& axes);

  /// The complete file.
  std::vector<std::byte> file() const;

  /// The file without the elements of larger constants, which are appended to a file of this name in the same
  /// folder.
  std::vector<std::byte> file(const std::string& data_name, AtomicFile& data) const;

 private:
  struct Initializer {
    std::string name;
    Shape shape;
    std::int64_t type;
    std::vector<std::byte> elements;
  };

  /// Adds the elements of an initializer to its message.
  using AddElements = std::function<void(MessageWriter&, std::span<const std::byte> elements)>;
  std::vector<std::byte> file(const AddElements& add_elements) const;

  static MessageWriter value_info(const std::string& name, std::int64_t type, const std::vector<Axis>& axes);

  struct WrittenNode {
    Names inputs, outputs;
    MessageWriter message;
  };
  static WrittenNode made(std::string_view op, const Names& inputs, const AttributeWriter& attributes,
                          const Names& outputs);

  /// The nodes that outputs need, and which values these and the outputs read.
  std::pair<std::vector<const WrittenNode*>, std::set<std::string>> needed() const;

  std::int64_t opset_;
  std::vector<WrittenNode> nodes_;
  MessageWriter inputs_, outputs_;
  std::vector<Initializer> initializers_;
  std::string scope_;
  std::set<std::string> names_, results_;
  std::map<std::string, std::string> transposed_;  // names of transposes by those of constants
  std::map<std::pair<bool, std::vector<std::int64_t>>, std::string> integers_;
};

}  // namespace xgrad::onnx::detail
