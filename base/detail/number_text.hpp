#pragma once

#include <string>

// Numbers as text, whatever the locale. std::to_chars is not all of it, as libc++ lacked it for
// floating-point numbers.
namespace xgrad::detail {

enum class Notation { fixed, scientific };

/// As printf's %f or %e, with as many digits behind the point; exact.
std::string formatted(double number, Notation notation, int digits);

/// The shortest text, in either notation, that is read back as the same number, which must be finite; below
/// the normal numbers it may be longer.
std::string shortest_text(double number);

}  // namespace xgrad::detail
