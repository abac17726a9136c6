#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "../base/array.hpp"
#include "../base/dtype.hpp"

// Tensors in files. Link to xgrad::files.

namespace xgrad {

/// "BF16".
std::string to_string(DType dtype);

/// The type of the safetensors format with this name, if it exists.
std::optional<DType> dtype_named(std::string_view name);

/// Whether safetensors files have the type: those of GGUF's blocks are no others'.
constexpr bool is_of_safetensors(DType dtype) { return dtype <= DType::U64; }

/// A non-owning tensor in memory: little-endian, row-major, of any alignment.
struct TensorView {
  std::string name;
  DType dtype;
  Shape shape;
  std::span<const std::byte> bytes;
};

/// The number of bytes of a tensor; empty if its elements do not fill whole bytes, if its rows do not fill
/// whole blocks, or if the product of its nonzero lengths is above 2^54.
std::optional<std::size_t> byte_count(DType dtype, const Shape& shape);

/// `count` of the tensor's elements, row by row, as a tensor of one axis: a part to convert at a time. Both
/// numbers must be multiples of the type's block.
TensorView elements_of(const TensorView& tensor, std::size_t begin, std::size_t count);

/// A view of the array; the array must outlive it.
template <class T>
TensorView view_of(std::string name, const Array<T>& array) {
  return {std::move(name), dtype_of<T>, array.shape(),
          std::as_bytes(std::span<const T>(array.data(), array.size()))};
}

/// The values as T. For float and double: from F64, F32, F16, BF16 and the floats of 8 bits, rounded if T is
/// narrower, and from blocks (Q4_0 to MXFP4; those behind it are not read), as floats. For std::int64_t: from
/// all integers, those of U64 below 2^63. For bool: from BOOL, where every byte but 0 is true. Elements
/// stored as T are copied bit for bit. Throws ValueError: `tensor "w": dtype must be F64, F32, F16, BF16 or
/// F8, got I64`.
template <class T>
Array<T> to_array(const TensorView& tensor);

/// The values that to_array<float> gives, rounded to the nearest bfloat16, ties to even: the upper halves of
/// floats. Elements stored as BF16 are copied bit for bit. Throws ValueError as to_array does.
Array<std::uint16_t> to_bfloat16(const TensorView& tensor);

/// The value of an IEEE 754 half: exact; a nan keeps its payload.
float half_to_float(std::uint16_t bits);

/// The value of a bfloat16, the upper half of a float.
float bfloat16_to_float(std::uint16_t bits);

/// The value of a float of 8 bits, F8_E4M3, F8_E5M2, F8_E4M3FNUZ, F8_E5M2FNUZ or F8_E8M0: exact.
/// https://www.opencompute.org/documents/ocp-8-bit-floating-point-specification-ofp8 (E4M3, E5M2)
/// https://arxiv.org/abs/2206.02915 (FNUZ: no infinities, no -0, and one nan in its place)
float float8_to_float(DType dtype, std::uint8_t bits);

namespace detail {

/// to_array, with its error as a FileError that begins with the path of the file and, if `named`, the
/// tensor's name.
template <class T>
Array<T> array_from(const std::string& path, const TensorView& tensor, bool named = true);

}  // namespace detail
}  // namespace xgrad
