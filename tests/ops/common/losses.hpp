#pragma once

// What the files of losses have in common.

#include <xgrad/ops/losses.hpp>

#include "call.hpp"

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

}  // namespace xgrad_tests
