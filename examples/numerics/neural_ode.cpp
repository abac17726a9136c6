// A neural differential equation by 1,000 Runge-Kutta steps: its gradient, and in a fifteenth of the memory
#include "../common/show.hpp"

using Parameters = std::vector<Variable>;  // y, w1, b1, w2, b2

Variable slope(const Variable& y, const Parameters& p) {
  return linear(tanh(linear(y, p[1], p[2])), p[3], p[4]);
}

Variable step(const Variable& y, const Parameters& p, double h) {
  const Variable k1 = slope(y, p), k2 = slope(y + 0.5 * h * k1, p), k3 = slope(y + 0.5 * h * k2, p),
                 k4 = slope(y + h * k3, p);
  return y + h / 6 * (k1 + 2.0 * (k2 + k3) + k4);
}

Variable steps(const Parameters& p, int count) {
  Variable y = p[0];
  for (int i = 0; i < count; ++i) y = step(y, p, 1e-3);
  return y;
}

Variable loss(Parameters p, int segments) {
  const auto segment = [=](const Parameters& q) { return steps(q, 1000 / segments); };
  for (int i = 0; i < segments; ++i) p[0] = segments == 1 ? segment(p) : checkpoint(segment, p);
  return mean(square(p[0]));
}

int main(int argc, char** argv) {
  const Show show(argc, argv);
  const std::vector<Array> p{wave({20, 2}), wave({32, 2}), wave({32}), wave({2, 32}), wave({2})};
  for (const int segments : {1, 20}) {
    show(segments == 1 ? "gradient" : "gradient, 20 checkpoints",
         [&] { return value_and_grad([&](const Parameters& q) { return loss(q, segments); }, p).second[1]; });
  }
}
