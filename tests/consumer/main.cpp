#include <iostream>
#include <xgrad/xgrad.hpp>

int main() {
  xgrad::Variable<double> x(3.0, true);
  auto y = x * x;
  y.backward();
  const double slope = x.grad().item();
  std::cout << "d(x * x)/dx at 3 is " << slope << '\n';
  return slope == 6.0 ? 0 : 1;
}
