// The derivatives of a formula in three variables
#include <iostream>
#include <xgrad/xgrad.hpp>

int main() {
  const xgrad::Variable<double> x(2.0, true), w(-3.0, true), b(5.5, true);  // true: requires a gradient
  const xgrad::Variable<double> y = tanh(x * w + b) + x * x;
  y.backward();
  std::cout << "y     = " << y.item() << '\n'
            << "dy/dx = " << x.grad().item() << '\n'
            << "dy/dw = " << w.grad().item() << '\n'
            << "dy/db = " << b.grad().item() << '\n';
}
