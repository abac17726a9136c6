#include <iostream>
#include <xgrad/xgrad.hpp>

int main() {
  const xgrad::Variable<double> x(3.0, true);
  (x * x).backward();
  std::cout << "d(x * x)/dx at 3 is " << x.grad().item() << '\n';
}
