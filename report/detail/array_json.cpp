#include "array_json.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <vector>

#include "../../base/error.hpp"

namespace xgrad::detail {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays are written as they lie in memory");

template <class A>
JsonTree json_of(const A& array, const char* dtype) {
  const std::span elements(array.data(), array.size());
  return {
      {"shape", shape_json(array.shape())}, {"dtype", dtype}, {"base64", base64(std::as_bytes(elements))}};
}

}  // namespace

JsonTree shape_json(const Shape& shape) { return std::vector<std::size_t>(shape.begin(), shape.end()); }

std::string base64(std::span<const std::byte> bytes) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text((bytes.size() + 2) / 3 * 4, '=');
  char* out = text.data();
  for (std::size_t i = 0; i < bytes.size(); i += 3, out += 4) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (k < count ? std::to_integer<std::uint32_t>(bytes[i + k]) : 0);
    for (std::size_t k = 0; k <= count; ++k) out[k] = digits[bits >> (18 - 6 * k) & 63];
  }
  return text;
}

JsonTree array_json(const Array<float>& array) { return json_of(array, "f32"); }
JsonTree array_json(const Array<double>& array) { return json_of(array, "f64"); }
JsonTree array_json(const Ids& ids) { return json_of(ids, "i64"); }
JsonTree array_json(const Mask& mask) {
  static_assert(sizeof(bool) == 1);
  return json_of(mask, "u8");
}

template <class T>
JsonTree rounded_json(const Array<T>& array) {
  T low = 0, high = 0;
  if (array.size() > 0) {
    const auto [least, most] = std::minmax_element(array.data(), array.data() + array.size());
    low = *least;
    high = *most;
  }
  if (!std::isfinite(low) || !std::isfinite(high))
    fail<ValueError>("rounded_json: the elements must be finite, got ", low, " to ", high);
  const double step = (static_cast<double>(high) - static_cast<double>(low)) / 65535;
  std::vector<std::uint16_t> codes(array.size());
  std::transform(array.data(), array.data() + array.size(), codes.begin(), [&](T x) {
    return static_cast<std::uint16_t>(
        step > 0 ? std::lround((static_cast<double>(x) - static_cast<double>(low)) / step) : 0);
  });
  return {{"shape", shape_json(array.shape())},
          {"dtype", "u16"},
          {"low", low},
          {"high", high},
          {"base64", base64(std::as_bytes(std::span(codes)))}};
}
template JsonTree rounded_json(const Array<float>&);
template JsonTree rounded_json(const Array<double>&);

JsonTree number_json(double number) { return std::isfinite(number) ? JsonTree(number) : JsonTree(); }

JsonTree number_json(float number) {
  if (!std::isfinite(number)) return {};
  const double x = number;
  const int exponent = number == 0 ? 0 : static_cast<int>(std::floor(std::log10(std::abs(x))));
  // What fewer digits tell apart, the first of these do, with zeros behind it.
  for (int digits = std::numeric_limits<float>::digits10; digits <= std::numeric_limits<float>::max_digits10;
       ++digits) {
    const int places = digits - 1 - exponent;
    if (std::abs(places) > 22) break;  // so that the power is exact, and the decimal's nearest double found
    const double power = std::pow(10.0, std::abs(places));
    const double decimal = places < 0 ? std::nearbyint(x / power) * power : std::nearbyint(x * power) / power;
    if (static_cast<float>(decimal) == number) return decimal;
  }
  return x;
}

}  // namespace xgrad::detail
