#pragma once

// What the files of losses have in common.

#include <xgrad/ops/loss/losses.hpp>

#include "call.hpp"
#include "draw.hpp"

namespace xgrad_tests {

/// Class weights 1, 2, 3 for three classes, of the type of the argument.
template <class V>
V class_weights(const V&) {
  return V(xgrad::Array<typename V::value_type>{1, 2, 3});
}

/// The attribute reduction.
template <class T>
xgrad::Reduction reduction(const Call<T>& c) {
  const std::string name = c.text("reduction");
  if (name == "none") return xgrad::Reduction::none;
  if (name == "mean") return xgrad::Reduction::mean;
  if (name == "sum") return xgrad::Reduction::sum;
  throw xgrad::ValueError("there is no reduction '" + name + "'");
}

inline std::string draw_reduction(Drawing& d) { return d.one_of<std::string>({"none", "mean", "sum"}); }

/// What losses over classes take.
struct Classes {
  Name scores, target;  // no target if there is no class
  Name weight;          // or none
  std::ptrdiff_t ignore_index;
};

inline Classes draw_classes(Drawing& d) {
  const Name scores = d.numbers(1);
  Shape shape = d.shape(scores);
  const std::size_t axis = shape.size() == 1 ? 0 : 1, classes = shape[axis];
  if (classes == 0) return {scores, {}, {}, 0};
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  const Name target = d.ids(shape, classes), weight = d.constant(Shape{classes}, {0.5, 2});
  const Ids& ids = *d.values().at(target).ids;
  const bool ignored = ids.size() > 0 && d.chance(0.3);
  return {scores, target, d.chance(0.4) ? weight : Name(),
          ignored ? static_cast<std::ptrdiff_t>(ids.data()[0]) : -100};
}

}  // namespace xgrad_tests
