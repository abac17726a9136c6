#include "error.hpp"

#include <cstdio>

#include "detail/module_frame.hpp"

namespace xgrad {

std::string to_string(const Shape& shape) {
  std::string text = "(";
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (axis > 0) text += ", ";
    text += std::to_string(shape[axis]);
  }
  return text + ")";
}

namespace detail {

std::string join(std::initializer_list<std::string> parts) {
  std::string whole;
  for (const std::string& part : parts) whole += part;
  return whole;
}

std::string module_prefix() {
  const std::string name = module_frame != nullptr ? name_of(*module_frame) : "";
  return name.empty() ? name : name + ": ";
}

std::string error_text(std::initializer_list<std::string> parts) { return module_prefix() + join(parts); }

void check_count(const char* op, const Shape& shape) {
  constexpr std::size_t limit = static_cast<std::size_t>(-1) >> 4;
  std::size_t count = 1;
  for (const std::size_t length : shape) {
    if (length != 0 && (__builtin_mul_overflow(count, length, &count) || count > limit))
      fail<ShapeError>(op, ": shape ", shape, " has too many elements");
  }
}

std::string number_text(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", number);
  return text;
}

}  // namespace detail
}  // namespace xgrad
