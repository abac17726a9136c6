// Every derivative of a small network with respect to its input, each by one call
#include "../common/show.hpp"

int main(int argc, char** argv) {
  const Show show(argc, argv);
  const Variable w1(wave({64, 10})), b1(wave({64})), w2(0.1 * wave({64, 64})), b2(wave({64})),
      w3(0.1 * wave({10, 64})), b3(wave({10}));
  const auto f = [&](const Variable& x) {
    return linear(tanh(linear(tanh(linear(x, w1, b1)), w2, b2)), w3, b3);
  };
  const auto length = [&](const Variable& x) { return sum(square(f(x)), -1); };
  const Array x = wave({10}, 5), v = wave({10}, 9);
  show("vjp", [&] { return vjp(f, x, v).second; });
  show("jvp", [&] { return jvp(f, x, v).second; });
  show("hvp", [&] { return hvp(length, x, v).second; });
  show("jacobian", [&] { return jacobian(f, x); });
  show("jacobian, ten rows at once", [&] { return jacobian(f, x, {.rows = 10}); });
  show("hessian", [&] { return hessian(length, x, {.rows = 10}); });
  const Array points = wave({128, 10});
  show("jacobians of 128 points", [&] { return jacobian(f, points, {.batched = true}); });
}
