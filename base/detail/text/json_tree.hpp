#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "json_tree_fwd.hpp"

// The destructor of nlohmann's values moves their children into a new vector, and so ends the process where
// there is no memory for it: at the end of a scope, and inside each initializer list and copy that fails. It
// also reads through the null pointer of a value whose container could not be made. The trees' own, a
// specialization of that function, recurses: as deep as the value. Their invariant, which Debug builds
// assert, allows such a value. And a value of an initializer list ends what it holds if an element fails: it
// delegates to another constructor first.

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

/// The value of an initializer list, as documented at basic_json(initializer_list_t, bool, value_t).
template <class Tree>
void fill_tree(Tree& tree, const typename Tree::initializer_list_t& elements, bool type_deduction,
               nlohmann::detail::value_t manual_type) {
  using nlohmann::detail::value_t;
  const bool are_pairs = std::all_of(elements.begin(), elements.end(), [](const auto& element) {
    return element->is_array() && element->size() == 2 && element->front().is_string();
  });
  if (!type_deduction && manual_type == value_t::object && !are_pairs)
    throw Tree::type_error::create(301, "cannot create object from initializer list", nullptr);
  const bool is_object = are_pairs && (type_deduction || manual_type == value_t::object);
  tree = Tree(is_object ? value_t::object : value_t::array);
  for (const auto& element : elements) {
    Tree value = element.moved_or_copied();
    if (is_object) {
      tree.emplace(std::move(value.front().template get_ref<typename Tree::string_t&>()),
                   std::move(value.back()));
    } else {
      tree.push_back(std::move(value));
    }
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
template <>
inline xgrad::detail::JsonTree::basic_json(initializer_list_t init, bool type_deduction, value_t manual_type)
    : basic_json(nullptr) {
  fill_tree(*this, init, type_deduction, manual_type);
}
template <>
inline xgrad::detail::OrderedJsonTree::basic_json(initializer_list_t init, bool type_deduction,
                                                  value_t manual_type)
    : basic_json(nullptr) {
  fill_tree(*this, init, type_deduction, manual_type);
}
