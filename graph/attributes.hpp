#pragma once

// Attributes: the arguments of an op that are not Variables, for watchers.

#include <concepts>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "watch.hpp"

namespace xgrad {

/// Values of the attributes listed in the op's description, in its order: numbers, strings, shapes, axes,
/// arrays of numbers, ids and masks. Empty optionals, null pointers and empty arrays of numbers are omitted.
template <class... A>
struct Attributes {
  explicit Attributes(const A&... given) : values(given...) {}
  std::tuple<const A&...> values;
};

namespace detail {

template <class V>
inline constexpr bool is_optional = false;
template <class V>
inline constexpr bool is_optional<std::optional<V>> = true;

template <class A>
void add_attribute(AttributeList& list, const char* name, const A& value) {
  if constexpr (std::same_as<A, std::nullopt_t>) {
    return;
  } else if constexpr (is_optional<A>) {
    if (value) add_attribute(list, name, *value);
  } else if constexpr (std::is_same_v<A, bool>) {
    list.add(name, value);
  } else if constexpr (std::integral<A>) {
    list.add(name, static_cast<std::int64_t>(value));
  } else if constexpr (std::floating_point<A>) {
    list.add(name, static_cast<double>(value));
  } else if constexpr (std::convertible_to<const A&, std::string_view>) {
    list.add(name, std::string_view(value));
  } else if constexpr (std::convertible_to<const A&, std::int64_t>) {
    list.add(name, static_cast<std::int64_t>(value));
  } else if constexpr (std::same_as<A, Ids> || std::same_as<A, Mask>) {
    list.add(name, &value);
  } else if constexpr (std::is_pointer_v<A>) {
    if (value != nullptr) list.add(name, value);
  } else if constexpr (!requires { value.begin(); }) {
    static_assert(is_optional<A>, "an attribute is a number, a text, a list of numbers, ids or a mask");
  } else if constexpr (std::floating_point<std::remove_cvref_t<decltype(*value.begin())>>) {
    if (value.size() > 0) list.add(name, std::vector<double>(value.begin(), value.end()));
  } else {
    list.add(name, std::vector<std::int64_t>(value.begin(), value.end()));
  }
}

/// Notifies watchers of an op's results. Out of line: most programs have no watcher.
template <class T, class... A>
[[gnu::cold, gnu::noinline]] void notify_op(const OpInfo& op, std::span<const Variable<T>> ys,
                                            std::span<const Variable<T>* const> inputs,
                                            const Attributes<A...>& attributes) {
  AttributeList list;
  auto name = op.attributes.begin();
  std::apply([&](const auto&... value) { (add_attribute(list, *name++, value), ...); }, attributes.values);
  for (std::size_t i = 0; i < ys.size(); ++i) notify_op<T>(op, inputs, ys[i], list.attributes(), i);
}

}  // namespace detail
}  // namespace xgrad
