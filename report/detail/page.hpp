#pragma once

#include <string>

// Not installed.

namespace xgrad::detail {

/// The page with the data, given as JSON.
std::string page_with(const std::string& json);

}  // namespace xgrad::detail
