#include "restored_matrices.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>

namespace xgrad::onnx::detail {

std::vector<std::byte> transposed_elements(std::span<const std::byte> elements, const Shape& shape) {
  const std::size_t rows = shape[0], cols = shape[1];
  std::vector<std::byte> turned(elements.size());
  if (turned.empty()) return turned;
  const std::size_t size = elements.size() / (rows * cols);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t col = 0; col < cols; ++col)
      std::memcpy(&turned[(col * rows + row) * size], &elements[(row * cols + col) * size], size);
  return turned;
}

Model restored_matrices(const Model& file) {
  Model model = file;
  if (file.producer != producer) return model;
  std::set<std::string> names;
  for (const Tensor& tensor : file.initializers) names.insert(tensor.view.name);
  for (const ValueInfo& input : file.inputs) names.insert(input.name);
  for (const Node& node : file.nodes) names.insert(node.outputs.begin(), node.outputs.end());
  std::vector<Node> transposes;
  for (Tensor& tensor : model.initializers) {
    TensorView& view = tensor.view;
    const bool is_input = std::ranges::find(file.inputs, view.name, &ValueInfo::name) != file.inputs.end();
    if (!tensor.documentation.starts_with(transpose_of) || view.shape.size() != 2 || is_input ||
        !tensor.is_supported)
      continue;
    std::string matrix = tensor.documentation.substr(transpose_of.size());
    if (matrix.empty() || !names.insert(matrix).second) continue;
    Node& transpose = transposes.emplace_back();
    transpose.op = "Transpose";
    transpose.inputs = {matrix};
    transpose.outputs = {view.name};
    Attribute& perm = transpose.attributes.emplace_back();
    perm.name = "perm";
    perm.type = 7;  // AttributeProto.INTS
    perm.integers = {1, 0};
    tensor.memory =
        std::make_shared<const std::vector<std::byte>>(transposed_elements(view.bytes, view.shape));
    view.bytes = *tensor.memory;
    std::swap(view.shape[0], view.shape[1]);
    view.name = std::move(matrix);
  }
  model.nodes.insert(model.nodes.begin(), std::make_move_iterator(transposes.begin()),
                     std::make_move_iterator(transposes.end()));
  return model;
}

}  // namespace xgrad::onnx::detail
