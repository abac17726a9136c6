// A Kalman filter of 200 steps: the likelihood of its measurements, and the gradient of its noise
#include "../common/show.hpp"

/// A point in the plane of constant speed, of which the place is measured; noise = log(process, measurement).
Variable negative_log_likelihood(const Variable& noise, const Array& measured) {
  const Variable a(Array{{1, 0, 0.1, 0}, {0, 1, 0, 0.1}, {0, 0, 1, 0}, {0, 0, 0, 1}});
  const Variable c(Array{{1, 0, 0, 0}, {0, 1, 0, 0}}), at = mT(a), ct = mT(c);
  const std::vector<Variable> scale = split(exp(noise), 1);
  const Variable q = diag(expand(scale[0], {4})), r = diag(expand(scale[1], {2}));
  Variable x(Array(xgrad::Shape{4, 1}, 0.0)), p(xt::eye<double>(4)), total(0.0);
  for (const Variable& z : split(Variable(measured), 1)) {
    x = matmul(a, x);
    p = matmul(matmul(a, p), at) + q;
    const Variable pct = matmul(p, ct), s = matmul(c, pct) + r, e = mT(z) - matmul(c, x), l = cholesky(s);
    const Variable w = solve_triangular(l, e), k = solve_triangular(l, mT(pct));
    total = total + 0.5 * sum(square(w)) + sum(log(diagonal(l)));
    x = x + matmul(mT(k), w);
    p = p - matmul(mT(k), k);
  }
  return total;
}

int main(int argc, char** argv) {
  const Show show(argc, argv);
  const Array noise{-2, -1}, measured = wave({200, 2});
  const auto f = [&](const Variable& n) { return negative_log_likelihood(n, measured); };
  show("value", [&] {
    const xgrad::NoGrad guard;
    return f(noise).value();
  });
  show("gradient", [&] { return value_and_grad(f, noise).second; });
}
