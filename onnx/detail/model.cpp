#include "model.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>
#include <set>
#include <utility>

#include "../../base/detail/bytes/protobuf.hpp"
#include "../../base/detail/text/json_text.hpp"
#include "../../base/error.hpp"
#include "../../base/folder.hpp"
#include "operators/operators.hpp"

namespace xgrad::onnx::detail {
namespace {

using xgrad::detail::fail, xgrad::detail::in_quotes, xgrad::detail::MessageReader;

struct DataType {
  const char* name;
  std::optional<DType> dtype;
};

// By the numbers of TensorProto.DataType.
constexpr DataType data_types[] = {{"UNDEFINED", {}},
                                   {"FLOAT", DType::F32},
                                   {"UINT8", DType::U8},
                                   {"INT8", DType::I8},
                                   {"UINT16", DType::U16},
                                   {"INT16", DType::I16},
                                   {"INT32", DType::I32},
                                   {"INT64", DType::I64},
                                   {"STRING", {}},
                                   {"BOOL", DType::BOOL},
                                   {"FLOAT16", DType::F16},
                                   {"DOUBLE", DType::F64},
                                   {"UINT32", DType::U32},
                                   {"UINT64", DType::U64},
                                   {"COMPLEX64", DType::C64},
                                   {"COMPLEX128", {}},
                                   {"BFLOAT16", DType::BF16},
                                   {"FLOAT8E4M3FN", {}},
                                   {"FLOAT8E4M3FNUZ", {}},
                                   {"FLOAT8E5M2", {}},
                                   {"FLOAT8E5M2FNUZ", {}},
                                   {"UINT4", {}},
                                   {"INT4", {}},
                                   {"FLOAT4E2M1", {}},
                                   {"FLOAT8E8M0", {}}};

using Texts = std::map<std::string, std::string>;

/// The elements as bytes of `Stored`; of those narrower than their list, the lower bytes.
template <class Stored, class Listed>
Tensor in_memory(const std::vector<Listed>& elements) {
  auto bytes = std::make_shared<std::vector<std::byte>>();
  bytes->reserve(elements.size() * sizeof(Stored));
  for (const Listed element : elements) {
    const auto stored = static_cast<Stored>(element);
    const auto* first = reinterpret_cast<const std::byte*>(&stored);
    bytes->insert(bytes->end(), first, first + sizeof stored);
  }
  Tensor tensor{};
  tensor.view.bytes = *bytes;
  tensor.memory = std::move(bytes);
  return tensor;
}

/// What a TensorProto holds instead of raw bytes: lists of its type, or one wider.
struct Lists {
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<std::int64_t> int32s, int64s, uint64s;

  bool empty() const {
    return floats.empty() && doubles.empty() && int32s.empty() && int64s.empty() && uint64s.empty();
  }

  Tensor as(DType dtype) const {
    switch (dtype) {
      case DType::F32:
        return in_memory<float>(floats);
      case DType::F64:
        return in_memory<double>(doubles);
      case DType::I64:
        return in_memory<std::int64_t>(int64s);
      case DType::U32:
        return in_memory<std::uint32_t>(uint64s);
      case DType::U64:
        return in_memory<std::uint64_t>(uint64s);
      case DType::I32:
        return in_memory<std::int32_t>(int32s);
      case DType::I16:
      case DType::U16:
      case DType::F16:
      case DType::BF16:
        return in_memory<std::uint16_t>(int32s);
      default:
        return in_memory<std::uint8_t>(int32s);
    }
  }
};

class ModelReader {
 public:
  explicit ModelReader(const std::string& path, TensorData data = TensorData::bytes)
      : path_(path), data_(data) {
    complete_folder(std::filesystem::path(path).parent_path().string());
    model_.files.push_back(std::make_shared<const MappedFile>(path));
    bytes_ = model_.files.front()->bytes();
  }
  ModelReader(const std::string& path, std::span<const std::byte> bytes) : path_(path), bytes_(bytes) {}

  Model read() {
    try {
      Model model = read_model();
      model.throw_if_changed();
      return model;
    } catch (const ValueError& error) {
      model_.throw_if_changed();
      check_beginning(error.what());
      throw;
    }
  }

  Tensor read_tensor() {
    Tensor tensor = read_tensor(bytes_);
    check_supported(tensor);
    auto bytes =
        std::make_shared<const std::vector<std::byte>>(tensor.view.bytes.begin(), tensor.view.bytes.end());
    tensor.view.bytes = *bytes;
    tensor.memory = std::move(bytes);
    model_.throw_if_changed();
    return tensor;
  }

 private:
  /// Throws for bytes that do not begin as those of a model do, with its ir_version: what is wrong with them.
  void check_beginning(const std::string& what) const {
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
    if (text.starts_with('\x08')) return;
    if (text.starts_with("GGUF")) fail<ValueError>("is a GGUF file, not an ONNX file");
    if (text.starts_with("PK\3\4")) fail<ValueError>("is a zip archive, not an ONNX file");
    if (text.size() > 8 && text[8] == '{') fail<ValueError>("is a safetensors file, not an ONNX file");
    fail<ValueError>("is not an ONNX file (", what, ")");
  }

  Model read_model() {
    for (MessageReader in(bytes_); in.next();) {
      switch (in.field()) {
        case 1:
          model_.ir_version = in.integer();
          break;
        case 2:
          model_.producer = in.text();
          break;
        case 7:
          read_graph(in.bytes(), model_);
          break;
        case 8:
          read_opset(in.bytes());
          break;
        default:
          break;
      }
    }
    if (model_.nodes.empty()) fail<ValueError>("there is no graph with nodes");
    return std::move(model_);
  }

  void read_opset(std::span<const std::byte> message) {
    std::string domain;
    std::int64_t version = 0;
    for (MessageReader in(message); in.next();) {
      if (in.field() == 1) domain = in.text();
      if (in.field() == 2) version = in.integer();
    }
    if (domain.empty() || domain == "ai.onnx") model_.opset = version;
  }

  void read_graph(std::span<const std::byte> message, Subgraph& graph) {
    for (MessageReader in(message); in.next();) {
      switch (in.field()) {
        case 1:
          graph.nodes.push_back(read_node(in.bytes()));
          break;
        case 5:
          graph.initializers.push_back(read_tensor(in.bytes()));
          break;
        case 11:
          graph.inputs.push_back(read_value_info(in.bytes()));
          break;
        case 12:
          graph.outputs.push_back(read_value_info(in.bytes()));
          break;
        case 15:
          if (data_ == TensorData::bytes) fail<ValueError>("sparse initializers are not supported");
          break;
        default:
          break;
      }
    }
  }

  Node read_node(std::span<const std::byte> message) {
    Node node;
    for (MessageReader in(message); in.next();) {
      switch (in.field()) {
        case 1:
          node.inputs.push_back(in.text());
          break;
        case 2:
          node.outputs.push_back(in.text());
          break;
        case 3:
          node.name = in.text();
          break;
        case 4:
          node.op = in.text();
          break;
        case 5:
          node.attributes.push_back(read_attribute(in.bytes()));
          break;
        case 7:
          node.domain = in.text();
          break;
        default:
          break;
      }
    }
    if (node.op.empty()) fail<ValueError>("there is a node without an operator");
    for (const Attribute& attribute : node.attributes) {
      if (attribute.graph == nullptr) continue;
      for (std::string& name : attribute.graph->values_from_outside())
        if (std::ranges::find(node.inputs, name) == node.inputs.end()) node.inputs.push_back(std::move(name));
    }
    return node;
  }

  Attribute read_attribute(std::span<const std::byte> message) {
    Attribute attribute;
    for (MessageReader in(message); in.next();) {
      switch (in.field()) {
        case 1:
          attribute.name = in.text();
          break;
        case 2:
          attribute.number = in.number();
          break;
        case 3:
          attribute.integer = in.integer();
          break;
        case 4:
          attribute.text = in.text();
          break;
        case 5:
          attribute.tensor = read_tensor(in.bytes());
          break;
        case 6:
          attribute.graph = read_subgraph(in.bytes());
          break;
        case 7:
          in.append_to(attribute.numbers);
          break;
        case 8:
          in.append_to(attribute.integers);
          break;
        case 9:
          attribute.texts.push_back(in.text());
          break;
        case 20:
          attribute.type = in.integer();
          break;
        default:
          break;
      }
    }
    if (attribute.name.empty()) fail<ValueError>("an attribute has no name");
    // numbers of 0 and empty texts are left out by writers of proto3
    if (attribute.type == 1 && !attribute.number) attribute.number = 0;
    if (attribute.type == 2 && !attribute.integer) attribute.integer = 0;
    if (attribute.type == 3 && !attribute.text) attribute.text = "";
    return attribute;
  }

  std::shared_ptr<const Subgraph> read_subgraph(std::span<const std::byte> message) {
    constexpr int most = 16;
    if (++depth_ > most) fail<ValueError>("graphs in attributes may be nested ", most, " deep");
    auto graph = std::make_shared<Subgraph>();
    read_graph(message, *graph);
    --depth_;
    return graph;
  }

  static ValueInfo read_value_info(std::span<const std::byte> message) {
    ValueInfo info;
    for (MessageReader in(message); in.next();) {
      if (in.field() == 1) info.name = in.text();
      if (in.field() != 2) continue;
      for (MessageReader type(in.bytes()); type.next();) {
        if (type.field() == 1) read_tensor_type(type.bytes(), info);
        info.is_tensor = info.is_tensor && !is_other_type(type.field());
      }
    }
    return info;
  }

  /// By the numbers of TypeProto's fields.
  static bool is_other_type(std::uint64_t field) {
    return field == 4 || field == 5 || field == 8 || field == 9;
  }

  static void read_tensor_type(std::span<const std::byte> message, ValueInfo& info) {
    for (MessageReader in(message); in.next();) {
      if (in.field() == 1) info.type = in.integer();
      if (in.field() != 2) continue;
      info.shape.emplace();
      for (MessageReader shape(in.bytes()); shape.next();)
        if (shape.field() == 1) info.shape->push_back(read_dimension(shape.bytes()));
    }
  }

  static Dimension read_dimension(std::span<const std::byte> message) {
    Dimension dimension;
    for (MessageReader in(message); in.next();) {
      if (in.field() == 1) dimension.length = in.integer();
      if (in.field() == 2) dimension.name = in.text();
    }
    return dimension;
  }

  Tensor read_tensor(std::span<const std::byte> message) {
    std::string name, documentation;
    std::int64_t type = 0;
    std::vector<std::int64_t> dims;
    std::optional<std::span<const std::byte>> raw;
    Lists lists;
    Texts external;
    bool is_external = false;
    for (MessageReader in(message); in.next();) {
      switch (in.field()) {
        case 1:
          in.append_to(dims);
          break;
        case 2:
          type = in.integer();
          break;
        case 4:
          in.append_to(lists.floats);
          break;
        case 5:
          in.append_to(lists.int32s);
          break;
        case 7:
          in.append_to(lists.int64s);
          break;
        case 8:
          name = in.text();
          break;
        case 9:
          raw = in.bytes();
          break;
        case 10:
          in.append_to(lists.doubles);
          break;
        case 11:
          in.append_to(lists.uint64s);
          break;
        case 12:
          documentation = in.text();
          break;
        case 13:
          read_entry(in.bytes(), external);
          break;
        case 14:
          is_external = in.integer() == 1;
          break;
        default:
          break;
      }
    }
    const std::string what = "tensor " + in_quotes(name) + ": ";
    const std::optional<DType> dtype = dtype_of_data_type(type);
    constexpr std::size_t most_axes = 64;
    if (dims.size() > most_axes)
      fail<ValueError>(what, "a tensor may have ", most_axes, " axes, got ", dims.size());
    Shape shape;
    for (const std::int64_t length : dims) {
      if (length < 0) fail<ValueError>(what, "lengths must be at least 0, got ", length);
      shape.push_back(static_cast<std::size_t>(length));
    }
    if (!dtype || data_ == TensorData::description) {
      Tensor described{};
      described.view.name = std::move(name);
      described.view.dtype = dtype.value_or(DType::U8);
      described.view.shape = std::move(shape);
      described.type = type;
      described.is_supported = dtype.has_value();
      return described;
    }
    const std::optional<std::size_t> size = byte_count(*dtype, shape);
    if (!size) fail<ValueError>(what, "a tensor ", shape, " is larger than memory");
    if (*size == 0) check_count(shape);  // no bytes stand behind its lengths
    Tensor tensor{};
    if (is_external) {
      tensor.view.bytes = external_bytes(what, external, *size);
    } else if (raw) {
      tensor.view.bytes = *raw;
    } else if (!lists.empty()) {
      tensor = lists.as(*dtype);
    }
    tensor.view.name = std::move(name);
    tensor.view.dtype = *dtype;
    tensor.view.shape = std::move(shape);
    tensor.type = type;
    tensor.documentation = std::move(documentation);
    if (tensor.view.bytes.size() != *size) {
      fail<ValueError>(what, tensor.view.shape, " of ", to_string(*dtype), " takes ", *size, " bytes, got ",
                       tensor.view.bytes.size());
    }
    return tensor;
  }

  static void read_entry(std::span<const std::byte> message, Texts& texts) {
    std::string key, value;
    for (MessageReader in(message); in.next();) {
      if (in.field() == 1) key = in.text();
      if (in.field() == 2) value = in.text();
    }
    texts[key] = value;
  }

  /// Of a file that lies in the folder of this one, or below it. Where this one is a link, as in caches that
  /// keep all files of all models in a folder of their own, that of the file itself will do, too.
  std::span<const std::byte> external_bytes(const std::string& what, const Texts& entries, std::size_t size) {
    const auto entry = [&](const char* key) {
      const auto found = entries.find(key);
      return found == entries.end() ? std::string() : found->second;
    };
    if (model_.files.empty()) fail<ValueError>(what, "external data needs a model that is read from a file");
    const std::string location = entry("location");
    std::error_code error;
    const auto resolved = [&](const std::filesystem::path& file) {
      return error ? std::filesystem::path() : std::filesystem::weakly_canonical(file, error);
    };
    const std::filesystem::path folder = resolved(std::filesystem::absolute(path_).parent_path());
    const std::filesystem::path file = resolved(folder / location);
    const auto is_below = [&](const std::filesystem::path& other) {
      return !error && std::ranges::mismatch(other, file).in1 == other.end();
    };
    if (location.empty() || !(is_below(folder) || is_below(resolved(path_).parent_path()))) {
      fail<ValueError>(what, "external data must lie in the folder of the model, got location ",
                       in_quotes(location));
    }
    const std::span<const std::byte> bytes = mapped(what, file.string(), size);
    const std::uint64_t offset = number(what, "offset", entry("offset"), 0);
    const std::uint64_t length = number(what, "length", entry("length"), size);
    if (offset > bytes.size() || length > bytes.size() - offset) {
      fail<ValueError>(what, "external data goes from ", offset, " to ", offset, " + ", length, ", but ",
                       in_quotes(location), " has ", bytes.size(), " bytes");
    }
    return bytes.subspan(offset, length);
  }

  static std::uint64_t number(const std::string& what, const char* key, const std::string& text,
                              std::uint64_t otherwise) {
    if (text.empty()) return otherwise;
    const bool is_number =
        text.size() <= 18 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
    if (!is_number)
      fail<ValueError>(what, "the ", key, " of external data must be a number, got ", in_quotes(text));
    return std::stoull(text);
  }

  /// The file, of whose bytes a tensor takes so many.
  std::span<const std::byte> mapped(const std::string& what, const std::string& path, std::size_t taken) {
    auto& [file, taken_of_file] = external_[path];
    if (file == nullptr) {
      file = std::make_shared<const MappedFile>(path);
      model_.files.push_back(file);
    }
    constexpr std::size_t most = 16;  // tied weights may share bytes, but each has a copy
    taken_of_file += std::min(taken, file->bytes().size());
    if (taken_of_file > most * file->bytes().size())
      fail<ValueError>(what, "tensors take the bytes of ", in_quotes(path), " more than ", most, " times");
    return file->bytes();
  }

  std::string path_;
  TensorData data_ = TensorData::bytes;
  int depth_ = 0;
  std::span<const std::byte> bytes_;
  Model model_;
  std::map<std::string, std::pair<std::shared_ptr<const MappedFile>, std::size_t>> external_;
};

}  // namespace

void check_supported(const Tensor& tensor) {
  if (tensor.is_supported) return;
  fail<ValueError>("tensor ", in_quotes(tensor.view.name), ": elements of type ",
                   name_of_data_type(tensor.type), " are not supported");
}

bool has_floats(const Tensor& tensor) {
  const DType dtype = tensor.view.dtype;
  return tensor.is_supported &&
         (dtype == DType::F32 || dtype == DType::F64 || dtype == DType::F16 || dtype == DType::BF16);
}

std::string Node::operator_name() const {
  return domain.empty() || domain == "ai.onnx" ? op : domain + "." + op;
}

std::vector<std::string> Subgraph::values_from_outside() const {
  std::vector<std::string> outside;
  std::set<std::string, std::less<>> known{""};
  const auto read = [&](const std::string& name) {
    if (known.insert(name).second) outside.push_back(name);
  };
  for (const Tensor& tensor : initializers) known.insert(tensor.view.name);
  for (const ValueInfo& input : inputs) known.insert(input.name);
  for (const Node& node : nodes) {
    for (const std::string& input : node.inputs) read(input);
    known.insert(node.outputs.begin(), node.outputs.end());
  }
  for (const ValueInfo& output : outputs) read(output.name);
  return outside;
}

std::optional<DType> dtype_of_data_type(std::int64_t type) {
  const bool is_known = type >= 0 && type < static_cast<std::int64_t>(std::size(data_types));
  return is_known ? data_types[type].dtype : std::nullopt;
}

std::string name_of_data_type(std::int64_t type) {
  const bool is_known = type >= 0 && type < static_cast<std::int64_t>(std::size(data_types));
  return is_known ? data_types[type].name : "type " + std::to_string(type);
}

namespace {

/// What read() gives, whose errors begin with the path.
template <class F>
auto with_path(const std::string& path, F read) {
  try {
    return read();
  } catch (const ValueError& error) {
    throw FileError(path + ": " + error.what());
  }
}

}  // namespace

Model read_model(const std::string& path, TensorData data) {
  return with_path(path, [&] { return ModelReader(path, data).read(); });
}

Model read_model(const std::string& path, std::span<const std::byte> bytes) {
  return with_path(path, [&] { return ModelReader(path, bytes).read(); });
}

Tensor read_tensor(const std::string& path) {
  return with_path(path, [&] { return ModelReader(path).read_tensor(); });
}

}  // namespace xgrad::onnx::detail
