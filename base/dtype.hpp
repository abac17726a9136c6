#pragma once

#include <cstdint>

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

}  // namespace xgrad
