#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "../base/array.hpp"

// Tensors in files. Link to xgrad::files.

namespace xgrad {

/// Element types of the safetensors format, in its order; a file's tensors are sorted from the last of these
/// types to the first. https://github.com/huggingface/safetensors
/// Behind them are types of GGUF files alone, whose numbers stand in blocks of 32, 64 or 256 with scales of
/// their own: a row of a tensor holds whole blocks. https://github.com/ggml-org/ggml (docs/gguf.md)
enum class DType {
  BOOL,
  F4,
  F6_E2M3,
  F6_E3M2,
  U8,
  I8,
  F8_E5M2,
  F8_E4M3,
  F8_E8M0,
  F8_E4M3FNUZ,
  F8_E5M2FNUZ,
  I16,
  U16,
  F16,
  BF16,
  I32,
  U32,
  F32,
  C64,
  F64,
  I64,
  U64,
  Q4_0,
  Q4_1,
  Q5_0,
  Q5_1,
  Q8_0,
  Q2_K,
  Q3_K,
  Q4_K,
  Q5_K,
  Q6_K,
  IQ4_NL,
  IQ4_XS,
  MXFP4,
  IQ1_S,
  IQ1_M,
  IQ2_XXS,
  IQ2_XS,
  IQ2_S,
  IQ3_XXS,
  IQ3_S,
  TQ1_0,
  TQ2_0,
  NVFP4
};

/// "BF16".
std::string to_string(DType dtype);

/// The type of the safetensors format with this name, if it exists.
std::optional<DType> dtype_named(std::string_view name);

/// Whether safetensors files have the type: those of GGUF's blocks are no others'.
constexpr bool is_of_safetensors(DType dtype) { return dtype <= DType::U64; }

/// The type of T in a file.
template <class T>
inline constexpr DType dtype_of = T::no_type_of_files;
template <>
inline constexpr DType dtype_of<float> = DType::F32;
template <>
inline constexpr DType dtype_of<double> = DType::F64;
template <>
inline constexpr DType dtype_of<std::int64_t> = DType::I64;
template <>
inline constexpr DType dtype_of<std::uint8_t> = DType::U8;
template <>
inline constexpr DType dtype_of<std::int8_t> = DType::I8;
template <>
inline constexpr DType dtype_of<bool> = DType::BOOL;

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
