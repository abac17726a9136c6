#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include "../../base/array.hpp"

// Not installed: arrays in the format of docs/report_format.md.

namespace xgrad::detail {

/// RFC 4648, section 4.
std::string base64(std::span<const std::byte> bytes);

/// [2, 3]
nlohmann::json shape_json(const Shape& shape);

/// {"shape": [2, 3], "dtype": "f32", "base64": "..."}
nlohmann::json array_json(const Array<float>& array);
nlohmann::json array_json(const Array<double>& array);
nlohmann::json array_json(const Ids& ids);
nlohmann::json array_json(const Mask& mask);

/// With 16 bits per element; elements must be finite.
template <class T>
nlohmann::json rounded_json(const Array<T>& array);

/// The number, or null if it is not finite; for a float between 1e-13 and 1e27, with the fewest digits that
/// identify it.
nlohmann::json number_json(double number);
nlohmann::json number_json(float number);

}  // namespace xgrad::detail
