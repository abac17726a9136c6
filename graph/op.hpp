#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>

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

/// Description of one op, with I inputs and A attributes. All nodes of the op point to it, so record() takes
/// only a constexpr constant with static storage duration (static constexpr inside a function).
///
///   inline constexpr Op cube("cube", {"x"});
///   inline constexpr Op layer_norm("layer_norm", {"x", "weight", "bias"}, {"normalized_shape", "eps"});
template <std::size_t I, std::size_t A>
struct Op : OpInfo {
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

/// A constexpr Op, as record() and its kind take it, of which a call names at most as many inputs (trailing
/// ones may be missing), and all attributes or none.
template <std::size_t inputs, std::size_t attributes>
class StaticOp {
 public:
  /// Evaluated by the compiler, which refuses an Op that is not constexpr or not static: nodes would point to
  /// it after it was destroyed.
  template <std::size_t I, std::size_t A>
  consteval StaticOp(const Op<I, A>& op) : info_(&op) {
    check<I, A>();
    static_cast<void>(op.names[0]);  // a read, which no op but a constexpr one has at compile time
  }
  template <std::size_t I, std::size_t A>
  constexpr StaticOp(StaticOp<I, A> op) noexcept : info_(&op.info()) {
    check<I, A>();
  }

  constexpr const OpInfo& info() const noexcept { return *info_; }

 private:
  template <std::size_t I, std::size_t A>
  static constexpr void check() {
    static_assert(inputs <= I, "the op has more inputs than its description names");
    static_assert(attributes == 0 || attributes == A,
                  "the op has other attributes than its description names");
  }

  const OpInfo* info_;
};

}  // namespace xgrad
