// A long short-term memory: 50 steps, and the gradient of its weights
#include "../common/show.hpp"

/// x (steps, batch, in), weights (4 hidden, in) and (4 hidden, hidden), bias (4 hidden): the last h.
Variable last_state(const std::vector<Variable>& p) {
  return squeeze(lstm(p[0], {}, {}, {{p[1], p[2], p[3]}}).h, 0);
}

int main(int argc, char** argv) {
  const Show show(argc, argv);
  const std::size_t steps = 50, batch = 16, in = 32, hidden = 64;
  const std::vector<Array> p{wave({steps, batch, in}), 0.2 * wave({4 * hidden, in}),
                             0.2 * wave({4 * hidden, hidden}), 0.2 * wave({4 * hidden})};
  show("h", [&] {
    const xgrad::NoGrad guard;
    return last_state({p.begin(), p.end()}).value();
  });
  show("gradient", [&] {
    return value_and_grad([](const std::vector<Variable>& q) { return mean(square(last_state(q))); }, p)
        .second[2];
  });
}
