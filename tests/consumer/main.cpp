#include <iostream>
#include <vector>

#include <xgrad/xgrad.hpp>

// Uses something of each folder of xgrad::xgrad, and links to that alone.
int main() {
  xgrad::manual_seed(0);
  const xgrad::Linear<double> model(1, 1);
  xgrad::Adam<double> optimizer(model.parameters(), {.lr = 0.1});
  const auto column = [](const xgrad::Array<double>& values) {
    return reshape(xgrad::Variable<double>(values), {3, 1});
  };
  const xgrad::Variable<double> x = column({0, 1, 2});
  const xgrad::Variable<double> y = column({1, 3, 5});
  for (int step = 0; step < 400; ++step) {
    optimizer.zero_grad();
    mse_loss(model(x), y).backward();
    optimizer.step();
  }
  const double slope = model.weight().item();
  std::cout << summary(model) << "the slope of 2 x + 1 is " << slope << '\n';
  const auto loss = [&](const std::vector<xgrad::Variable<double>>& inputs) {
    return mse_loss(model(inputs[0]), y);
  };
  return slope > 1.99 && slope < 2.01 && xgrad::gradcheck(loss, {xgrad::Variable<double>(x.value(), true)})
             ? 0
             : 1;
}
