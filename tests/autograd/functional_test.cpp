#include <xgrad/autograd/functional.hpp>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include <xgrad/autograd/gradcheck.hpp>
#include <xgrad/graph/record.hpp>
#include <xgrad/ops/index/indexing.hpp>
#include <xgrad/ops/pointwise/elementwise.hpp>
#include <xgrad/ops/product/matmul.hpp>
#include <xgrad/ops/reduce/reductions.hpp>
#include <xgrad/ops/shape/rearrange.hpp>
#include <xgrad/ops/shape/shapes.hpp>

#include "../difference.hpp"
#include "expect_error.hpp"

namespace functional_test {

using xgrad::Array, xgrad::GraphError, xgrad::Shape, xgrad::ShapeError, xgrad::ValueError;
using xgrad::hessian, xgrad::hvp, xgrad::jacobian, xgrad::JacobianOptions, xgrad::jvp, xgrad::linearize,
    xgrad::value_and_grad, xgrad::vjp;
using xgrad_tests::largest_difference, xgrad_tests::largest_element, xgrad_tests::message_of;
using V = xgrad::Variable<double>;
using List = std::vector<V>;

Array<double> random_array(const Shape& shape, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Array<double> x = Array<double>::from_shape(shape);
  for (double& element : x.storage()) element = normal(random);
  return x;
}

/// The largest difference, relative to the largest element of b or 1.
double distance(const Array<double>& a, const Array<double>& b) {
  return largest_difference(a, b) / std::max(1.0, largest_element(b));
}

double dot(const Array<double>& a, const Array<double>& b) {
  EXPECT_EQ(a.shape(), b.shape());
  double total = 0;
  for (std::size_t i = 0; i < a.size(); ++i) total += a.data()[i] * b.data()[i];
  return total;
}

/// Any leading axes, then 3 numbers to 2, by two layers.
struct Network {
  V first = V(random_array({3, 5}, 1), true), second = V(random_array({5, 2}, 2), true);

  V operator()(const V& x) const { return matmul(tanh(matmul(x, first)), second); }
};

V rosenbrock(const V& x) {
  const auto n = static_cast<std::ptrdiff_t>(x.shape(-1));
  const V head = narrow(x, -1, 0, n - 1), tail = narrow(x, -1, 1, n - 1);
  return sum(100.0 * square(tail - square(head)) + square(1.0 - head), {-1});
}

/// Its Hessian as textbooks have it.
Array<double> rosenbrock_hessian(const Array<double>& x) {
  const std::size_t n = x.size();
  Array<double> h = xt::zeros<double>({n, n});
  for (std::size_t i = 0; i + 1 < n; ++i) {
    h(i, i) += 1200 * x(i) * x(i) - 400 * x(i + 1) + 2;
    h(i + 1, i + 1) += 200;
    h(i, i + 1) = h(i + 1, i) = -400 * x(i);
  }
  return h;
}

TEST(FunctionalTest, ValueAndGradHasTheFormOfItsArgument) {
  const auto f = [](const V& x) { return sum(exp(x) * x); };
  const Array<double> x{0.5, -1, 2};
  const auto [y, g] = value_and_grad(f, x);
  static_assert(std::is_same_v<decltype(y), const Array<double>>);
  static_assert(std::is_same_v<decltype(g), const Array<double>>);
  EXPECT_NEAR(y(), xt::sum(xt::exp(x) * x)(), 1e-15);
  EXPECT_LT(distance(g, xt::exp(x) * (x + 1)), 1e-15);
  const V variable(x, true);
  const auto [same, gradient] = value_and_grad(f, variable);
  static_assert(std::is_same_v<decltype(gradient), const V>);
  EXPECT_EQ(gradient.value(), g);
  EXPECT_EQ(same.item(), y());
  EXPECT_FALSE(same.requires_grad());
  EXPECT_FALSE(gradient.requires_grad());
  EXPECT_FALSE(variable.has_grad());
  const auto of_two = [](const List& at) { return sum(at[0] * at[1] * at[1]); };
  const auto [total, both] = value_and_grad(of_two, std::vector{x, x});
  static_assert(std::is_same_v<decltype(both), const std::vector<Array<double>>>);
  EXPECT_LT(distance(both[0], x * x), 1e-15);
  EXPECT_LT(distance(both[1], 2 * x * x), 1e-15);
  const Array<float> single{1, 2};
  const auto cube = [](const xgrad::Variable<float>& at) { return sum(at * at * at); };
  EXPECT_EQ(value_and_grad(cube, single).second, (Array<float>{3, 12}));
  EXPECT_EQ(value_and_grad(f, x * 1.0).second, g) << "an expression";
}

TEST(FunctionalTest, ProductsWithTheJacobianAreThoseOfTheJacobian) {
  const Network f;
  const Array<double> x = random_array({4, 3}, 3), v = random_array({4, 3}, 4), u = random_array({4, 2}, 5);
  const Array<double> j = jacobian(f, x);
  ASSERT_EQ(j.shape(), (Shape{4, 2, 4, 3}));
  Array<double> jv = xt::zeros<double>({4, 2}), uj = xt::zeros<double>({4, 3});
  for (std::size_t i = 0; i < 8; ++i) {
    for (std::size_t k = 0; k < 12; ++k) {
      jv.data()[i] += j.data()[i * 12 + k] * v.data()[k];
      uj.data()[k] += u.data()[i] * j.data()[i * 12 + k];
    }
  }
  const auto [y, forward] = jvp(f, x, v);
  const auto [same_y, backward] = vjp(f, x, u);
  EXPECT_EQ(y, f(V(x)).value());
  EXPECT_EQ(same_y, y);
  EXPECT_LT(distance(forward, jv), 1e-14);
  EXPECT_LT(distance(backward, uj), 1e-14);
  EXPECT_NEAR(dot(u, forward), dot(backward, v), 1e-12);
  const auto linear = linearize(f, x);
  EXPECT_EQ(linear.value(), y);
  EXPECT_EQ(linear(v), forward);
  EXPECT_EQ(linear.transposed(u), backward);
  EXPECT_LT(distance(linear(2 * v), 2 * forward), 1e-15) << "as often as wanted";
  EXPECT_FALSE(f.first.has_grad());
}

/// Of several inputs, one of which is used twice and one not at all.
TEST(FunctionalTest, ProductsOfSeveralInputs) {
  const auto f = [](const List& x) { return matmul(x[0], x[1]) * x[0]; };
  const std::vector<Array<double>> x{random_array({2, 2}, 1), random_array({2, 2}, 2), random_array({3}, 3)},
      v{random_array({2, 2}, 4), random_array({2, 2}, 5), random_array({3}, 6)};
  const Array<double> u = random_array({2, 2}, 7);
  const auto [y, forward] = jvp(f, x, v);
  const auto [same, backward] = vjp(f, x, u);
  ASSERT_EQ(backward.size(), 3u);
  EXPECT_EQ(backward[2], (Array<double>{0, 0, 0}));
  EXPECT_NEAR(dot(u, forward), dot(backward[0], v[0]) + dot(backward[1], v[1]), 1e-13);
  const auto move = [&](double by) { return f({V(x[0] + by * v[0]), V(x[1] + by * v[1]), V(x[2])}).value(); };
  EXPECT_LT(distance(forward, (move(1e-5) - move(-1e-5)) / 2e-5), 1e-9);
  const auto j = jacobian(f, x);
  ASSERT_EQ(j.size(), 3u);
  EXPECT_EQ(j[0].shape(), (Shape{2, 2, 2, 2}));
  EXPECT_EQ(j[2], (Array<double>(xt::zeros<double>({2, 2, 3}))));
}

TEST(FunctionalTest, HessianOfATextbook) {
  const Array<double> x = random_array({7}, 1), v = random_array({7}, 2);
  const Array<double> expected = rosenbrock_hessian(x);
  EXPECT_LT(distance(hessian(rosenbrock, x), expected), 1e-14);
  for (const std::size_t rows : {1, 2, 3, 7, 32})
    EXPECT_LT(distance(hessian(rosenbrock, x, {.rows = rows}), expected), 1e-14) << rows;
  const auto [y, product] = hvp(rosenbrock, x, v);
  EXPECT_EQ(y(), rosenbrock(V(x)).item());
  Array<double> by_hand = xt::zeros<double>({7});
  for (std::size_t i = 0; i < 7; ++i)
    for (std::size_t k = 0; k < 7; ++k) by_hand(i) += expected(i, k) * v(k);
  EXPECT_LT(distance(product, by_hand), 1e-14);
}

TEST(FunctionalTest, HessiansOfSeveralInputsAreBlocksOfASymmetricMatrix) {
  const auto f = [](const List& x) {
    return sum(exp(x[0] * sum(x[1], {-1}, {.keepdim = true})) * x[0], {-1});
  };
  const std::vector<Array<double>> x{random_array({3}, 1), random_array({2}, 2), random_array({4}, 3)};
  for (const std::size_t rows : {0, 2, 9}) {
    const auto h = hessian(f, x, {.rows = rows});
    ASSERT_EQ(h.size(), 3u);
    EXPECT_EQ(h[0][1].shape(), (Shape{3, 2}));
    EXPECT_LT(distance(h[0][0], xt::transpose(h[0][0])), 1e-14);
    EXPECT_LT(distance(h[0][1], xt::transpose(h[1][0])), 1e-14);
    EXPECT_EQ(h[2][0], (Array<double>(xt::zeros<double>({4, 3}))));
    EXPECT_EQ(h[2][2], (Array<double>(xt::zeros<double>({4, 4}))));
    const std::vector<Array<double>> v{random_array({3}, 4), random_array({2}, 5), random_array({4}, 6)};
    const auto product = hvp(f, x, v).second;
    double expected = 0;
    for (std::size_t i = 0; i < 3; ++i) expected += h[0][0](0, i) * v[0](i);
    for (std::size_t i = 0; i < 2; ++i) expected += h[0][1](0, i) * v[1](i);
    EXPECT_NEAR(product[0](0), expected, 1e-12);
  }
}

/// Passes over copies and samples give what one pass for each row gives.
TEST(FunctionalTest, RowsAndSamplesGiveTheSameNumbers) {
  const Network f;
  const std::size_t batch = 4;
  const Array<double> x = random_array({batch, 3}, 3);
  const Array<double> all = jacobian(f, x);
  Array<double> diagonal = Array<double>::from_shape({batch, 2, 3});
  for (std::size_t b = 0; b < batch; ++b)
    for (std::size_t i = 0; i < 2; ++i)
      for (std::size_t k = 0; k < 3; ++k) diagonal(b, i, k) = all(b, i, b, k);
  for (const std::size_t rows : {0, 1, 2, 3, 8, 11}) {
    for (const bool create_graph : {false, true}) {
      const JacobianOptions options{.rows = rows, .create_graph = create_graph};
      EXPECT_LT(distance(jacobian(f, x, options), all), 1e-13) << rows;
      const JacobianOptions batched{.rows = rows, .batched = true, .create_graph = create_graph};
      EXPECT_LT(distance(jacobian(f, x, batched), diagonal), 1e-13) << rows;
    }
  }
  const auto energy = [&](const V& at) { return sum(square(f(at)), {-1}); };
  for (const std::size_t rows : {0, 2, 5}) {
    const Array<double> h = hessian(energy, x, {.rows = rows, .batched = true});
    ASSERT_EQ(h.shape(), (Shape{batch, 3, 3}));
    for (std::size_t b = 0; b < batch; ++b) {
      const Array<double> sample{x(b, 0), x(b, 1), x(b, 2)};
      const Array<double> one = hessian(energy, sample);
      for (std::size_t i = 0; i < 9; ++i) EXPECT_NEAR(h.data()[b * 9 + i], one.data()[i], 1e-13);
    }
  }
}

TEST(FunctionalTest, ShapesAreThoseOfTorch) {
  const auto twice = [](const V& x) { return x * 2.0; };
  const auto total = [](const V& x) { return sum(x); };
  EXPECT_EQ(jacobian(twice, V(3.0)).shape(), (Shape{}));
  EXPECT_EQ(jacobian(twice, V(3.0)).item(), 2);
  EXPECT_EQ(jacobian(total, random_array({2, 3}, 1)).shape(), (Shape{2, 3}));
  EXPECT_EQ(jacobian(twice, random_array({2, 3}, 1)).shape(), (Shape{2, 3, 2, 3}));
  EXPECT_EQ(hessian(total, random_array({2, 3}, 1)).shape(), (Shape{2, 3, 2, 3}));
  EXPECT_EQ(hessian([](const V& x) { return x * x * x; }, V(2.0)).item(), 12);
  const Array<double> none = Array<double>::from_shape({0});
  EXPECT_EQ(jacobian(twice, none).shape(), (Shape{0, 0}));
  EXPECT_EQ(hessian(total, none).shape(), (Shape{0, 0}));
  for (const bool create_graph : {false, true}) {
    EXPECT_EQ(jacobian(total, none, {.create_graph = create_graph}).shape(), (Shape{0}));
    EXPECT_EQ(jacobian(twice, none, {.rows = 2, .create_graph = create_graph}).shape(), (Shape{0, 0}));
    EXPECT_EQ(jacobian(twice, Array<double>(Array<double>::from_shape({0, 3})),
                       {.batched = true, .create_graph = create_graph})
                  .shape(),
              (Shape{0, 3, 3}));
  }
}

TEST(FunctionalTest, RefusesCopiesAndSamplesThatDependOnOneAnother) {
  const Array<double> x{1, 2, 3}, samples{{1, 2}, {3, 5}, {4, 7}};
  const auto together = [](const V& at) { return at / sum(at); };
  const auto centred = [](const V& at) { return at - mean(at, 0, {.keepdim = true}); };  // 0 for equal copies
  const auto next = [](const V& at) {
    return at * xgrad::cat<double>({narrow(at, 0, 1, at.shape(0) - 1), narrow(at, 0, 0, 1)});
  };
  // The first copies depend on those after them: the second of two, and the third.
  const auto with_next = [](const V& at) {
    const std::ptrdiff_t count = at.shape(0) - 1;
    return at * xgrad::cat<double>({narrow(at, 0, 1, count), narrow(at, 0, count, 1)});
  };
  const auto with_third = [](const V& at) {
    if (at.shape(0) < 3) return at * flip(at, 0);
    return at * xgrad::cat<double>({narrow(at, 0, 2, 1), narrow(at, 0, 1, at.shape(0) - 1)});
  };
  const auto alone = [](const V& at) { return at / sum(at, -1, {.keepdim = true}); };
  for (const std::size_t rows : {2, 3, 8}) {
    for (const bool create_graph : {false, true}) {
      const JacobianOptions options{.rows = rows, .create_graph = create_graph};
      EXPECT_TRUE(message_of<ValueError>([&] {
                    jacobian(together, x, options);
                  }).starts_with("jacobian: with rows, f must map each index of the leading axes"));
      EXPECT_TRUE(
          message_of<ValueError>([&] { jacobian(centred, x, options); }).starts_with("jacobian: with rows"));
      EXPECT_TRUE(
          message_of<ValueError>([&] { jacobian(next, x, options); }).starts_with("jacobian: with rows"));
      EXPECT_THROW(jacobian(with_next, x, options), ValueError) << rows;
      EXPECT_THROW(jacobian(with_third, x, options), ValueError) << rows;
      EXPECT_NEAR(jacobian(alone, x, options)(0, 0), 5.0 / 36, 1e-15);
    }
  }
  EXPECT_TRUE(message_of<ValueError>([&] {
                jacobian(centred, samples, {.batched = true});
              }).starts_with("jacobian: with batched, f must map each index of the leading axes of (3, 2)"));
  EXPECT_TRUE(message_of<ValueError>([&] {
                hessian([](const V& at) { return sum(square(at), -1) * sum(at); }, samples,
                        {.batched = true});
              }).starts_with("hessian: with batched"));
  EXPECT_NO_THROW(jacobian(alone, samples, {.batched = true}));
  const auto last_two = [](const V& at) {
    return xgrad::cat<double>({narrow(at, 0, 0, 3), narrow(at, 0, 3, 1) * narrow(at, 0, 2, 1)});
  };
  EXPECT_TRUE(message_of<ValueError>([&] {
                jacobian(last_two, Array<double>{{1, 2}, {3, 5}, {4, 7}, {6, 8}}, {.batched = true});
              }).ends_with("depend on that of position 2"));
}

TEST(FunctionalTest, WhatDoesNotDependOnXHasDerivativeZero) {
  const Array<double> x{1, 2}, zero{0, 0};
  const auto constant = [](const V&) { return V(7.0); };
  const xgrad::DerivativeOptions allowed{.allow_constant = true};
  EXPECT_EQ(value_and_grad(constant, x, allowed).first(), 7);
  EXPECT_EQ(value_and_grad(constant, x, allowed).second, zero);
  EXPECT_EQ(hvp(constant, x, x, allowed).second, zero);
  EXPECT_EQ(jvp(constant, x, x, allowed).second(), 0);
  EXPECT_EQ(jacobian(constant, x, {.allow_constant = true}), zero);
  EXPECT_EQ(hessian(constant, x, {.allow_constant = true}), (Array<double>{{0, 0}, {0, 0}}));
  const std::string why =
      ": f must return what it computed by ops on x, got a variable () without a graph; pass allow_constant "
      "if "
      "the derivative is 0";
  EXPECT_EQ(message_of<GraphError>([&] { value_and_grad(constant, x); }), "value_and_grad" + why);
  EXPECT_EQ(message_of<GraphError>([&] { vjp(constant, x, Array<double>(1.0)); }), "vjp" + why);
  EXPECT_EQ(message_of<GraphError>([&] { hvp(constant, x, x); }), "hvp" + why);
  EXPECT_EQ(message_of<GraphError>([&] { linearize(constant, x); }), "linearize" + why);
  EXPECT_EQ(message_of<GraphError>([&] { jacobian(constant, x); }), "jacobian" + why);
  EXPECT_EQ(message_of<GraphError>([&] { hessian(constant, x); }), "hessian" + why);
  const V w(3.0, true);
  const auto other = [&](const V&) { return w * w; };
  EXPECT_EQ(value_and_grad(other, x).second, zero) << "it depends on something else";
  EXPECT_EQ(hessian(other, x, {.create_graph = true}), (Array<double>{{0, 0}, {0, 0}}));
}

/// Under create_graph derivatives are part of the graph: of x, of what x was made of, and of what f reads.
TEST(FunctionalTest, DerivativesCanBeDifferentiated) {
  const V z(random_array({3}, 1), true), w(random_array({3, 2}, 2), true), unused(1.0, true);
  const V seed(random_array({2}, 3)), direction(random_array({3}, 4));
  const auto f = [&](const V& x) { return tanh(matmul(x, w) * sum(w)); };
  const auto energy = [&](const V& x) { return sum(square(f(x)), {-1}); };
  const std::vector<std::function<V(const V&)>> derivatives{
      [&](const V& x) { return value_and_grad(energy, x, {.create_graph = true}).second; },
      [&](const V& x) { return vjp(f, x, seed, {.create_graph = true}).second; },
      [&](const V& x) { return jvp(f, x, direction, {.create_graph = true}).second; },
      [&](const V& x) { return hvp(energy, x, direction, {.create_graph = true}).second; },
      [&](const V& x) { return linearize(f, x, {.create_graph = true})(direction); },
      [&](const V& x) { return linearize(f, x, {.create_graph = true}).transposed(seed); },
      [&](const V& x) { return jacobian(f, x, {.create_graph = true}); },
      [&](const V& x) { return jacobian(f, x, {.rows = 2, .create_graph = true}); },
      [&](const V& x) { return hessian(energy, x, {.create_graph = true}); },
      [&](const V& x) { return hessian(energy, x, {.rows = 2, .create_graph = true}); },
      [&](const V& x) {
        return jacobian(f, reshape(x, {1, 3}), {.rows = 2, .batched = true, .create_graph = true});
      }};
  for (std::size_t i = 0; i < derivatives.size(); ++i) {
    const auto checked = [&](const List& leaves) { return derivatives[i](exp(leaves[0]) * 0.3); };
    const auto report = xgrad::gradcheck(checked, {z, w}, {.projections = 3});
    EXPECT_TRUE(report) << i << ": " << report.worst;
    const V at = exp(z) * 0.3;
    EXPECT_EQ(derivatives[i](at).value(), derivatives[i](at.detach()).value()) << i;
  }
  EXPECT_FALSE(jacobian(f, exp(z)).requires_grad()) << "without create_graph";
}

TEST(FunctionalTest, WorksWithinNoGrad) {
  const auto f = [](const V& x) { return sum(x * x * x); };
  const xgrad::NoGrad guard;
  EXPECT_EQ(value_and_grad(f, V(2.0)).second.item(), 12);
  EXPECT_EQ(hvp(f, V(2.0), V(1.0)).second.item(), 12);
  EXPECT_FALSE(xgrad::grad_enabled());
}

TEST(FunctionalTest, SaysWhatIsWrong) {
  const Array<double> x{1, 2, 3};
  const auto same = [](const V& at) { return at * 1.0; };
  const auto first = [](const List& at) { return at[0]; };
  EXPECT_EQ(message_of<ShapeError>([&] { value_and_grad(same, x); }),
            "value_and_grad: f must return one number, got shape (3)");
  EXPECT_EQ(message_of<ShapeError>([&] { hvp(same, x, x); }), "hvp: f must return one number, got shape (3)");
  EXPECT_EQ(message_of<ShapeError>([&] { hessian(same, x); }),
            "hessian: f must return one number, got shape (3) for x of shape (3)");
  EXPECT_EQ(
      message_of<ShapeError>([&] { hessian(same, x, {.rows = 2}); }),
      "hessian: f must return one number for each copy and sample, got shape (2, 3) for x of shape (2, 3)");
  EXPECT_EQ(message_of<ShapeError>([&] { jacobian([](const V& at) { return sum(at); }, x, {.rows = 2}); }),
            "jacobian: f must return an array whose first axes are (2), got (), for x of shape (2, 3)");
  EXPECT_EQ(
      message_of<ShapeError>([&] { jacobian([](const V& at) { return sum(at); }, x, {.batched = true}); }),
      "jacobian: f must return an array whose first axes are (3), got (), for x of shape (3)");
  EXPECT_EQ(message_of<ShapeError>([&] {
              jacobian(first, std::vector{x, Array<double>{1.0, 2.0}}, {.batched = true});
            }),
            "jacobian: with batched, all of x must have the same length of the first axis, got (3) and (2)");
  EXPECT_EQ(message_of<ShapeError>([&] {
              vjp(same, x, Array<double>{1.0, 2.0});
            }),
            "vjp: v must have the shape of f(x) (3), got (2)");
  EXPECT_EQ(message_of<ShapeError>([&] {
              jvp(same, x, Array<double>{1.0, 2.0});
            }),
            "jvp: v must have the shape of x (3), got (2)");
  EXPECT_EQ(message_of<ValueError>([&] {
              jvp(first, std::vector{x, x}, std::vector{x});
            }),
            "jvp: v must have as many parts as x, 2, got 1");
  EXPECT_EQ(message_of<ShapeError>([&] {
              hvp(first, std::vector{x, x}, std::vector{x, Array<double>{1.0, 2.0}});
            }),
            "hvp: v[1] must have the shape of x[1] (3), got (2)");
  EXPECT_EQ(message_of<ValueError>([&] { value_and_grad(first, std::vector<V>()); }),
            "value_and_grad: x must not be an empty list");
  EXPECT_EQ(message_of<GraphError>([&] { value_and_grad(same, V()); }), "value_and_grad: x[0] is undefined");
  EXPECT_EQ(message_of<GraphError>([&] { jacobian([](const V&) { return V(); }, x); }),
            "jacobian: f must return a variable, got an undefined one");
}

}  // namespace functional_test
