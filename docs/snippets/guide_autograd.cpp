// The page "Automatic differentiation", section by section
#include <iostream>

#include <xgrad/xgrad.hpp>

namespace {

using xgrad::Array, xgrad::Variable;

using xgrad::Grads, xgrad::Inputs, xgrad::Needs, xgrad::Saved;

// [cube]
constexpr xgrad::Op cube_op("cube", {"x"});

template <class T>
Variable<T> cube(const Variable<T>& x) {
  Variable<T> y(x.value() * x.value() * x.value());
  return record<T>(cube_op, std::move(y), Inputs(x), Saved(x),
                   [](Variable<T> dy, Needs, Variable<T> x) -> Grads<T, 1> { return {dy * 3 * x * x}; });
}
// [cube]

void leaves() {
  std::cout << "# leaves\n";
  // [leaves]
  const Array<double> points = xt::linspace<double>(0, 1, 3);
  const Variable<double> x(points, true);  // true: requires a gradient
  const Variable<double> a(2.0, true);     // a scalar, of shape ()
  const Variable<double> y = a * xt::sin(points) + exp(x);
  std::cout << x << '\n' << y << '\n';
  std::cout << std::boolalpha << x.is_leaf() << ' ' << y.is_leaf() << ' ' << y.op() << '\n';
  // [leaves]
}

void accumulation() {
  std::cout << "# accumulation\n";
  // [accumulation]
  const Variable<double> x(3.0, true);
  (x * x).backward();
  (x * x).backward();
  std::cout << "two backward passes: " << x.grad().item() << '\n';
  x.zero_grad();
  (x * x).backward();
  std::cout << "after zero_grad():   " << x.grad().item() << '\n';
  // [accumulation]
}

void seeds() {
  std::cout << "# seeds\n";
  // [seeds]
  const Variable<double> x(Array<double>{1, 2, 3}, true);
  const Variable<double> y = x * x;
  y.backward(Variable<double>(Array<double>{1, 0, 10}));  // d(loss)/dy
  std::cout << x.grad() << '\n';
  // [seeds]
}

void higher_orders() {
  std::cout << "# higher orders\n";
  // [higher orders]
  const Variable<double> x(0.5, true);
  Variable<double> derivative = sigmoid(x);
  for (int order = 0; order <= 3; ++order) {
    std::cout << "order " << order << ": " << derivative.item() << '\n';
    derivative = grad(derivative, {x}, {.create_graph = true})[0];
  }
  // [higher orders]
}

void one_by_one() {
  std::cout << "# one by one\n";
  // [one by one]
  const std::vector<Variable<double>> weights = {{0.5, true}, {2.0, true}, {3.0, true}};
  Variable<double> y(1.0);
  for (const Variable<double>& w : weights) y = tanh(w * y);
  const auto descend = [&](std::size_t i, const Variable<double>& gradient) {
    weights[i].assign(weights[i].value() - 0.1 * gradient.value());
    std::cout << "weight " << i << " is now " << weights[i].item() << '\n';
  };
  grad_each(y, weights, descend);
  // [one by one]
}

void no_graph() {
  std::cout << "# no graph\n";
  // [no graph]
  const Variable<double> x(2.0, true);
  {
    const xgrad::NoGrad guard;
    std::cout << "under NoGrad: " << (x * x).requires_grad() << '\n';
  }
  const Variable<double> y = x * x;
  std::cout << "afterwards:   " << y.requires_grad() << '\n'
            << "detached:     " << y.detach().requires_grad() << '\n';
  // [no graph]
}

void errors() {
  std::cout << "# errors\n";
  const auto show = [](const auto& mistake) {
    try {
      mistake();
    } catch (const std::exception& error) {
      std::cout << error.what() << '\n';
    }
  };
  show([] {
    // [second backward]
    const Variable<double> x(2.0, true);
    const Variable<double> y = x * x;
    y.backward();
    y.backward();  // what the first one needed is gone
    // [second backward]
  });
  show([] {
    // [changed in place]
    const Variable<double> x(2.0, true);
    const Variable<double> y = square(x);  // saves x for its backward
    x.assign(Array<double>(5.0));
    y.backward();
    // [changed in place]
  });
  show([] {
    // [wrong shape]
    const Variable<double> a(xgrad::ones<double>({2, 3})), b(xgrad::ones<double>({4, 5}));
    matmul(a, b);
    // [wrong shape]
  });
}

void checks() {
  std::cout << "# checks\n";
  // [checks]
  const Variable<double> x(Array<double>{0.5, -1, 2}, true);
  const auto f = [](const std::vector<Variable<double>>& inputs) { return cube(tanh(inputs[0])); };
  std::cout << "first derivatives:  " << (xgrad::gradcheck(f, {x}) ? "right" : "wrong") << '\n'
            << "second derivatives: " << (xgrad::gradgradcheck(f, {x}) ? "right" : "wrong") << '\n';
  // [checks]
}

void whole_op() {
  std::cout << "# whole op\n";
  // [whole op]
  const auto right = [](const auto& inputs) { return cube(inputs[0]); };
  const auto inputs = xgrad::random_inputs({{2, 3}}), large = xgrad::random_inputs({{200000}});
  std::cout << "cube: "
            << (xgrad::check_op(right, inputs, {.in_float = right, .large = large}) ? "right" : "wrong")
            << '\n';

  const auto wrong = [](const std::vector<Variable<double>>& inputs) {
    const Variable<double>& x = inputs[0];
    return record<double>(cube_op, cube(x.detach()), Inputs(x), Saved(x),
                          [](Variable<double> dy, Needs, Variable<double> x) -> Grads<double, 1> {
                            return {Variable<double>(dy.value() * 3 * x.value() * x.value())};
                          });
  };
  std::cout << xgrad::check_op(wrong, {Variable<double>(2.0, true)}).text();
  // [whole op]
}

}  // namespace

int main() {
  leaves();
  accumulation();
  seeds();
  higher_orders();
  one_by_one();
  no_graph();
  errors();
  checks();
  whole_op();
}
