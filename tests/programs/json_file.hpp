#pragma once

// JSON whose entries are checked, so that a damaged file is told in the words of its entries.

#include <concepts>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace xgrad_tests {

/// A file or an entry is not what it must be.
struct BadEntry : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline nlohmann::json read_json(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw BadEntry(path + ": cannot be read");
  try {
    return nlohmann::json::parse(file);
  } catch (const nlohmann::json::exception& error) {
    const std::string text = error.what();  // begins with the exception's name in brackets
    throw BadEntry(path + ": " + text.substr(text.find("] ") + 2));
  }
}

[[noreturn]] inline void bad_entry(const std::string& name, const std::string& must_be,
                                   const nlohmann::json& got) {
  constexpr std::size_t longest = 40;
  std::string shown = got.is_object() ? "an object" : got.is_array() ? "a list" : got.dump();
  if (shown.size() > longest) shown = shown.substr(0, longest) + "...";
  throw BadEntry(name + " must be " + must_be + ", got " + shown);
}

template <class V>
struct IsVector : std::false_type {};
template <class V>
struct IsVector<std::vector<V>> : std::true_type {};

/// The value as V: text, bool, a number or a list of these. No other type is converted, and no number cut
/// off.
template <class V>
V as(const nlohmann::json& value, const std::string& name) {
  if constexpr (std::same_as<V, std::string>) {
    if (!value.is_string()) bad_entry(name, "text", value);
    return value.get<V>();
  } else if constexpr (std::same_as<V, bool>) {
    if (!value.is_boolean()) bad_entry(name, "true or false", value);
    return value.get<V>();
  } else if constexpr (std::floating_point<V>) {
    if (!value.is_number()) bad_entry(name, "a number", value);
    return value.get<V>();
  } else if constexpr (std::integral<V>) {
    using Limits = std::numeric_limits<V>;
    const bool fits = value.is_number_unsigned()  ? std::in_range<V>(value.get<std::uint64_t>())
                      : value.is_number_integer() ? std::in_range<V>(value.get<std::int64_t>())
                                                  : false;
    if (!fits) {
      bad_entry(
          name,
          "a whole number in [" + std::to_string(Limits::min()) + ", " + std::to_string(Limits::max()) + "]",
          value);
    }
    return value.get<V>();
  } else {
    static_assert(IsVector<V>::value);
    if (!value.is_array()) bad_entry(name, "a list", value);
    V items;
    for (const nlohmann::json& item : value)
      items.push_back(as<typename V::value_type>(item, name + "[" + std::to_string(items.size()) + "]"));
    return items;
  }
}

inline const nlohmann::json& entry(const nlohmann::json& object, const std::string& name) {
  if (!object.is_object()) bad_entry("what holds " + name, "an object", object);
  const auto found = object.find(name);
  if (found == object.end()) throw BadEntry(name + " is missing");
  return *found;
}

template <class V>
V entry_as(const nlohmann::json& object, const std::string& name) {
  return as<V>(entry(object, name), name);
}

/// An entry that is a list of anything.
inline const nlohmann::json& list_entry(const nlohmann::json& object, const std::string& name) {
  const nlohmann::json& list = entry(object, name);
  if (!list.is_array()) bad_entry(name, "a list", list);
  return list;
}

/// A list of as many entries.
inline const nlohmann::json& list_entry(const nlohmann::json& object, const std::string& name,
                                        std::size_t size) {
  const nlohmann::json& list = list_entry(object, name);
  if (list.size() != size)
    throw BadEntry(name + " must have " + std::to_string(size) + " entries, got " +
                   std::to_string(list.size()));
  return list;
}

}  // namespace xgrad_tests
