#include <adept.h>

#include "objectives.hpp"

namespace gradbench {

double adept_gradient(const Objective& objective, const std::vector<double>& x,
                      std::vector<double>& gradient) {
  static adept::Stack stack;
  std::vector<adept::adouble> numbers(x.begin(), x.end());
  stack.new_recording();
  adept::adouble y = std::visit([&](const auto& f) { return f.value(numbers); }, objective);
  y.set_gradient(1.0);
  stack.reverse();
  for (std::size_t i = 0; i < x.size(); ++i) gradient[i] = numbers[i].get_gradient();
  return y.value();
}

}  // namespace gradbench
