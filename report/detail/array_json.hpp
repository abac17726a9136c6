#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "../../base/array.hpp"
#include "../../base/detail/text/json_tree.hpp"

// Not installed: arrays in the format of docs/report_format.md.

namespace xgrad::detail {

/// RFC 4648, section 4.
std::string base64(std::span<const std::byte> bytes);

/// [2, 3]
JsonTree shape_json(const Shape& shape);

/// {"shape": [2, 3], "dtype": "f32", "base64": "..."}
JsonTree array_json(const Array<float>& array);
JsonTree array_json(const Array<double>& array);
JsonTree array_json(const Ids& ids);
JsonTree array_json(const Mask& mask);

/// With 16 bits per element; elements must be finite.
template <class T>
JsonTree rounded_json(const Array<T>& array);

/// The number, or null if it is not finite; for a float between 1e-13 and 1e27, with the fewest digits that
/// identify it.
JsonTree number_json(double number);
JsonTree number_json(float number);

}  // namespace xgrad::detail
