// Elasticity: stresses and tangents of a neo-Hookean solid at 10,000 points, from its energy alone
#include "../common/show.hpp"

/// W = mu/2 (|F|^2 - 3) - mu log J + lambda/2 (log J)^2 with J = det F, for F (points, 3, 3).
Variable energy(const Variable& f) {
  const double mu = 80, lambda = 120;
  const Variable log_j = log(det(f));
  return mu / 2 * (sum(square(f), {-2, -1}) - 3.0) - mu * log_j + lambda / 2 * square(log_j);
}

int main(int argc, char** argv) {
  const Show show(argc, argv);
  const Array f = xt::eye<double>(3) + 0.1 * wave({10000, 3, 3});
  show("stresses",
       [&] { return value_and_grad([](const Variable& x) { return sum(energy(x)); }, f).second; });
  show("tangents", [&] { return hessian(energy, f, {.batched = true}); });
}
