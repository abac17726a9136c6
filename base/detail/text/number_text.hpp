#pragma once

#include <string>

// Locale-independent numbers as text. std::to_chars is not used throughout, as libc++ lacked it for
// floating-point numbers.
namespace xgrad::detail {

enum class Notation { fixed, scientific };

/// As printf's %f or %e with this many digits after the point; exact.
std::string formatted(double number, Notation notation, int digits);

/// The shortest text, in either notation, that parses to the same number, which must be finite; may be longer
/// for subnormal numbers.
std::string shortest_text(double number);

}  // namespace xgrad::detail
