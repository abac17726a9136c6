#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace xgrad::detail {

/// Defined in json_tree.hpp alone: no source compiles that uses a tree without it.
template <class T>
struct TreeAllocator;

/// nlohmann::json and nlohmann::ordered_json, which are destroyed without memory.
using JsonTree = nlohmann::basic_json<std::map, std::vector, std::string, bool, std::int64_t, std::uint64_t,
                                      double, TreeAllocator>;
using OrderedJsonTree = nlohmann::basic_json<nlohmann::ordered_map, std::vector, std::string, bool,
                                             std::int64_t, std::uint64_t, double, TreeAllocator>;

}  // namespace xgrad::detail
