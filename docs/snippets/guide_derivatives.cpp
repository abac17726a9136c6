// The pages of derivatives, section by section
#include <functional>
#include <iostream>

#include <xgrad/xgrad.hpp>

namespace {

using xgrad::Array, xgrad::Variable;

void gradient() {
  std::cout << "# gradient\n";
  // [gradient]
  const auto f = [](const Variable<double>& x) { return sum(exp(x) * x); };
  const auto [y, g] = value_and_grad(f, Array<double>{0, 1, 2});
  std::cout << "f(x)  = " << y() << '\n' << "df/dx = " << g << '\n';
  // [gradient]
}

void several_inputs() {
  std::cout << "# several inputs\n";
  // [several inputs]
  using Variables = std::vector<Variable<double>>;
  const auto loss = [](const Variables& p) { return sum(square(matmul(p[0], p[1]))); };
  const std::vector<Array<double>> p{{{1, 2}, {3, 4}}, {1, -1}};
  const auto [y, g] = value_and_grad(loss, p);
  std::cout << "loss = " << y() << '\n'
            << "d loss / d p[0] =\n"
            << g[0] << '\n'
            << "d loss / d p[1] = " << g[1] << '\n';
  // [several inputs]
}

void products() {
  std::cout << "# products\n";
  // [products]
  const Array<double> x{1, 2, 3}, v{1, 0, -1}, u{1, 10};
  const auto f = [](const Variable<double>& x) { return xgrad::stack({sum(square(x)), prod(x)}); };
  const auto [y, row] = vjp(f, x, u);       // u J
  const auto column = jvp(f, x, v).second;  // J v
  std::cout << "f(x) = " << y << "\nu J  = " << row << "\nJ v  = " << column << '\n';

  const auto volume = [](const Variable<double>& x) { return prod(x); };
  std::cout << "H v  = " << hvp(volume, x, v).second << '\n';
  // [products]
}

void linearized() {
  std::cout << "# linearized\n";
  // [linearized]
  const auto f = [](const Variable<double>& x) { return x + 0.1 * sin(flip(x, {0})); };
  const Array<double> target{1, 2, 3};
  Array<double> x = target;
  for (int step = 0; step < 3; ++step) {
    const auto near = linearize(f, x);
    const Array<double> residual = target - near.value();
    Array<double> change = residual;
    for (int i = 0; i < 20; ++i) change += residual - near(change);  // solves J change = residual
    x += change;
    std::cout << "largest residual " << xt::amax(xt::abs(residual))() << '\n';
  }
  // [linearized]
}

void matrices() {
  std::cout << "# matrices\n";
  // [matrices]
  const Array<double> x{1, 2, 3};
  const auto f = [](const Variable<double>& x) { return xgrad::stack({sum(square(x)), prod(x)}); };
  std::cout << "Jacobian\n" << jacobian(f, x) << '\n';
  const auto volume = [](const Variable<double>& x) { return prod(x); };
  std::cout << "Hessian\n" << hessian(volume, x) << '\n';
  // [matrices]
}

void many_rows() {
  std::cout << "# many rows\n";
  // [many rows]
  const Array<double> x{1, 2, 3};
  const auto chain = [](const Variable<double>& x) { return sum(cumprod(x, -1), -1); };  // of the last axis
  const Array<double> row_by_row = hessian(chain, x), at_once = hessian(chain, x, {.rows = 3});
  std::cout << std::boolalpha << "the same: " << (row_by_row == at_once) << '\n';

  const Array<double> points{{1, 2, 3}, {4, 5, 6}};
  std::cout << "a Hessian for each point: (2, 3, 3)\n" << hessian(chain, points, {.batched = true}) << '\n';
  // [many rows]
}

void recorded() {
  std::cout << "# recorded\n";
  // [recorded]
  const Variable<double> weight(0.5, true);
  const auto u = [&](const Variable<double>& x) { return sum(sin(weight * x)); };
  const Variable<double> x(Array<double>{0, 1, 2});
  const auto slope = value_and_grad(u, x, {.create_graph = true}).second;  // a Variable, as x is one
  const Variable<double> loss = mean(square(slope - 1));
  loss.backward();
  std::cout << "loss " << loss.item() << ", d loss / d weight " << weight.grad().item() << '\n';
  // [recorded]
}

void in_and_out() {
  std::cout << "# in and out\n";
  const auto f = [](const Variable<double>& x) { return sum(x * x * x); };
  // [vector]
  const std::vector<double> numbers{1, 2, 3};
  const auto [y, g] = value_and_grad(f, Array<double>(xt::adapt(numbers)));
  const std::vector<double> gradient(g.begin(), g.end());
  // [vector]
  std::cout << gradient[0] << ' ' << gradient[1] << ' ' << gradient[2] << '\n';
  // [pointer]
  const double memory[] = {1, 2, 3, 4, 5, 6};
  const std::vector<std::size_t> extents{2, 3};
  const Array<double> matrix = xt::adapt(&memory[0], 6, xt::no_ownership(), extents);

  const Array<double> derivative = value_and_grad(f, matrix).second;
  const double* data = derivative.data();  // row-major, without gaps
  const std::size_t rows = derivative.shape(0), columns = derivative.shape(1);
  // [pointer]
  std::cout << data[1 * columns + 2] << " is the last of " << rows * columns << '\n';
}

void linear_algebra() {
  std::cout << "# linear algebra\n";
  // [linear algebra]
  const Array<double> a{{4, 1}, {1, 3}};
  const Variable<double> b(Array<double>{1, 2}), column = unsqueeze(b, 1);
  const auto energy = [&](const Variable<double>& a) { return logdet(a) + sum(b * solve(a, b)); };
  const auto through_cholesky = [&](const Variable<double>& a) {
    const Variable<double> l = cholesky(a);  // reads the lower triangle
    const Variable<double> half = solve_triangular(l, column);
    return 2 * sum(log(diagonal(l))) + sum(square(half));
  };
  std::cout << value_and_grad(energy, a).second << '\n' << value_and_grad(through_cholesky, a).second << '\n';
  // [linear algebra]
}

void eigenvectors() {
  std::cout << "# eigenvectors\n";
  // [eigenvectors]
  const Array<double> a{{2, 1}, {1, 3}};
  const auto lowest = [](const Variable<double>& a) { return select(eigh(a).eigenvalues, 0, 0); };
  const auto projector = [](const Variable<double>& a) {  // of the lowest eigenvector; its sign cancels
    const Variable<double> v = narrow(eigh(a).eigenvectors, 1, 0, 1);
    return sum(matmul(v, mT(v)) * xgrad::arange<double>({2}));
  };
  std::cout << value_and_grad(lowest, a).second << '\n' << value_and_grad(projector, a).second << '\n';
  // [eigenvectors]
}

void singular() {
  std::cout << "# singular\n";
  try {
    // [singular]
    const Variable<double> a(Array<double>{{1, 2}, {2, 4}}, true), b(Array<double>{1, 1});
    det(a).backward();
    std::cout << "det has a gradient:\n" << a.grad().value() << '\n';
    solve(a, b);
    // [singular]
  } catch (const std::exception& error) {
    std::cout << error.what() << '\n';
  }
}

void implicit() {
  std::cout << "# implicit\n";
  // [implicit]
  // y with y + ln y = theta, by a loop that nothing records
  const auto solver = [](const Array<double>& theta) {
    Array<double> y = xt::ones_like(theta);
    for (int step = 0; step < 50; ++step) y -= (y + xt::log(y) - theta) / (1 + 1 / y);
    return y;
  };
  const auto residual = [](const Variable<double>& y, const Variable<double>& theta) {
    return y + log(y) - theta;
  };
  const auto root = [&](const Variable<double>& theta) {
    return implicit_function(theta, solver, residual, {.batched = true});
  };
  const Array<double> theta{1, 2, 3}, ones{1, 1, 1};
  std::cout << "y         = " << root(theta).value() << '\n'
            << "dy/dtheta = " << vjp(root, theta, ones).second << '\n';
  // [implicit]
}

void linear() {
  std::cout << "# linear map\n";
  // [linear map]
  const auto difference = [](const Array<double>& x) {  // x[i + 1] - x[i], around a ring
    Array<double> y = x;
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[(i + 1) % x.size()] - x[i];
    return y;
  };
  const auto transposed = [](const Array<double>& u) {
    Array<double> x = u;
    for (std::size_t i = 0; i < u.size(); ++i) x[i] = u[(i + u.size() - 1) % u.size()] - u[i];
    return x;
  };
  const Variable<double> x(Array<double>{1, 4, 9, 16}, true);
  sum(square(linear_map(x, difference, transposed))).backward();
  std::cout << x.grad().value() << '\n';
  // [linear map]
}

void checkpoints() {
  std::cout << "# checkpoints\n";
  // [checkpoints]
  const auto step = [](const Variable<double>& y) { return y + 1e-3 * sin(y); };
  const auto hundred_steps = [=](Variable<double> y) {
    for (int i = 0; i < 100; ++i) y = step(y);
    return y;
  };
  const Variable<double> start(Array<double>(xt::linspace<double>(0, 1, 100)), true);
  for (const bool sparing : {false, true}) {
    start.zero_grad();
    xgrad::empty_cache();
    const std::ptrdiff_t before = xgrad::memory_stats().live_blocks;
    Variable<double> y = start;
    for (int i = 0; i < 10; ++i) y = sparing ? checkpoint(hundred_steps, y) : hundred_steps(y);
    xgrad::empty_cache();
    const std::ptrdiff_t held = xgrad::memory_stats().live_blocks - before;
    sum(y).backward();
    std::cout << (sparing ? "checkpoints: " : "all of it:   ") << "gradient " << start.grad().value()(99)
              << ", the graph holds " << held << " blocks\n";
  }
  // [checkpoints]
}

void sequential() {
  std::cout << "# sequential\n";
  // [sequential]
  const std::vector<std::function<Variable<double>(const Variable<double>&)>> layers(
      9, [](const Variable<double>& x) { return tanh(x + 0.1); });
  const Variable<double> x(0.5, true);
  checkpoint_sequential(layers, 3, x).backward();
  std::cout << x.grad().item() << '\n';
  // [sequential]
}

void hooks() {
  std::cout << "# hooks\n";
  // [hooks]
  const Variable<double> x(Array<double>{1, 2, 3}, true);
  Variable<double> h = square(x);
  h = on_gradient(h, [](const Variable<double>& dh) { std::cout << "came: " << dh.value() << '\n'; });
  h = on_gradient(h, [](const Variable<double>& dh) { return clamp(dh, -10, 10); });
  sum(exp(h)).backward();
  std::cout << "left: " << x.grad().value() << '\n';
  // [hooks]
}

// [once]
constexpr xgrad::Op cubed_op("cubed", {"x"});

Variable<double> cubed(const Variable<double>& x) {
  const Array<double> slope = 3 * xt::square(x.value());
  return record<double>(cubed_op, Variable<double>(xt::cube(x.value())), xgrad::Inputs(x), xgrad::Saved(),
                        xgrad::once([slope](Variable<double> dy, xgrad::Needs) -> xgrad::Grads<double, 1> {
                          return {Variable<double>(slope * dy.value())};  // hides that slope depends on x
                        }));
}
// [once]

void first_order_only() {
  std::cout << "# once\n";
  try {
    // [cubed twice]
    const auto f = [](const Variable<double>& x) { return sum(cubed(x)); };
    const Array<double> x{1, 2};
    std::cout << value_and_grad(f, x).second << '\n';
    hessian(f, x);
    // [cubed twice]
  } catch (const std::exception& error) {
    std::cout << error.what() << '\n';
  }
}

void minimum() {
  std::cout << "# minimum\n";
  // [minimum]
  const Variable<double> x(Array<double>{-1.2, 1}, true);
  xgrad::LBFGS<double> optimizer({x}, {.max_iter = 100, .line_search_fn = xgrad::LineSearch::strong_wolfe});
  optimizer.step([&] {
    const Variable<double> x0 = index(x, 0), x1 = index(x, 1);
    const Variable<double> loss = 100 * square(x1 - square(x0)) + square(1 - x0);
    loss.backward();
    return loss;
  });
  std::cout << x << '\n';
  // [minimum]
}

}  // namespace

int main() {
  gradient();
  several_inputs();
  products();
  linearized();
  matrices();
  many_rows();
  recorded();
  in_and_out();
  linear_algebra();
  eigenvectors();
  singular();
  implicit();
  linear();
  checkpoints();
  sequential();
  hooks();
  first_order_only();
  minimum();
}
