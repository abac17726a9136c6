#include "graph_writer.hpp"

#include <algorithm>
#include <utility>

#include "restored_matrices.hpp"

namespace xgrad::onnx::detail {
namespace {

// Numbers of AttributeProto.AttributeType and of TensorProto.DataType.
constexpr std::int64_t float_attribute = 1, integer_attribute = 2, text_attribute = 3, integers_attribute = 7,
                       texts_attribute = 8;

template <class E>
constexpr std::int64_t data_type_of = std::is_same_v<E, float>          ? 1
                                      : std::is_same_v<E, double>       ? 11
                                      : std::is_same_v<E, std::int64_t> ? 7
                                                                        : 9;

/// The version of the format that came with an operator set.
std::int64_t ir_version(std::int64_t opset) { return opset < 19 ? 8 : opset < 21 ? 9 : opset < 23 ? 10 : 11; }

AttributeWriter swapped_axes() {
  AttributeWriter attributes;
  attributes.integers("perm", std::vector<std::int64_t>{1, 0});
  return attributes;
}

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

AttributeWriter& AttributeWriter::text(std::string_view name, std::string_view value) {
  attributes_.push_back(attribute(name, text_attribute));
  attributes_.back().text(4, value);
  return *this;
}

AttributeWriter& AttributeWriter::texts(std::string_view name,
                                        std::initializer_list<std::string_view> values) {
  attributes_.push_back(attribute(name, texts_attribute));
  for (const std::string_view value : values) attributes_.back().text(9, value);
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
  nodes_.push_back(made(op, inputs, attributes, {output}));
  return output;
}

GraphWriter::Names GraphWriter::nodes(std::string_view op, const Names& inputs,
                                      const AttributeWriter& attributes, std::size_t results) {
  Names outputs;
  for (std::size_t i = 0; i < results; ++i) outputs.push_back(new_name(scope_ + std::string(op)));
  nodes_.push_back(made(op, inputs, attributes, outputs));
  return outputs;
}

GraphWriter::WrittenNode GraphWriter::made(std::string_view op, const Names& inputs,
                                           const AttributeWriter& attributes, const Names& outputs) {
  MessageWriter node;
  for (const std::string& input : inputs) node.text(1, input);
  for (const std::string& output : outputs) node.text(2, output);
  node.text(3, outputs.front());
  node.text(4, op);
  for (const MessageWriter& one : attributes.written()) node.message(5, one);
  return {inputs, outputs, std::move(node)};
}

std::pair<std::vector<const GraphWriter::WrittenNode*>, std::set<std::string>> GraphWriter::needed() const {
  std::vector<const WrittenNode*> live;
  std::set<std::string> read = results_;
  for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
    const auto is_read = [&](const std::string& output) { return read.contains(output); };
    if (!std::ranges::any_of(node->outputs, is_read)) continue;
    live.push_back(&*node);
    read.insert(node->inputs.begin(), node->inputs.end());
  }
  std::ranges::reverse(live);
  return {std::move(live), std::move(read)};
}

std::string GraphWriter::transposed(const std::string& matrix) {
  if (std::ranges::find(initializers_, matrix, &Initializer::name) == initializers_.end())
    return node("Transpose", {matrix}, swapped_axes());
  std::string& name = transposed_[matrix];
  if (name.empty()) name = new_name(matrix + "_transposed");
  return name;
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
  const std::span<const std::byte> bytes = std::as_bytes(elements);
  initializers_.push_back({name, shape, data_type_of<E>, {bytes.begin(), bytes.end()}});
}

void GraphWriter::input(const std::string& name, std::int64_t type, const std::vector<Axis>& axes) {
  inputs_.message(11, value_info(name, type, axes));
}

void GraphWriter::output(const std::string& name, std::int64_t type, const std::vector<Axis>& axes) {
  results_.insert(name);
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
  return file([](MessageWriter& tensor, std::span<const std::byte> elements) { tensor.bytes(9, elements); });
}

std::vector<std::byte> GraphWriter::file(const std::string& data_name, AtomicFile& data) const {
  constexpr std::size_t smallest = 1024;     // shorter ones stay, such as those that shapes are computed from
  constexpr std::size_t alignment = 65'536;  // as ONNX recommends, so that all systems can map a tensor
  std::size_t end = 0;
  return file([&](MessageWriter& tensor, std::span<const std::byte> elements) {
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
  MessageWriter graph, set, model;
  const auto [live, read] = needed();
  for (const auto& [matrix, transpose] : transposed_) {
    if (read.contains(transpose) && read.contains(matrix))
      graph.message(1, made("Transpose", {matrix}, swapped_axes(), {transpose}).message);
  }
  for (const WrittenNode* node : live) graph.message(1, node->message);
  graph.text(2, "xgrad");
  for (const auto& [name, shape, type, elements] : initializers_) {
    const auto transpose = transposed_.find(name);
    const bool is_transposed =
        !read.contains(name) && transpose != transposed_.end() && read.contains(transpose->second);
    if (!is_transposed && !read.contains(name)) continue;
    std::vector<std::int64_t> dims(shape.begin(), shape.end());
    if (is_transposed) std::ranges::reverse(dims);
    MessageWriter tensor;
    tensor.integers(1, dims);
    tensor.integer(2, type);
    tensor.text(8, is_transposed ? transpose->second : name);
    std::vector<std::byte> turned;
    if (is_transposed) turned = transposed_elements(elements, shape);
    add_elements(tensor, is_transposed ? turned : elements);
    if (is_transposed) tensor.text(12, std::string(transpose_of) + name);
    graph.message(5, tensor);
  }
  graph.append(inputs_);
  graph.append(outputs_);
  set.text(1, "");
  set.integer(2, opset_);
  model.integer(1, ir_version(opset_));
  model.text(2, producer);
  model.text(3, XGRAD_VERSION);
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
