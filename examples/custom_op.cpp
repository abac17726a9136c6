// An op of one's own, forward and backward, checked against finite differences
#include <iostream>

#include <xtensor/xmath.hpp>

#include <xgrad/xgrad.hpp>

using xgrad::Grads, xgrad::Needs, xgrad::Variable;

/// y = sin(x), dx = dy cos(x). The backward is made of ops, so that it can be differentiated again.
template <class T>
Variable<T> cos(const Variable<T>& x);

template <class T>
Variable<T> sin(const Variable<T>& x) {
  return xgrad::record<T>("sin", Variable<T>(xt::sin(x.value())), xgrad::Inputs(x), xgrad::Saved(x),
                          [](Variable<T> dy, Needs, Variable<T> x) -> Grads<T, 1> { return {dy * cos(x)}; });
}

/// y = cos(x), dx = -dy sin(x).
template <class T>
Variable<T> cos(const Variable<T>& x) {
  return xgrad::record<T>(
      "cos", Variable<T>(xt::cos(x.value())), xgrad::Inputs(x), xgrad::Saved(x),
      [](Variable<T> dy, Needs, Variable<T> x) -> Grads<T, 1> { return {-(dy * sin(x))}; });
}

int main() {
  const Variable<double> x(0.5, true);
  const Variable<double> y = sin(x);
  const Variable<double> first = grad(y, {x}, {.create_graph = true})[0];
  const Variable<double> second = grad(first, {x})[0];
  std::cout << "sin(0.5)   = " << y.item() << '\n'
            << "sin'(0.5)  = " << first.item() << '\n'
            << "sin''(0.5) = " << second.item() << '\n';

  const auto f = [](const std::vector<Variable<double>>& inputs) { return sin(inputs[0]); };
  std::cout << std::boolalpha << "gradcheck: " << xgrad::gradcheck(f, {x}).ok << '\n'
            << "gradgradcheck: " << xgrad::gradgradcheck(f, {x}).ok << '\n';
}
