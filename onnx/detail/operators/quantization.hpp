#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "../../../base/error.hpp"
#include "../types.hpp"

// How floats become integers of few bits: x is about (q - zero point) scale.
namespace xgrad::onnx::detail {

/// The least and the largest integer of a type.
struct IntegerRange {
  std::int64_t least, largest;

  explicit IntegerRange(std::int64_t type) {
    switch (type) {
      case data_type::uint8:
        least = 0, largest = 255;
        break;
      case data_type::int8:
        least = -128, largest = 127;
        break;
      case data_type::uint16:
        least = 0, largest = 65535;
        break;
      case data_type::int16:
        least = -32768, largest = 32767;
        break;
      default:
        xgrad::detail::fail<ValueError>("integers of type ", name_of_data_type(type), " are not supported");
    }
  }

  /// x rounded, to the even integer if two are as near, plus a zero point; what is beyond the range becomes
  /// its end, and nan the least, as in ONNX Runtime.
  template <class T>
  std::int64_t quantized(T x, std::int64_t zero_point) const {
    const T sum = std::nearbyint(x) + static_cast<T>(zero_point);
    if (std::isnan(sum)) return least;
    return static_cast<std::int64_t>(std::clamp(sum, static_cast<T>(least), static_cast<T>(largest)));
  }
};

/// The scale and the zero point with which the numbers from the least to the largest, and 0, become integers
/// from 0 to 255.
template <class T>
struct DynamicScale {
  T scale;
  std::int64_t zero_point;

  DynamicScale(T least, T largest)
      : scale(largest == least ? T{1} : (largest - least) / 255),
        zero_point(IntegerRange(data_type::uint8).quantized(-least / scale, 0)) {}
};

}  // namespace xgrad::onnx::detail
