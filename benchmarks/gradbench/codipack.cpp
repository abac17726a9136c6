#include <codi.hpp>

#include "objectives.hpp"

namespace gradbench {

double codipack_gradient(const Objective& objective, const std::vector<double>& x,
                         std::vector<double>& gradient) {
  using Number = codi::RealReverse;
  auto& tape = Number::getTape();
  std::vector<Number> numbers(x.begin(), x.end());
  tape.setActive();
  for (Number& number : numbers) tape.registerInput(number);
  Number y = std::visit([&](const auto& f) { return f.value(numbers); }, objective);
  tape.registerOutput(y);
  tape.setPassive();
  y.setGradient(1);
  tape.evaluate();
  for (std::size_t i = 0; i < x.size(); ++i) gradient[i] = numbers[i].getGradient();
  tape.reset();
  return y.getValue();
}

}  // namespace gradbench
