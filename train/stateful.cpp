#include <xgrad/train/stateful.hpp>

#include <xgrad/graph/error.hpp>

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

}  // namespace xgrad::detail
