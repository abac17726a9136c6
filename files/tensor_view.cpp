#include "tensor_view.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "../base/detail/text/json_text.hpp"
#include "../base/error.hpp"
#include "../kernels/low_precision/bfloat16.hpp"
#include "detail/gguf_blocks.hpp"
#include "detail/half.hpp"

namespace xgrad {
namespace {

static_assert(std::endian::native == std::endian::little, "the bytes of files are used as they are");

struct DTypeRow {
  const char* name;
  std::size_t bits;       // of a block
  std::size_t block = 1;  // its elements
};

/// In the order of DType.
constexpr std::array<DTypeRow, 45> dtypes{{{"BOOL", 8},
                                           {"F4", 4},
                                           {"F6_E2M3", 6},
                                           {"F6_E3M2", 6},
                                           {"U8", 8},
                                           {"I8", 8},
                                           {"F8_E5M2", 8},
                                           {"F8_E4M3", 8},
                                           {"F8_E8M0", 8},
                                           {"F8_E4M3FNUZ", 8},
                                           {"F8_E5M2FNUZ", 8},
                                           {"I16", 16},
                                           {"U16", 16},
                                           {"F16", 16},
                                           {"BF16", 16},
                                           {"I32", 32},
                                           {"U32", 32},
                                           {"F32", 32},
                                           {"C64", 64},
                                           {"F64", 64},
                                           {"I64", 64},
                                           {"U64", 64},
                                           {"Q4_0", 8 * 18, 32},
                                           {"Q4_1", 8 * 20, 32},
                                           {"Q5_0", 8 * 22, 32},
                                           {"Q5_1", 8 * 24, 32},
                                           {"Q8_0", 8 * 34, 32},
                                           {"Q2_K", 8 * 84, 256},
                                           {"Q3_K", 8 * 110, 256},
                                           {"Q4_K", 8 * 144, 256},
                                           {"Q5_K", 8 * 176, 256},
                                           {"Q6_K", 8 * 210, 256},
                                           {"IQ4_NL", 8 * 18, 32},
                                           {"IQ4_XS", 8 * 136, 256},
                                           {"MXFP4", 8 * 17, 32},
                                           {"IQ1_S", 8 * 50, 256},
                                           {"IQ1_M", 8 * 56, 256},
                                           {"IQ2_XXS", 8 * 66, 256},
                                           {"IQ2_XS", 8 * 74, 256},
                                           {"IQ2_S", 8 * 82, 256},
                                           {"IQ3_XXS", 8 * 98, 256},
                                           {"IQ3_S", 8 * 110, 256},
                                           {"TQ1_0", 8 * 54, 256},
                                           {"TQ2_0", 8 * 66, 256},
                                           {"NVFP4", 8 * 36, 64}}};
static_assert(dtypes.size() == static_cast<std::size_t>(DType::NVFP4) + 1);

constexpr std::size_t largest_block = 256;

const DTypeRow& row_of(DType dtype) { return dtypes[static_cast<std::size_t>(dtype)]; }

/// The types that to_array<T> converts, for the error.
template <class T>
constexpr const char* accepted = "F64, F32, F16, BF16 or F8";
template <>
constexpr const char* accepted<std::int64_t> = "an integer";
template <>
constexpr const char* accepted<bool> = "BOOL";

/// to[i] = value(element i), for elements stored as Stored.
template <class Stored, class T, class Value>
void convert(const TensorView& from, Array<T>& to, Value value) {
  const std::byte* const source = from.bytes.data();
  T* const y = to.data();
  for (std::size_t i = 0; i < to.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, source + i * sizeof stored, sizeof stored);
    y[i] = static_cast<T>(value(stored));
  }
}

template <class Stored, class T>
bool convert(const TensorView& from, Array<T>& to) {
  convert<Stored>(from, to, [](Stored stored) { return stored; });
  return true;
}

/// The same for blocks.
template <class T>
bool convert_blocks(const TensorView& from, Array<T>& to) {
  const detail::BlocksToFloats to_floats = detail::blocks_to_floats(from.dtype);
  if (to_floats == nullptr) return false;
  const auto [name, bits, size] = row_of(from.dtype);
  const std::size_t count = to.size() / size, bytes = bits / 8;
  if constexpr (std::is_same_v<T, float>) {
    to_floats(from.bytes.data(), count, to.data());
  } else {
    std::array<float, largest_block> floats;
    for (std::size_t i = 0; i < count; ++i) {
      to_floats(from.bytes.data() + i * bytes, 1, floats.data());
      std::copy_n(floats.data(), size, to.data() + i * size);
    }
  }
  return true;
}

/// Fills `to`, unless the file's type cannot be converted to T; returns whether it could.
template <class T>
bool convert_any(const TensorView& from, Array<T>& to) {
  if constexpr (std::is_floating_point_v<T>) {
    switch (from.dtype) {
      case DType::F64:
        return convert<double>(from, to);
      case DType::F32:
        return convert<float>(from, to);
      case DType::F16:
        convert<std::uint16_t>(from, to, detail::float_of_half);
        return true;
      case DType::BF16:
        convert<std::uint16_t>(from, to, bfloat16_to_float);
        return true;
      case DType::F8_E4M3:
      case DType::F8_E5M2:
      case DType::F8_E4M3FNUZ:
      case DType::F8_E5M2FNUZ:
      case DType::F8_E8M0:
        convert<std::uint8_t>(from, to, [&](std::uint8_t bits) { return float8_to_float(from.dtype, bits); });
        return true;
      default:
        return convert_blocks(from, to);
    }
  } else if constexpr (std::is_same_v<T, bool>) {
    if (from.dtype != DType::BOOL) return false;
    convert<std::uint8_t>(from, to, [](std::uint8_t byte) { return byte != 0; });
    return true;
  } else {
    switch (from.dtype) {
      case DType::I32:
        return convert<std::int32_t>(from, to);
      case DType::I16:
        return convert<std::int16_t>(from, to);
      case DType::I8:
        return convert<std::int8_t>(from, to);
      case DType::U64:
        return convert<std::uint64_t>(from, to);
      case DType::U32:
        return convert<std::uint32_t>(from, to);
      case DType::U16:
        return convert<std::uint16_t>(from, to);
      case DType::U8:
        return convert<std::uint8_t>(from, to);
      default:
        return false;
    }
  }
}

}  // namespace

std::string to_string(DType dtype) { return row_of(dtype).name; }

std::optional<DType> dtype_named(std::string_view name) {
  for (std::size_t i = 0; i < dtypes.size(); ++i) {
    const auto dtype = static_cast<DType>(i);
    if (name == dtypes[i].name && is_of_safetensors(dtype)) return dtype;
  }
  return std::nullopt;
}

std::optional<std::size_t> byte_count(DType dtype, const Shape& shape) {
  // Bits and strides with a sign have to fit: strides are products of all lengths but zeros.
  constexpr std::size_t limit = (std::numeric_limits<std::size_t>::max() >> 10) + 1;
  std::size_t product = 1;
  bool empty = false;
  for (const std::size_t length : shape) {
    empty = empty || length == 0;
    if (length != 0 && product > limit / length) return std::nullopt;
    product *= length == 0 ? 1 : length;
  }
  const DTypeRow& row = row_of(dtype);
  if ((shape.empty() ? 1 : shape.back()) % row.block != 0) return std::nullopt;
  const std::size_t bits = empty ? 0 : product / row.block * row.bits;
  if (bits % 8 != 0) return std::nullopt;
  return bits / 8;
}

namespace {

/// `subject` is what errors begin with.
void check_bytes(const TensorView& tensor, const std::string& subject) {
  if (byte_count(tensor.dtype, tensor.shape) != tensor.bytes.size())
    detail::fail<ValueError>(subject, "shape ", tensor.shape, " of ", to_string(tensor.dtype),
                             " must fit its bytes, got ", tensor.bytes.size());
}

/// The values as T.
template <class T>
Array<T> converted(const TensorView& tensor, const std::string& subject) {
  check_bytes(tensor, subject);
  Array<T> array = Array<T>::from_shape(tensor.shape);
  if (!std::is_same_v<T, bool> && tensor.dtype == dtype_of<T>) {
    if (array.size() > 0) std::memcpy(array.data(), tensor.bytes.data(), tensor.bytes.size());
  } else if (!convert_any(tensor, array)) {
    detail::fail<ValueError>(
        subject, "dtype must be ", accepted<T>,
        std::is_floating_point_v<T> && !is_of_safetensors(tensor.dtype) ? ", or one of Q4_0 to MXFP4" : "",
        ", got ", to_string(tensor.dtype));
  }
  if constexpr (std::is_same_v<T, std::int64_t>) {
    if (tensor.dtype == DType::U64 && std::any_of(array.begin(), array.end(), [](T id) { return id < 0; }))
      detail::fail<ValueError>(subject, "integers of U64 must be below 2^63");
  }
  return array;
}

std::string subject_of(const TensorView& tensor) { return "tensor " + detail::in_quotes(tensor.name) + ": "; }

}  // namespace

template <class T>
Array<T> to_array(const TensorView& tensor) {
  return converted<T>(tensor, subject_of(tensor));
}

TensorView elements_of(const TensorView& tensor, std::size_t begin, std::size_t count) {
  const std::size_t first = *byte_count(tensor.dtype, {begin}), size = *byte_count(tensor.dtype, {count});
  return {tensor.name, tensor.dtype, {count}, tensor.bytes.subspan(first, size)};
}

Array<std::uint16_t> to_bfloat16(const TensorView& tensor) {
  check_bytes(tensor, subject_of(tensor));
  Array<std::uint16_t> array = Array<std::uint16_t>::from_shape(tensor.shape);
  if (tensor.dtype == DType::BF16) {
    if (array.size() > 0) std::memcpy(array.data(), tensor.bytes.data(), tensor.bytes.size());
    return array;
  }
  constexpr std::size_t most = std::size_t{1} << 16;
  std::size_t begin = 0;
  do {
    const std::size_t count = std::min(most, array.size() - begin);
    const Array<float> floats = to_array<float>(elements_of(tensor, begin, count));
    std::transform(floats.begin(), floats.end(), array.data() + begin,
                   [](float x) { return static_cast<std::uint16_t>(kernels::rounded_bits(x) >> 16); });
    begin += count;
  } while (begin < array.size());
  return array;
}

float half_to_float(std::uint16_t bits) { return detail::float_of_half(bits); }

float bfloat16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

float float8_to_float(DType dtype, std::uint8_t bits) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  if (dtype == DType::F8_E8M0) return bits == 0xff ? nan : std::ldexp(1.0F, bits - 127);
  if (dtype == DType::F8_E5M2) return half_to_float(static_cast<std::uint16_t>(bits << 8));
  const bool is_fnuz = dtype != DType::F8_E4M3;
  if (is_fnuz ? bits == 0x80 : (bits & 0x7f) == 0x7f) return nan;
  const int fraction_bits = dtype == DType::F8_E5M2FNUZ ? 2 : 3, bias = dtype == DType::F8_E5M2FNUZ ? 16
                                                                        : is_fnuz                   ? 8
                                                                                                    : 7;
  const int exponent = (bits & 0x7f) >> fraction_bits, fraction = bits & ((1 << fraction_bits) - 1);
  const int significand = exponent == 0 ? fraction : fraction + (1 << fraction_bits);
  const float magnitude =
      std::ldexp(static_cast<float>(significand), std::max(exponent, 1) - bias - fraction_bits);
  return bits >> 7 ? -magnitude : magnitude;
}

namespace detail {

template <class T>
Array<T> array_from(const std::string& path, const TensorView& tensor, bool named) {
  try {
    return converted<T>(tensor, named ? subject_of(tensor) : "");
  } catch (const ValueError& error) {
    fail<FileError>(path, ": ", error.what());
  }
}

template Array<float> array_from(const std::string&, const TensorView&, bool);
template Array<double> array_from(const std::string&, const TensorView&, bool);
template Array<std::int64_t> array_from(const std::string&, const TensorView&, bool);
template Array<bool> array_from(const std::string&, const TensorView&, bool);

}  // namespace detail

template Array<float> to_array(const TensorView&);
template Array<double> to_array(const TensorView&);
template Array<std::int64_t> to_array(const TensorView&);
template Array<bool> to_array(const TensorView&);

}  // namespace xgrad
