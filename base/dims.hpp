#pragma once

#include <concepts>
#include <cstddef>
#include <iterator>

#include "array.hpp"

namespace xgrad {

/// A list of axes or lengths: `1`, `{0, 2}`, `{batch, -1}` with integers of any types, or a Shape.
class Dims {
 public:
  template <std::integral... I>
  requires(sizeof...(I) > 0 && !(std::same_as<I, bool> || ...)) Dims(I... items)
      : items_{static_cast<std::ptrdiff_t>(items)...} {}
  template <std::input_iterator I>
  Dims(I first, I last) : items_(first, last) {}
  Dims(const Shape& shape) : items_(shape.begin(), shape.end()) {}

  std::size_t size() const { return items_.size(); }
  std::ptrdiff_t operator[](std::size_t i) const { return items_[i]; }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  xt::svector<std::ptrdiff_t, 4> items_;
};

/// "(2, -1)".
std::string to_string(const Dims& dims);

}  // namespace xgrad
