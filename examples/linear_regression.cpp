// A line fitted to points in xtensor arrays, by gradient descent
#include <iostream>

#include <xgrad/xgrad.hpp>

int main() {
  // y = 3 x - 1, with a wave for noise
  const xgrad::Array<double> x = xt::linspace<double>(-1, 1, 50);
  const xgrad::Array<double> y = 3 * x - 1 + 0.1 * xt::sin(40 * x);

  const xgrad::Variable<double> slope(0.0, true), offset(0.0, true);
  for (int step = 0; step <= 100; ++step) {
    const xgrad::Variable<double> error = slope * x + offset - y;
    const xgrad::Variable<double> loss = mean(error * error);
    loss.backward();
    if (step % 25 == 0) {
      std::cout << "step " << step << ": loss " << loss.item() << ", y = " << slope.item() << " x + "
                << offset.item() << '\n';
    }
    for (const xgrad::Variable<double>& parameter : {slope, offset}) {
      parameter.assign(parameter.value() - 0.3 * parameter.grad().value());
      parameter.zero_grad();
    }
  }
}
