#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

namespace xgrad {

/// What is known of an op before it is called: its name, and the names of its inputs and attributes in their
/// order. Watchers get it with each event. The descriptions of the library's ops are in the namespace ops.
struct OpInfo {
  const char* name;
  std::span<const char*const> inputs, attributes;

  /// Two descriptions are of the same op if they have the same name.
  friend bool operator==(const OpInfo& a, const OpInfo& b) noexcept {
    return std::string_view(a.name) == b.name;
  }
};

/// The description of one op, with I inputs and A attributes. All nodes of the op point to it, so it has to
/// live as long as the program: as a constexpr constant, which the compiler refuses where it would not.
/// Inside a function it is static constexpr.
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

/// A constant Op. As O& deduces it, one that is made in the call itself is refused.
template <class O>
concept Described = std::derived_from<O, OpInfo> && std::is_const_v<O> && requires {
  O::input_count;
};

}  // namespace detail
}  // namespace xgrad
