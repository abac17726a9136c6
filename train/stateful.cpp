#include "stateful.hpp"

#include <cmath>

#include "../graph/error.hpp"

namespace xgrad::detail {

void check_names(const char* what, const Numbers& expected, const Numbers& state) {
  std::string wrong;
  const auto add = [&](const std::string& name, const char* how) {
    wrong += (wrong.empty() ? "'" : "; '") + name + how;
  };
  for (const auto& [name, number] : expected)
    if (!state.contains(name)) add(name, "' is missing");
  for (const auto& [name, number] : state)
    if (!expected.contains(name)) add(name, "' is unexpected");
  if (!wrong.empty()) fail<ValueError>(what, ": ", wrong);
}

std::size_t whole_number(const char* what, const char* name, const Numbers& state, double limit) {
  const double number = state.at(name);
  if (!(number >= 0 && number <= limit && number == std::floor(number))) {
    fail<ValueError>(what, ": '", name, "' must be a whole number of at most ", limit, ", got ", number);
  }
  return static_cast<std::size_t>(number);
}

}  // namespace xgrad::detail
