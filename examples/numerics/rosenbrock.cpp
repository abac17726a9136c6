// Newton's method on Rosenbrock's function of 100 variables: gradients, Hessians and linear systems
#include "../common/show.hpp"

/// Of the last axis, so that it maps many points at once.
Variable rosenbrock(const Variable& x) {
  const std::size_t n = x.shape(-1);
  const Variable head = narrow(x, -1, 0, n - 1), tail = narrow(x, -1, 1, n - 1);
  return sum(100.0 * square(tail - square(head)) + square(1.0 - head), -1);
}

int main(int argc, char** argv) {
  const Show show(argc, argv);
  const Array start = 1 + 0.1 * wave({100});
  show("gradient", [&] { return value_and_grad(rosenbrock, start).second; });
  show("hessian", [&] { return hessian(rosenbrock, start, {.rows = 32}); });
  show("minimum", [&] {
    Array x = start;
    for (int step = 0; step < 10; ++step) {
      const Array g = value_and_grad(rosenbrock, x).second, h = hessian(rosenbrock, x, {.rows = 32});
      x -= solve(Variable(h), Variable(g)).value();
    }
    return x;
  });
}
