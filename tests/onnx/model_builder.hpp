#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <xgrad/base/detail/bytes/protobuf.hpp>

namespace xgrad_tests {

using xgrad::detail::MessageWriter;

/// The bytes of an ONNX model, put together field by field, as no exporter would write them.
class ModelBuilder {
 public:
  std::int64_t opset = 17;
  std::int64_t microsoft_opset = 0;  // that of com.microsoft, if any

  void input(const std::string& name, std::int64_t type, const std::vector<std::int64_t>& shape) {
    graph_.message(11, value_info(name, type, shape));
  }
  /// An input of the type with this number in TypeProto: 1 is a tensor, 4 a sequence.
  void input_of_type(const std::string& name, std::uint64_t field) {
    MessageWriter any, info;
    any.message(field, MessageWriter());
    info.text(1, name);
    info.message(2, any);
    graph_.message(11, info);
  }
  void output(const std::string& name) { graph_.message(12, value_info(name, 1, {})); }

  /// A tensor of raw bytes.
  static MessageWriter tensor(const std::string& name, std::int64_t type,
                              const std::vector<std::int64_t>& dims, const std::string& raw) {
    MessageWriter writer;
    writer.integers(1, dims);
    writer.integer(2, type);
    writer.text(8, name);
    writer.text(9, raw);
    return writer;
  }

  template <class E>
  static std::string raw(const std::vector<E>& elements) {
    return {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(E)};
  }

  void initializer(const MessageWriter& tensor) { graph_.message(5, tensor); }
  void floats(const std::string& name, const std::vector<std::int64_t>& dims,
              const std::vector<float>& elements) {
    initializer(tensor(name, 1, dims, raw(elements)));
  }
  void integers(const std::string& name, const std::vector<std::int64_t>& dims,
                const std::vector<std::int64_t>& elements) {
    initializer(tensor(name, 7, dims, raw(elements)));
  }

  /// An attribute that holds an integer.
  static MessageWriter attribute(const std::string& name, std::int64_t value) {
    MessageWriter writer;
    writer.text(1, name);
    writer.integer(3, value);
    writer.integer(20, 2);
    return writer;
  }

  /// One of a type, AttributeProto.AttributeType, whose value is left out, as proto3 leaves out 0.
  static MessageWriter attribute_of_type(const std::string& name, std::int64_t type) {
    MessageWriter writer;
    writer.text(1, name);
    writer.integer(20, type);
    return writer;
  }

  /// The same as attribute() for a list.
  static MessageWriter attribute(const std::string& name, const std::vector<std::int64_t>& values) {
    MessageWriter writer;
    writer.text(1, name);
    writer.integers(8, values);
    writer.integer(20, 7);
    return writer;
  }

  /// One that holds a text.
  static MessageWriter attribute(const std::string& name, const std::string& text) {
    MessageWriter writer;
    writer.text(1, name);
    writer.text(4, text);
    writer.integer(20, 3);
    return writer;
  }

  /// One that holds the graph of another model.
  static MessageWriter attribute(const std::string& name, const ModelBuilder& model) {
    MessageWriter writer;
    writer.text(1, name);
    writer.message(6, model.graph_);
    writer.integer(20, 5);
    return writer;
  }

  void node(const std::string& op, const std::vector<std::string>& inputs,
            const std::vector<std::string>& outputs, const std::vector<MessageWriter>& attributes = {},
            const std::string& domain = "") {
    MessageWriter writer;
    for (const std::string& name : inputs) writer.text(1, name);
    for (const std::string& name : outputs) writer.text(2, name);
    writer.text(3, outputs.empty() ? "" : "makes_" + outputs.front());
    writer.text(4, op);
    for (const MessageWriter& attribute : attributes) writer.message(5, attribute);
    if (!domain.empty()) writer.text(7, domain);
    graph_.message(1, writer);
  }

  /// A field of the graph that no other function writes.
  void field(std::uint64_t number, const MessageWriter& message) { graph_.message(number, message); }

  std::string bytes() const {
    MessageWriter set, other_set, model;
    set.integer(2, opset);
    model.integer(1, 8);
    model.message(7, graph_);
    model.message(8, set);
    if (microsoft_opset > 0) {
      other_set.text(1, "com.microsoft");
      other_set.integer(2, microsoft_opset);
      model.message(8, other_set);
    }
    return {reinterpret_cast<const char*>(model.written().data()), model.written().size()};
  }

 private:
  static MessageWriter value_info(const std::string& name, std::int64_t type,
                                  const std::vector<std::int64_t>& shape) {
    MessageWriter dims, tensor, any, info;
    for (const std::int64_t length : shape) {
      MessageWriter dim;
      if (length >= 0) dim.integer(1, length);
      if (length < 0) dim.text(2, "open");
      dims.message(1, dim);
    }
    tensor.integer(1, type);
    tensor.message(2, dims);
    any.message(1, tensor);
    info.text(1, name);
    info.message(2, any);
    return info;
  }

  MessageWriter graph_;
};

}  // namespace xgrad_tests
