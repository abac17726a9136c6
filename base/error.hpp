#pragma once

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "array.hpp"

namespace xgrad {

/// Incompatible shapes, axes or sizes.
struct ShapeError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/// An argument out of range.
struct ValueError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/// An id or an index out of range.
struct IndexError : std::out_of_range {
  using std::out_of_range::out_of_range;
};

/// Invalid use of a graph: a second backward, a missing gradient, a changed saved value.
struct GraphError : std::logic_error {
  using std::logic_error::logic_error;
};

/// A file that cannot be read or written, or violates its format:
/// `model.safetensors: tensor "w": shape must hold integers from 0, got -2`.
struct FileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

namespace detail {

std::string join(std::initializer_list<std::string> parts);
/// The name of the module that runs, and ": "; empty if none runs or it has no name.
std::string module_prefix();
/// The text after the name of the module that runs: "layers.0.norm1: layer_norm: ...".
std::string error_text(std::initializer_list<std::string> parts);
std::string number_text(double number);

template <class V>
std::string text(const V& part) {
  if constexpr (std::is_same_v<V, Shape>) {
    return to_string(part);
  } else if constexpr (std::is_floating_point_v<V>) {
    return number_text(part);
  } else if constexpr (std::is_integral_v<V>) {
    return std::to_string(part);
  } else if constexpr (std::is_convertible_v<const V&, std::ptrdiff_t> && !std::is_enum_v<V>) {
    return std::to_string(static_cast<std::ptrdiff_t>(part));
  } else {
    return std::string(std::string_view(part));
  }
}

/// Throws ShapeError if the number of elements of `shape`, counting its axes of length 0 as 1, exceeds
/// memory.
void check_count(const char* op, const Shape& shape);

/// Throws an Error whose message is the concatenated parts, after the name of the module that runs. Formats
/// text only here, on failure.
template <class Error, class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail(const Parts&... parts) {
  throw Error(error_text({text(parts)...}));
}

}  // namespace detail
}  // namespace xgrad
