#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../../base/file.hpp"
#include "../../files/tensor_view.hpp"

// Raw content of an ONNX file. https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
namespace xgrad::onnx::detail {

/// A tensor, whose bytes are in the file or in `memory`.
struct Tensor {
  TensorView view;
  std::shared_ptr<const std::vector<std::byte>> memory = {};
};

/// An attribute of a node: one of these, according to its type.
struct Attribute {
  std::string name;
  std::int64_t type = 0;
  std::optional<float> number = {};
  std::optional<std::int64_t> integer = {};
  std::optional<std::string> text = {};
  std::optional<Tensor> tensor = {};
  std::vector<float> numbers = {};
  std::vector<std::int64_t> integers = {};
};

struct Node {
  std::string name, op, domain;
  std::vector<std::string> inputs, outputs;  ///< an empty name is an omitted one
  std::vector<Attribute> attributes;
};

/// The length of an axis, or the name of a variable length.
struct Dimension {
  std::optional<std::int64_t> length;
  std::string name;
};

struct ValueInfo {
  std::string name;
  bool is_tensor = true;  ///< otherwise a sequence, a map, an optional, a sparse tensor
  std::int64_t type = 0;  ///< TensorProto.DataType
  std::optional<std::vector<Dimension>> shape;
};

/// The graph of a file; valid while its files are mapped.
struct Model {
  std::int64_t ir_version = 0, opset = 0;
  std::string producer;
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  std::vector<ValueInfo> inputs, outputs;
  std::vector<std::shared_ptr<const MappedFile>> files;
};

/// The element type of a TensorProto.DataType, if xgrad::files supports it.
std::optional<DType> dtype_of_data_type(std::int64_t type);

/// "FLOAT", or "type 77".
std::string name_of_data_type(std::int64_t type);

/// Reads the file, and the files of its external tensors. Throws FileError.
Model read_model(const std::string& path);

/// Parses the bytes of a file, which must outlive the model; `path` is its name in errors.
Model read_model(const std::string& path, std::span<const std::byte> bytes);

/// Reads a file of one TensorProto, as in ONNX's test data. Throws FileError.
Tensor read_tensor(const std::string& path);

}  // namespace xgrad::onnx::detail
