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
#include "../../base/detail/protobuf.hpp"
#include "../../base/file.hpp"

namespace xgrad::onnx::detail {

using xgrad::detail::MessageWriter;

/// Attributes of a node to write.
class AttributeWriter {
 public:
  AttributeWriter& integer(std::string_view name, std::int64_t value);
  AttributeWriter& number(std::string_view name, float value);
  AttributeWriter& integers(std::string_view name, std::span<const std::int64_t> values);

  const std::vector<MessageWriter>& written() const { return attributes_; }

 private:
  std::vector<MessageWriter> attributes_;
};

/// Builds the graph of an ONNX file, node by node.
class GraphWriter {
 public:
  using Names = std::vector<std::string>;

  /// An unused name with this prefix.
  std::string new_name(const std::string& begin);

  /// Adds a node, and returns the name of its result, which begins with `scope`, or is `result` if given.
  std::string node(std::string_view op, const Names& inputs, const AttributeWriter& attributes = {},
                   const std::string& result = "");

  /// Sets the prefix of names of subsequent nodes.
  void begin_scope(std::string scope) { scope_ = std::move(scope); }

  /// Adds a named constant; equal lists of integers share one. Constants that no node reads are omitted from
  /// the file.
  std::string integers(const std::vector<std::int64_t>& list);
  std::string integer(std::int64_t value);
  template <class E>
  void initializer(const std::string& name, const Shape& shape, std::span<const E> elements);

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
  /// The fields of a TensorProto about its elements, and the elements.
  struct Initializer {
    std::string name;
    MessageWriter description;
    std::vector<std::byte> elements;
  };

  /// Adds the elements of an initializer to its message.
  using AddElements = std::function<void(MessageWriter&, const std::vector<std::byte>& elements)>;
  std::vector<std::byte> file(const AddElements& add_elements) const;

  static MessageWriter value_info(const std::string& name, std::int64_t type, const std::vector<Axis>& axes);

  MessageWriter nodes_, inputs_, outputs_;
  std::vector<Initializer> initializers_;
  std::string scope_;
  std::set<std::string> names_, read_;
  std::map<std::pair<bool, std::vector<std::int64_t>>, std::string> integers_;
};

}  // namespace xgrad::onnx::detail
