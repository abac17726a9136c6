// Learning to learn: the gradient through five steps of gradient descent on each of four tasks (MAML)
#include "../common/show.hpp"

using Parameters = std::vector<Variable>;

Variable loss(const Parameters& p, const Variable& x, const Variable& y) {
  const Variable h = tanh(linear(tanh(linear(x, p[0], p[1])), p[2], p[3]));
  return mse_loss(linear(h, p[4], p[5]), y);
}

/// The loss after some steps on the task, of other points of it.
Variable adapted_loss(Parameters p, double task, int steps) {
  const Array x = 3 * wave({10, 1}, task), other = 3 * wave({10, 1}, task + 5);
  const Variable y(xt::sin(x + task));
  for (int step = 0; step < steps; ++step) {
    const Parameters g = grad(loss(p, Variable(x), y), p, {.create_graph = true});
    for (std::size_t i = 0; i < p.size(); ++i) p[i] = p[i] - 0.1 * g[i];
  }
  return loss(p, Variable(other), Variable(xt::sin(other + task)));
}

int main(int argc, char** argv) {
  const Show show(argc, argv);
  const std::vector<Array> p{wave({40, 1}),    wave({40}),          0.2 * wave({40, 40}),
                             0.2 * wave({40}), 0.2 * wave({1, 40}), wave({1})};
  for (const int steps : {1, 5}) {
    show("gradient through " + std::to_string(steps), [&] {
      const auto f = [&](const Parameters& q) {
        Variable total(0.0);
        for (const double task : {0.0, 1.0, 2.0, 3.0}) total = total + adapted_loss(q, task, steps);
        return total;
      };
      return value_and_grad(f, p).second[2];
    });
  }
}
