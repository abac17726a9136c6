#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

namespace xgrad {

/// Static description of an op: its name, and the names of its inputs and attributes in order. Each event of
/// a watcher contains it. The descriptions of the library's ops are in namespace ops.
struct OpInfo {
  const char* name;
  std::span<const char*const> inputs, attributes;

  /// Descriptions with the same name are of the same op.
  friend bool operator==(const OpInfo& a, const OpInfo& b) noexcept {
    return std::string_view(a.name) == b.name;
  }
};

/// Description of one op, with I inputs and A attributes. All nodes of the op point to it, so it must have
/// static storage duration: declare it as a constexpr constant (static constexpr inside a function), which
/// the compiler checks.
///
///   inline constexpr Op cube("cube", {"x"});
///   inline constexpr Op layer_norm("layer_norm", {"x", "weight", "bias"}, {"normalized_shape", "eps"});
template <std::size_t I, std::size_t A>
struct Op : OpInfo {
  static constexpr std::size_t input_count = I, attribute_count = A;

  constexpr Op(const char* op, const char* const (&input_names)[I]) requires(A == 0)
      : OpInfo{op, {names, I}, {}} {
    std::copy_n(input_names, I, names);
  }
  template <std::size_t N>
  constexpr Op(const char* op, const char* const (&input_names)[I], const char* const (&attribute_names)[N])
      : OpInfo{op, {names, I}, {names + I, A}} {
    std::copy_n(input_names, I, names);
    std::copy_n(attribute_names, A, names + I);
  }
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;

  const char* names[I + A] = {};
};

template <std::size_t I>
Op(const char*, const char* const (&)[I]) -> Op<I, 0>;
template <std::size_t I, std::size_t A>
Op(const char*, const char* const (&)[I], const char* const (&)[A]) -> Op<I, A>;

namespace detail {

/// A constant Op. Deduced as O&, it rejects temporaries.
template <class O>
concept Described = std::derived_from<O, OpInfo> && std::is_const_v<O> && requires {
  O::input_count;
};

}  // namespace detail
}  // namespace xgrad
