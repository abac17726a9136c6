#pragma once

#include <cstddef>

#include "../../base/error.hpp"

namespace xgrad::detail {

/// The entry for a value of an enumeration, of a table that has one for each. Throws ValueError "gated: f
/// must be one of 5 values, got number 9".
template <class Entry, std::size_t count, class Enumeration>
const Entry& entry_of(const char* op, const char* argument, const Entry (&table)[count], Enumeration value) {
  const auto number = static_cast<std::ptrdiff_t>(value);
  if (number < 0 || number >= static_cast<std::ptrdiff_t>(count))
    fail<ValueError>(op, ": ", argument, " must be one of ", count, " values, got number ", number);
  return table[number];
}

}  // namespace xgrad::detail
