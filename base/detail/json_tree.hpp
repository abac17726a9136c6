#pragma once

#include <memory>

#include <nlohmann/json.hpp>

#include "json_tree_fwd.hpp"

// The destructor of nlohmann's values moves their children into a new vector, and so ends the process where
// there is no memory for it: at the end of a scope, and inside each initializer list and copy that fails. It
// also reads through the null pointer of a value whose container could not be made. The trees' own, a
// specialization of that function, recurses: as deep as the value. Their invariant, which Debug builds
// assert, allows such a value.

namespace xgrad::detail {

/// std::allocator, as a type of this library's: that makes the trees types of its own, too.
template <class T>
struct TreeAllocator : std::allocator<T> {
  TreeAllocator() noexcept = default;
  template <class U>
  TreeAllocator(const TreeAllocator<U>& /*other*/) noexcept {}
  template <class U>
  struct rebind {
    using other = TreeAllocator<U>;
  };
};

/// Ends what a value holds; nothing for a null pointer.
template <class Held>
void end_held(Held* held) noexcept {
  if (held == nullptr) return;
  std::destroy_at(held);
  TreeAllocator<Held>().deallocate(held, 1);
}

template <class Value>
void end_value(Value& value, nlohmann::detail::value_t type) noexcept {
  using nlohmann::detail::value_t;
  if (type == value_t::object) {
    end_held(value.object);
  } else if (type == value_t::array) {
    end_held(value.array);
  } else if (type == value_t::string) {
    end_held(value.string);
  } else if (type == value_t::binary) {
    end_held(value.binary);
  }
}

}  // namespace xgrad::detail

template <>
inline void xgrad::detail::JsonTree::json_value::destroy(nlohmann::detail::value_t type) {
  xgrad::detail::end_value(*this, type);
}
template <>
inline void xgrad::detail::OrderedJsonTree::json_value::destroy(nlohmann::detail::value_t type) {
  xgrad::detail::end_value(*this, type);
}
template <>
inline void xgrad::detail::JsonTree::assert_invariant(bool) const noexcept {}
template <>
inline void xgrad::detail::OrderedJsonTree::assert_invariant(bool) const noexcept {}
