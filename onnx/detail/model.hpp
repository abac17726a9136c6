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
  std::int64_t type = 0;     ///< TensorProto.DataType
  bool is_supported = true;  ///< otherwise the view has no bytes, and its dtype means nothing
  std::string documentation = {};
};

/// Throws ValueError for a tensor whose elements have no type of xgrad::files.
void check_supported(const Tensor& tensor);

/// Whether it holds floats of any width that is supported.
bool has_floats(const Tensor& tensor);

struct Subgraph;

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
  std::vector<std::string> texts = {};
  std::shared_ptr<const Subgraph> graph = {};
};

struct Node {
  std::string name, op, domain;
  /// An empty name is an omitted one. What the subgraphs of attributes read from outside is at the end.
  std::vector<std::string> inputs, outputs;
  std::vector<Attribute> attributes;

  /// "Add", or "com.microsoft.Attention" outside of ONNX's own domain.
  std::string operator_name() const;
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

/// A graph: that of a file, or of an attribute, which may read values of the graph around it.
struct Subgraph {
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  std::vector<ValueInfo> inputs, outputs;

  /// The names of the values that it reads and does not make, each once.
  std::vector<std::string> values_from_outside() const;
};

/// The graph of a file; valid while its files are mapped.
struct Model : Subgraph {
  std::int64_t ir_version = 0, opset = 0;
  std::string producer;
  std::vector<std::shared_ptr<const MappedFile>> files;

  /// Throws FileError if one of the files has changed since it was opened.
  void throw_if_changed() const {
    for (const auto& file : files) file->throw_if_changed();
  }
};

/// What is read of tensors.
enum class TensorData {
  bytes,        ///< all
  description,  ///< name, type and shape; files of external tensors are not opened
};

/// The element type of a TensorProto.DataType, if xgrad::files supports it.
std::optional<DType> dtype_of_data_type(std::int64_t type);

/// "FLOAT", or "type 77".
std::string name_of_data_type(std::int64_t type);

/// Reads the file, and the files of its external tensors. Throws FileError.
Model read_model(const std::string& path, TensorData data = TensorData::bytes);

/// Parses the bytes of a file, which must outlive the model; `path` is its name in errors.
Model read_model(const std::string& path, std::span<const std::byte> bytes);

/// Reads a file of one TensorProto, as in ONNX's test data. Throws FileError.
Tensor read_tensor(const std::string& path);

}  // namespace xgrad::onnx::detail
