// Minimises a function in a box with NLopt, which gets values and gradients from xgrad
#include <cstdio>

#include <nlopt.hpp>

#include <xgrad/xgrad.hpp>

using xgrad::Array, xgrad::Variable;

/// Rosenbrock's valley, 100 (x1 - x0^2)^2 + (1 - x0)^2.
Variable<double> rosenbrock(const Variable<double>& x) {
  const Variable<double> x0 = select(x, 0, 0), x1 = select(x, 0, 1);
  return 100 * square(x1 - square(x0)) + square(1 - x0);
}

// [objective]
double objective(const std::vector<double>& x, std::vector<double>& gradient, void*) {
  const auto [y, g] = value_and_grad(rosenbrock, Array<double>(xt::adapt(x)));
  if (!gradient.empty()) gradient.assign(g.begin(), g.end());
  return y();
}
// [objective]

int main() {
  nlopt::opt optimizer(nlopt::LD_LBFGS, 2);
  optimizer.set_min_objective(objective, nullptr);
  optimizer.set_upper_bounds({0.5, 2});
  optimizer.set_xtol_rel(1e-10);

  std::vector<double> x{-1.2, 1};
  double smallest = 0;
  optimizer.optimize(x, smallest);
  std::printf("f(%.6f, %.6f) = %.6f after %d calls\n", x[0], x[1], smallest, optimizer.get_numevals());
}
