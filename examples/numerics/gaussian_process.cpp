// The likelihood of a Gaussian process: derivatives with respect to its three hyperparameters
#include "../common/show.hpp"

/// -log p(y) of points with these squared distances, up to a constant; theta = log(scale, length, noise).
Variable negative_log_likelihood(const Variable& theta, const Array& distances, const Array& y) {
  const std::vector<Variable> parts = split(exp(theta), 1);
  const Variable noise = diag_embed(expand(parts[2], {y.size()}));
  const Variable k = parts[0] * exp(distances / (-2.0 * square(parts[1]))) + noise;
  const Variable l = cholesky(k);
  const Variable z = solve_triangular(l, unsqueeze(Variable(y), -1));
  return 0.5 * sum(square(z)) + sum(log(diagonal(l)));
}

int main(int argc, char** argv) {
  const Show show(argc, argv);
  const Array theta{0.1, -0.5, -2};
  for (const std::size_t n : {200, 1000}) {
    const Array x = wave({n, 1}), y = 3 * wave({n}, 7);
    const Array distances = xt::square(x - xt::transpose(x));
    const auto f = [&](const Variable& t) { return negative_log_likelihood(t, distances, y); };
    const std::string points = ", " + std::to_string(n) + " points";
    show("gradient" + points, [&] { return value_and_grad(f, theta).second; });
    if (n == 200) show("hessian" + points, [&] { return hessian(f, theta); });
  }
}
