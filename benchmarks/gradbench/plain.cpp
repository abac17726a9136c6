#include "objectives.hpp"

namespace gradbench {

double plain_value(const Objective& objective, const std::vector<double>& x) {
  return std::visit([&](const auto& f) { return f.value(x); }, objective);
}

}  // namespace gradbench
