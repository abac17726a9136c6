#include "formulas.hpp"

namespace xgrad::detail {

extern const std::string_view formulas_text;

std::optional<std::string> formula_of(std::string_view op) {
  const std::string start = "\n" + std::string(op) + ": ";  // the first line is a comment
  const std::size_t found = formulas_text.find(start);
  if (found == std::string_view::npos) return {};
  const std::size_t begin = found + start.size();
  return std::string(formulas_text.substr(begin, formulas_text.find('\n', begin) - begin));
}

}  // namespace xgrad::detail
