// A neural differential equation untangles two spirals: points flow for a while, and a plane parts them
#include <cmath>
#include <iostream>

#include <xgrad/xgrad.hpp>

using xgrad::Array, xgrad::Linear, xgrad::Sequential, xgrad::Variable;

constexpr double pi = 3.14159265358979323846;

class Flow : public xgrad::Module<double> {
 public:
  Flow() : Module("Flow") {}

  /// The logits (points) of the second spiral for points (points, 2).
  Variable<double> operator()(const Variable<double>& points) const {
    const auto scope = this->scope();
    constexpr double h = 0.2;
    Variable<double> y = pad(points, {0, 2});  // into four dimensions, where there is room to pass
    for (int step = 0; step < 10; ++step) {    // of Runge and Kutta
      const Variable<double> k1 = slope_(y), k2 = slope_(y + h / 2 * k1), k3 = slope_(y + h / 2 * k2);
      y = y + h / 6 * (k1 + 2.0 * (k2 + k3) + slope_(y + h * k3));
    }
    return squeeze(plane_(y), 1);
  }

 private:
  Sequential<double> slope_ =
      child("slope", Sequential<double>{Linear<double>(4, 64), xgrad::Tanh<double>(), Linear<double>(64, 4)});
  Linear<double> plane_ = child("plane", Linear<double>(4, 1));
};

int main() {
  constexpr std::size_t count = 100;  // of the points of each spiral
  Array<double> points = xgrad::zeros<double>({2 * count, 2}), labels = xgrad::zeros<double>({2 * count});
  for (std::size_t i = 0; i < 2 * count; ++i) {
    const double along = static_cast<double>(i / 2) / count, angle = 3 * pi * along + (i % 2 == 0 ? 0 : pi);
    points(i, 0) = (0.1 + 0.9 * along) * std::cos(angle);
    points(i, 1) = (0.1 + 0.9 * along) * std::sin(angle);
    labels(i) = i % 2 == 0 ? 0 : 1;
  }

  xgrad::manual_seed(0);
  const Flow model;
  xgrad::AdamW<double> optimizer(model.parameters(), {.lr = 0.01});
  for (int step = 0; step <= 1000; ++step) {
    optimizer.zero_grad();
    const Variable<double> loss =
        binary_cross_entropy_with_logits(model(Variable<double>(points)), Variable<double>(labels));
    loss.backward();
    optimizer.step();
    if (step % 250 == 0)
      std::cout << "step " << step << ": loss " << std::round(loss.item() * 1e4) / 1e4 << '\n';
  }

  const std::size_t rows = 25, columns = 50;
  Array<double> grid = xgrad::zeros<double>({rows * columns, 2});
  for (std::size_t i = 0; i < rows * columns; ++i) {
    grid(i, 0) = -1.2 + 2.4 * (static_cast<double>(i % columns) + 0.5) / columns;
    grid(i, 1) = 1.2 - 2.4 * (static_cast<double>(i / columns) + 0.5) / rows;
  }
  std::string map;
  const xgrad::NoGrad no_grad;
  const Variable<double> logits = model(Variable<double>(grid));
  for (const double logit : logits.value()) {
    map += logit > 0 ? '#' : '.';
    if (map.size() % (columns + 1) == columns) map += '\n';
  }
  std::cout << map;
}
