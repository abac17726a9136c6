#include "weight_files.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <set>
#include <type_traits>

#include "../../../base/detail/bytes/bit_cast.hpp"
#include "../../../base/detail/system/folder_files.hpp"
#include "../../../base/detail/text/json_text.hpp"
#include "../../../base/error.hpp"
#include "../config/json.hpp"

namespace xgrad::pretrained::detail {
namespace {

/// Numbers: those of a piece stay in a core's cache, and what the pool keeps of them is little.
constexpr std::size_t most_at_once = std::size_t{1} << 16;

std::variant<SafetensorsFile, TorchFile, GgufFile> opened(const std::string& path, WeightFormat format) {
  if (format == WeightFormat::torch) return TorchFile(path);
  if (format == WeightFormat::gguf) return GgufFile(path);
  return SafetensorsFile(path);
}

/// Whether none is nan or infinite, whose exponents have all bits.
template <class T>
bool are_finite(std::span<const T> numbers) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const Bits exponent = kernels::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  Bits found = 0;
  for (const T number : numbers)
    found |= static_cast<Bits>((kernels::bit_cast<Bits>(number) & exponent) == exponent);
  return found == 0;
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
  return std::visit([](const auto& file) -> const std::vector<TensorView>& { return file.tensors(); }, file_);
}

template <class T>
void WeightFile::read(const TensorView& piece, std::size_t at, T* to) const {
  const std::size_t count = piece.shape[0];
  if (piece.dtype == dtype_of<T>) {
    std::memcpy(to, piece.bytes.data(), piece.bytes.size());
  } else {
    const Array<T> part = xgrad::detail::array_from<T>(path_, piece);
    std::copy_n(part.data(), count, to);
  }
  release(piece);
  if (!are_finite(std::span<const T>(to, count))) {
    const T* const first = std::find_if(to, to + count, [](T number) { return !std::isfinite(number); });
    xgrad::detail::fail<FileError>(path_, ": tensor ", xgrad::detail::in_quotes(piece.name),
                                   " must hold finite numbers, got ", *first, " at place ",
                                   at + static_cast<std::size_t>(first - to));
  }
}

template <class F>
void WeightFile::in_pieces(const TensorView& tensor, std::size_t most, const F& read_piece) {
  const std::size_t count = element_count(tensor.shape);
  std::span<const std::byte> bytes = tensor.bytes;
  for (std::size_t begin = 0; begin < count; begin += most) {
    TensorView piece{tensor.name, tensor.dtype, {std::min(most, count - begin)}, bytes};
    piece.bytes = bytes.first(*byte_count(piece.dtype, piece.shape));
    read_piece(piece, begin);
    bytes = bytes.subspan(piece.bytes.size());
  }
}

template <class T>
Array<T> WeightFile::array(const TensorView& tensor) const {
  Array<T> array = Array<T>::from_shape(tensor.shape);
  in_pieces(tensor, most_at_once,
            [&](const TensorView& piece, std::size_t begin) { read(piece, begin, array.data() + begin); });
  return array;
}

template <class E, class F>
void WeightFile::read_columns(const TensorView& matrix, std::size_t first, std::size_t count, E* columns,
                              const F& read_piece) {
  const std::size_t rows = matrix.shape[0], width = matrix.shape[1];
  const std::size_t at_once = std::max<std::size_t>(most_at_once / std::max<std::size_t>(width, 1), 1);
  std::vector<E> numbers(std::min(at_once, rows) * width);
  in_pieces(matrix, at_once * width, [&](const TensorView& piece, std::size_t begin) {
    read_piece(piece, begin, numbers.data());
    const std::size_t some = piece.shape[0] / width;
    for (std::size_t j = 0; j < count; ++j) {
      E* const to = columns + j * rows + begin / width;
      for (std::size_t i = 0; i < some; ++i) to[i] = numbers[i * width + first + j];
    }
  });
}

template <class T>
Array<T> WeightFile::columns(const TensorView& matrix, std::size_t first, std::size_t count) const {
  Array<T> array = Array<T>::from_shape({count, matrix.shape[0]});
  read_columns(matrix, first, count, array.data(),
               [this](const TensorView& piece, std::size_t at, T* to) { read(piece, at, to); });
  return array;
}

void WeightFile::read_bits(const TensorView& piece, std::size_t at, std::uint16_t* to) const {
  constexpr std::uint16_t exponent = 0x7f80;
  if (piece.dtype != DType::BF16) {
    Array<float> numbers = Array<float>::from_shape(piece.shape);
    read(piece, at, numbers.data());
    const Array<std::uint16_t> bits = to_bfloat16(view_of("", numbers));
    std::copy_n(bits.data(), bits.size(), to);
    return;
  }
  std::memcpy(to, piece.bytes.data(), piece.bytes.size());
  release(piece);
  const bool is_finite = std::none_of(to, to + piece.shape[0],
                                      [](std::uint16_t number) { return (number & exponent) == exponent; });
  if (!is_finite) {
    std::vector<float> numbers(piece.shape[0]);
    read(piece, at, numbers.data());  // which names the first
  }
}

std::vector<std::uint16_t> WeightFile::bits(const TensorView& tensor) const {
  std::vector<std::uint16_t> numbers(element_count(tensor.shape));
  in_pieces(tensor, most_at_once, [&](const TensorView& piece, std::size_t begin) {
    read_bits(piece, begin, numbers.data() + begin);
  });
  return numbers;
}

std::vector<std::uint16_t> WeightFile::columns_as_bits(const TensorView& matrix, std::size_t first,
                                                       std::size_t count) const {
  std::vector<std::uint16_t> bits(count * matrix.shape[0]);
  read_columns(
      matrix, first, count, bits.data(),
      [this](const TensorView& piece, std::size_t at, std::uint16_t* to) { read_bits(piece, at, to); });
  return bits;
}

void WeightFile::release(const TensorView& tensor) const {
  std::visit(
      [&](const auto& file) {
        file.release(tensor);
        file.throw_if_changed();
      },
      file_);
}

template Array<float> WeightFile::array(const TensorView&) const;
template Array<double> WeightFile::array(const TensorView&) const;
template Array<float> WeightFile::columns(const TensorView&, std::size_t, std::size_t) const;
template Array<double> WeightFile::columns(const TensorView&, std::size_t, std::size_t) const;

void open_weight_files(const std::string& path, std::deque<WeightFile>& files) {
  if (is_gguf(path)) {
    files.emplace_back(path, WeightFormat::gguf);
    return;
  }
  for (const auto& [name, format] : {std::pair{"/model.safetensors", WeightFormat::safetensors},
                                     {"/pytorch_model.bin", WeightFormat::torch}}) {
    const std::string one = path + name, index = one + ".index.json";
    if (xgrad::detail::exists(one)) {
      files.emplace_back(one, format);
      return;
    }
    if (!xgrad::detail::exists(index)) continue;
    for (const std::string& file : files_in(index))
      files.emplace_back(xgrad::detail::join({path, "/", file}), format);
    return;
  }
  xgrad::detail::fail<FileError>(path, ": must hold model.safetensors or pytorch_model.bin, or one of ",
                                 "model.safetensors.index.json and pytorch_model.bin.index.json");
}

}  // namespace xgrad::pretrained::detail
