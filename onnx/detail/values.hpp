#pragma once

#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "../../ops/index/indexing.hpp"
#include "../../ops/shape/shapes.hpp"
#include "arguments.hpp"
#include "arrays.hpp"

// Values of any kind in another shape, and their parts.
namespace xgrad::onnx::detail {

inline Ids list_of(std::span<const std::size_t> elements) {
  Ids ids = Ids::from_shape({elements.size()});
  std::transform(elements.begin(), elements.end(), ids.data(),
                 [](std::size_t element) { return static_cast<std::int64_t>(element); });
  return ids;
}

/// The lengths of the axes of a shape from `start` to `end`, which may be negative.
inline Ids part_of_shape(const Shape& shape, std::int64_t start, std::int64_t end) {
  const auto rank = static_cast<std::int64_t>(shape.size());
  const auto clamped = [rank](std::int64_t axis) {
    return static_cast<std::size_t>(std::clamp<std::int64_t>(axis < 0 ? axis + rank : axis, 0, rank));
  };
  const std::size_t first = clamped(start), last = std::max(first, clamped(end));
  return list_of(std::span(shape.data() + first, last - first));
}

/// The same elements in another shape. Throws ShapeError for another number of them.
template <class T>
Value<T> reshaped(const Value<T>& value, const Shape& shape) {
  if (element_count(shape) != element_count(shape_of<T>(value)))
    xgrad::detail::fail<ShapeError>("a shape ", shape, " does not hold the elements of ", shape_of<T>(value));
  return std::visit(
      [&]<class A>(const A& x) -> Value<T> {
        if constexpr (std::is_same_v<A, Variable<T>>) {
          return reshape(x, Dims(shape));
        } else {
          A y = x;
          y.reshape(shape);
          return y;
        }
      },
      value);
}

/// The parts at these places along an axis.
template <class T>
Value<T> parts_at(const Value<T>& value, std::size_t axis, const std::vector<std::size_t>& places) {
  return std::visit(
      [&]<class A>(const A& x) -> Value<T> {
        if constexpr (std::is_same_v<A, Variable<T>>) {
          return index_select(x, static_cast<int>(axis), list_of(places));
        } else {
          return taken(x, axis, std::span(places));
        }
      },
      value);
}

/// Neighbouring parts.
template <class T>
Value<T> parts_between(const Value<T>& value, std::size_t axis, std::size_t begin, std::size_t end) {
  if (const Variable<T>* x = std::get_if<Variable<T>>(&value)) {
    return slice(*x, static_cast<int>(axis), static_cast<std::ptrdiff_t>(begin),
                 static_cast<std::ptrdiff_t>(end));
  }
  std::vector<std::size_t> places(end - begin);
  std::iota(places.begin(), places.end(), begin);
  return parts_at<T>(value, axis, places);
}

/// Lists that were attributes in older operator sets, and are inputs since.
template <class T>
std::optional<std::vector<std::int64_t>> list_from(const std::optional<std::vector<std::int64_t>>& attribute,
                                                   const Arguments<T>& given, std::size_t input) {
  if (attribute) return attribute;
  return given.has(input) ? std::optional(given.list(input)) : std::nullopt;
}

/// Ids, of which negative ones count from the end.
inline std::vector<std::size_t> places_of(const Ids& ids, std::size_t length) {
  std::vector<std::size_t> places;
  for (const std::int64_t id : ids) {
    const auto n = static_cast<std::int64_t>(length);
    if (id < -n || id >= n)
      xgrad::detail::fail<IndexError>("indices must be in [", -n, ", ", n, "), got ", id);
    places.push_back(static_cast<std::size_t>(id < 0 ? id + n : id));
  }
  return places;
}

}  // namespace xgrad::onnx::detail
