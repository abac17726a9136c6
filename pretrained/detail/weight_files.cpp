#include "weight_files.hpp"

#include <algorithm>
#include <set>

#include "../../base/detail/folder_files.hpp"
#include "../../base/error.hpp"
#include "json.hpp"

namespace xgrad::pretrained::detail {
namespace {

std::variant<SafetensorsFile, TorchFile> opened(const std::string& path, WeightFormat format) {
  if (format == WeightFormat::torch) return TorchFile(path);
  return SafetensorsFile(path);
}

/// The names in the index of a model in several files.
std::set<std::string> files_in(const std::string& index) {
  std::set<std::string> names;
  for (const auto& [tensor, file] : Json::read(index).at("weight_map").members()) {
    const std::string& name = file.text();
    if (name.find('/') != name.npos || name.empty()) file.refuse("a file of the same folder");
    names.insert(name);
  }
  return names;
}

}  // namespace

WeightFile::WeightFile(std::string path, WeightFormat format)
    : path_(std::move(path)), file_(opened(path_, format)) {}

const std::vector<TensorView>& WeightFile::tensors() const {
  const auto* const torch = std::get_if<TorchFile>(&file_);
  return torch != nullptr ? torch->tensors() : std::get<SafetensorsFile>(file_).tensors();
}

template <class T>
Array<T> WeightFile::array(const TensorView& tensor) const {
  constexpr std::size_t most = std::size_t{1} << 20;
  const std::size_t count = element_count(tensor.shape);
  Array<T> array = Array<T>::from_shape(tensor.shape);
  std::span<const std::byte> bytes = tensor.bytes;
  for (std::size_t begin = 0; begin < count; begin += most) {
    TensorView piece{tensor.name, tensor.dtype, {std::min(most, count - begin)}, bytes};
    piece.bytes = bytes.first(*byte_count(piece.dtype, piece.shape));
    const Array<T> part = xgrad::detail::array_from<T>(path_, piece);
    std::copy_n(part.data(), part.size(), array.data() + begin);
    std::visit([&](const auto& file) { file.release(piece); }, file_);
    bytes = bytes.subspan(piece.bytes.size());
  }
  return array;
}

template Array<float> WeightFile::array(const TensorView&) const;
template Array<double> WeightFile::array(const TensorView&) const;

void open_weight_files(const std::string& folder, std::deque<WeightFile>& files) {
  for (const auto& [name, format] : {std::pair{"/model.safetensors", WeightFormat::safetensors},
                                     {"/pytorch_model.bin", WeightFormat::torch}}) {
    const std::string one = folder + name, index = one + ".index.json";
    if (xgrad::detail::exists(one)) {
      files.emplace_back(one, format);
      return;
    }
    if (!xgrad::detail::exists(index)) continue;
    for (const std::string& file : files_in(index))
      files.emplace_back(xgrad::detail::join({folder, "/", file}), format);
    return;
  }
  xgrad::detail::fail<FileError>(folder, ": must hold model.safetensors or pytorch_model.bin, or one of ",
                                 "model.safetensors.index.json and pytorch_model.bin.index.json");
}

}  // namespace xgrad::pretrained::detail
