// An op of one's own, forward and backward, checked against finite differences
#include <iostream>

#include <xgrad/xgrad.hpp>

using xgrad::Grads, xgrad::Needs, xgrad::Variable;

constexpr xgrad::Op kepler_op("kepler", {"m", "e"});

/// Where a planet is on its ellipse: y with y - e sin(y) = m, Kepler's equation, solved by Newton's method.
/// Differentiating the equation, not the steps: dm = dy / (1 - e cos(y)), de = dm sin(y).
template <class T>
Variable<T> kepler(const Variable<T>& m, const Variable<T>& e) {
  if (m.shape() != e.shape()) throw xgrad::ShapeError("kepler: m and e must have the same shape");
  xgrad::Array<T> y = m.value() + e.value();
  for (int step = 0; step < 10; ++step)
    y -= (y - e.value() * xt::sin(y) - m.value()) / (1 - e.value() * xt::cos(y));
  return xgrad::record<T>(kepler_op, Variable<T>(y), xgrad::Inputs(m, e), xgrad::Saved(e, xgrad::Output()),
                          [](Variable<T> dy, Needs, Variable<T> e, Variable<T> y) -> Grads<T, 2> {
                            const Variable<T> dm = dy / (1 - e * cos(y));
                            return {dm, dm * sin(y)};
                          });
}

int main() {
  const Variable<double> m(1.0, true), e(0.5, true);
  const Variable<double> y = kepler(m, e);
  const auto first = grad(y, {m, e}, {.create_graph = true});
  const Variable<double> second = grad(first[0], {e})[0];
  std::cout << "y          = " << y.item() << '\n'
            << "dy / dm    = " << first[0].item() << '\n'
            << "dy / de    = " << first[1].item() << '\n'
            << "d2y / dmde = " << second.item() << '\n';

  const auto f = [](const std::vector<Variable<double>>& inputs) { return kepler(inputs[0], inputs[1]); };
  std::cout << std::boolalpha << "gradcheck: " << xgrad::gradcheck(f, {m, e}).ok << '\n'
            << "gradgradcheck: " << xgrad::gradgradcheck(f, {m, e}).ok << '\n';
}
