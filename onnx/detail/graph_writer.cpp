#include "graph_writer.hpp"

#include <utility>

namespace xgrad::onnx::detail {
namespace {

// Numbers of AttributeProto.AttributeType and of TensorProto.DataType.
constexpr std::int64_t float_attribute = 1, integer_attribute = 2, integers_attribute = 7;

template <class E>
constexpr std::int64_t data_type = std::is_same_v<E, float>          ? 1
                                   : std::is_same_v<E, double>       ? 11
                                   : std::is_same_v<E, std::int64_t> ? 7
                                                                     : 9;

MessageWriter attribute(std::string_view name, std::int64_t type) {
  MessageWriter writer;
  writer.text(1, name);
  writer.integer(20, type);
  return writer;
}

}  // namespace

AttributeWriter& AttributeWriter::integer(std::string_view name, std::int64_t value) {
  attributes_.push_back(attribute(name, integer_attribute));
  attributes_.back().integer(3, value);
  return *this;
}

AttributeWriter& AttributeWriter::number(std::string_view name, float value) {
  attributes_.push_back(attribute(name, float_attribute));
  attributes_.back().number(2, value);
  return *this;
}

AttributeWriter& AttributeWriter::integers(std::string_view name, std::span<const std::int64_t> values) {
  attributes_.push_back(attribute(name, integers_attribute));
  attributes_.back().integers(8, values);
  return *this;
}

std::string GraphWriter::new_name(const std::string& begin) {
  std::string name = begin;
  for (int number = 1; !names_.insert(name).second; ++number) name = begin + "_" + std::to_string(number);
  return name;
}

std::string GraphWriter::node(std::string_view op, const Names& inputs, const AttributeWriter& attributes,
                              const std::string& result) {
  const std::string output = result.empty() ? new_name(scope_ + std::string(op)) : result;
  MessageWriter node;
  for (const std::string& input : inputs) node.text(1, input);
  read_.insert(inputs.begin(), inputs.end());
  node.text(2, output);
  node.text(3, output);
  node.text(4, op);
  for (const MessageWriter& one : attributes.written()) node.message(5, one);
  nodes_.message(1, node);
  return output;
}

std::string GraphWriter::integers(const std::vector<std::int64_t>& list) {
  std::string& name = integers_[{true, list}];
  if (name.empty()) {
    name = new_name("integers");
    initializer(name, Shape{list.size()}, std::span<const std::int64_t>(list));
  }
  return name;
}

std::string GraphWriter::integer(std::int64_t value) {
  std::string& name = integers_[{false, {value}}];
  if (name.empty()) {
    name = new_name("integer");
    initializer(name, Shape{}, std::span<const std::int64_t>(&value, 1));
  }
  return name;
}

template <class E>
void GraphWriter::initializer(const std::string& name, const Shape& shape, std::span<const E> elements) {
  MessageWriter tensor;
  tensor.integers(1, std::vector<std::int64_t>(shape.begin(), shape.end()));
  tensor.integer(2, data_type<E>);
  tensor.text(8, name);
  const std::span<const std::byte> bytes = std::as_bytes(elements);
  initializers_.push_back({name, std::move(tensor), {bytes.begin(), bytes.end()}});
}

void GraphWriter::input(const std::string& name, std::int64_t type, const std::vector<Axis>& axes) {
  inputs_.message(11, value_info(name, type, axes));
}

void GraphWriter::output(const std::string& name, std::int64_t type, const std::vector<Axis>& axes) {
  outputs_.message(12, value_info(name, type, axes));
}

MessageWriter GraphWriter::value_info(const std::string& name, std::int64_t type,
                                      const std::vector<Axis>& axes) {
  MessageWriter shape, tensor, any, info;
  for (const auto& [length, axis] : axes) {
    MessageWriter dimension;
    if (length >= 0) {
      dimension.integer(1, length);
    } else if (!axis.empty()) {
      dimension.text(2, axis);
    }
    shape.message(1, dimension);
  }
  tensor.integer(1, type);
  tensor.message(2, shape);
  any.message(1, tensor);
  info.text(1, name);
  info.message(2, any);
  return info;
}

std::vector<std::byte> GraphWriter::file() const {
  return file(
      [](MessageWriter& tensor, const std::vector<std::byte>& elements) { tensor.bytes(9, elements); });
}

std::vector<std::byte> GraphWriter::file(const std::string& data_name, AtomicFile& data) const {
  constexpr std::size_t smallest = 1024;     // shorter ones stay, such as those that shapes are computed from
  constexpr std::size_t alignment = 65'536;  // as ONNX recommends, so that all systems can map a tensor
  std::size_t end = 0;
  return file([&](MessageWriter& tensor, const std::vector<std::byte>& elements) {
    if (elements.size() < smallest) return tensor.bytes(9, elements);
    const std::vector<std::byte> gap((alignment - end % alignment) % alignment);
    data.write(gap);
    data.write(elements);
    const std::size_t begin = end + gap.size();
    end = begin + elements.size();
    const std::pair<const char*, std::string> entries[] = {{"location", data_name},
                                                           {"offset", std::to_string(begin)},
                                                           {"length", std::to_string(elements.size())}};
    for (const auto& [key, value] : entries) {
      MessageWriter entry;
      entry.text(1, key);
      entry.text(2, value);
      tensor.message(13, entry);
    }
    tensor.integer(14, 1);  // TensorProto.EXTERNAL
  });
}

std::vector<std::byte> GraphWriter::file(const AddElements& add_elements) const {
  constexpr std::int64_t ir_version = 8, opset = 17;
  MessageWriter graph, set, model;
  graph.append(nodes_);
  graph.text(2, "xgrad");
  for (const Initializer& initializer : initializers_) {
    if (!read_.contains(initializer.name)) continue;
    MessageWriter tensor = initializer.description;
    add_elements(tensor, initializer.elements);
    graph.message(5, tensor);
  }
  graph.append(inputs_);
  graph.append(outputs_);
  set.text(1, "");
  set.integer(2, opset);
  model.integer(1, ir_version);
  model.text(2, "xgrad");
  model.message(7, graph);
  model.message(8, set);
  const std::span<const std::byte> bytes = model.written();
  return {bytes.begin(), bytes.end()};
}

template void GraphWriter::initializer(const std::string&, const Shape&, std::span<const float>);
template void GraphWriter::initializer(const std::string&, const Shape&, std::span<const double>);
template void GraphWriter::initializer(const std::string&, const Shape&, std::span<const std::int64_t>);
template void GraphWriter::initializer(const std::string&, const Shape&, std::span<const bool>);

}  // namespace xgrad::onnx::detail
