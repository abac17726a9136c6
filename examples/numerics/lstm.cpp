// A long short-term memory by hand: 50 steps, and the gradient of its weights
#include "../common/show.hpp"

/// x (steps, batch, in), weights (4 hidden, in) and (4 hidden, hidden), bias (4 hidden): the last h.
Variable lstm(const std::vector<Variable>& p) {
  const Variable& x = p[0];
  const std::size_t hidden = p[2].shape(1);
  Variable h(Array(xgrad::Shape{x.shape(1), hidden}, 0.0)), c = h;
  for (const Variable& now : split(linear(x, p[1], p[3]), 1)) {
    const std::vector<Variable> gates = split(squeeze(now, 0) + linear(h, p[2]), hidden, -1);
    c = sigmoid(gates[1]) * c + sigmoid(gates[0]) * tanh(gates[2]);
    h = sigmoid(gates[3]) * tanh(c);
  }
  return h;
}

int main(int argc, char** argv) {
  const Show show(argc, argv);
  const std::size_t steps = 50, batch = 16, in = 32, hidden = 64;
  const std::vector<Array> p{wave({steps, batch, in}), 0.2 * wave({4 * hidden, in}),
                             0.2 * wave({4 * hidden, hidden}), 0.2 * wave({4 * hidden})};
  show("h", [&] {
    const xgrad::NoGrad guard;
    return lstm({p.begin(), p.end()}).value();
  });
  show("gradient", [&] {
    return value_and_grad([](const std::vector<Variable>& q) { return mean(square(lstm(q))); }, p).second[2];
  });
}
