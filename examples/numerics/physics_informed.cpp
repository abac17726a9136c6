// A network that learns to solve u'' = -pi^2 sin(pi x), with u'' in its loss
#include "../common/show.hpp"

using Parameters = std::vector<Variable>;
constexpr double pi = 3.14159265358979323846;

Variable u(const Variable& x, const Parameters& p) {
  return linear(tanh(linear(tanh(linear(x, p[0], p[1])), p[2], p[3])), p[4], p[5]);
}

Variable loss(const Parameters& p, const Array& points) {
  const Variable x(points, true), ends(xgrad::arange<double>({2, 1}, -1, 2));
  const Variable slope = grad(sum(u(x, p)), {x}, {.create_graph = true})[0];
  const Variable curvature = grad(sum(slope), {x}, {.create_graph = true})[0];
  return mean(square(curvature + pi * pi * sin(pi * x.detach()))) + sum(square(u(ends, p)));
}

int main(int argc, char** argv) {
  const Show show(argc, argv);
  show("loss after 100 steps", [] {
    Parameters p;
    for (const Array& w : {wave({20, 1}), wave({20}), Array(0.3 * wave({20, 20})), wave({20}),
                           Array(0.3 * wave({1, 20})), wave({1})})
      p.emplace_back(w, true);
    xgrad::Adam<double> adam(p, {.lr = 1e-2});
    const Array points = xt::linspace(-1.0, 1.0, 40).reshape({40, 1});
    for (int step = 0; step < 100; ++step) {
      adam.zero_grad();
      loss(p, points).backward();
      adam.step();
    }
    return loss(p, points).value();
  });
}
