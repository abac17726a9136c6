#pragma once

#include <optional>
#include <string>
#include <string_view>

// Not installed.

namespace xgrad::detail {

/// What report/formulas.txt has of the op: "y; dy/d(first operand); ...".
std::optional<std::string> formula_of(std::string_view op);

}  // namespace xgrad::detail
