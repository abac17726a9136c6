// What there is to test of slogdet, logdet and det.
#include <xgrad/ops/linalg/determinant.hpp>

#include <cmath>

#include <gtest/gtest.h>

#include "../common/call.hpp"
#include "../common/matrices.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::determinant_rows {

using naive::Matrix, naive::of_matrices;

/// dominant(x) / (3 n), whose determinant is near 1.
template <class T>
Variable<T> near_one(const Variable<T>& x) {
  return dominant(x) * static_cast<T>(1 / (3.0 * static_cast<double>(x.shape(-1))));
}

Matrix near_one(const Matrix& x) { return (1 / (3.0 * static_cast<double>(x.rows))) * naive::dominant(x); }

template <class F>
Op determinant_op(const std::string& name, const F& f, double (*of_determinant)(double)) {
  Op op{"determinant." + name};
  const auto called = [=](const auto& x) { return f(near_one(x[0])); };
  const auto reference = [=](Matrix (*argument)(const Matrix&)) {
    return of_matrices(
        [=](const auto& x) {
          Matrix y(1, 1);
          y(0, 0) = of_determinant(naive::determinant(argument(x[0])));
          return y;
        },
        naive::no_axes);
  };
  op.cases = make_cases(square_matrices, called, reference(near_one));
  if (name != "logdet") {  // is nan where they are negative
    for (const Case& one : make_cases(
             {{{1, 1}}, {{2, 2}}, {{3, 3}}, {{2, 3, 3}}, {{3, 4, 4}}}, [=](const auto& x) { return f(x[0]); },
             reference([](const Matrix& x) { return x; })))
      op.cases.push_back(one);
  }
  op.large = make_cases({{{5000, 4, 4}}, {{40, 20, 20}}}, called, reference(near_one));
  op.errors = {
      error<ShapeError>(name + ": a must be square matrices (..., n, n), got (2, 3)", [f] { f(x(2, 3)); }),
      error<ShapeError>(name + ": a must be square matrices (..., n, n), got (3)", [f] { f(x(3)); })};
  return op;
}

const Rows rows([] {
  return std::vector<Op>{determinant_op(
                             "slogdet", [](const auto& a) { return xgrad::slogdet(a).logabsdet; },
                             [](double determinant) { return std::log(std::abs(determinant)); }),
                         determinant_op(
                             "logdet", [](const auto& a) { return xgrad::logdet(a); },
                             [](double determinant) { return std::log(determinant); }),
                         determinant_op(
                             "det", [](const auto& a) { return xgrad::det(a); },
                             [](double determinant) { return determinant; })};
});

const Conformance conformance{{"slogdet",
                               [](const auto& c) {
                                 const auto [sign, logabsdet] = slogdet(c.x());
                                 return std::vector{sign, logabsdet};
                               }},
                              {"logdet", [](const auto& c) { return logdet(c.x()); }},
                              {"det", [](const auto& c) { return det(c.x()); }}};

const Draws draws{
    matrix_draw("slogdet",
                [](Drawing& d, std::size_t n) { d.call("slogdet", {drawn_dominant(d, n)}, {}, 2); }),
    matrix_draw("logdet", [](Drawing& d, std::size_t n) { d.call("logdet", {drawn_definite(d, n)}); }),
    matrix_draw("det", [](Drawing& d, std::size_t n) { d.call("det", {drawn_matrices(d, n, n)}); })};

TEST(DeterminantTest, SingularMatricesHaveDeterminantZeroAndItsGradient) {
  for (const std::size_t n : {2, 3, 5, 12}) {
    Array<double> elements(Shape{n, n}, 0.0);
    for (std::size_t i = 0; i + 1 < n; ++i) elements(i, i) = 2;
    const Variable<double> a(elements, true);
    EXPECT_EQ(det(a).item(), 0);
    EXPECT_EQ(slogdet(a).sign.item(), 0);
    EXPECT_EQ(slogdet(a).logabsdet.item(), -inf);
    EXPECT_EQ(logdet(a).item(), -inf);
    det(a).backward();
    Array<double> cofactors(Shape{n, n}, 0.0);
    cofactors(n - 1, n - 1) = std::pow(2.0, static_cast<double>(n - 1));
    for (std::size_t i = 0; i < cofactors.size(); ++i)
      EXPECT_NEAR(a.grad().value().data()[i], cofactors.data()[i], 1e-12 * cofactors(n - 1, n - 1)) << n;
  }
}

TEST(DeterminantTest, TheLogarithmNeitherOverflowsNorUnderflows) {
  for (const double element : {1e-30, 1e30}) {
    Array<float> a(Shape{20, 20}, 0.0f);
    for (std::size_t i = 0; i < 20; ++i) a(i, i) = static_cast<float>(i == 3 ? -element : element);
    const auto [sign, logabsdet] = slogdet(Variable<float>(a));
    EXPECT_EQ(sign.item(), -1);
    EXPECT_NEAR(logabsdet.item(), 20 * std::log(element), 1e-3);
    EXPECT_TRUE(std::isnan(logdet(Variable<float>(a)).item()));
  }
}

TEST(DeterminantTest, TheSignHasNoGradient) {
  EXPECT_FALSE(slogdet(Variable<float>(Array<float>{{2, 1}, {1, 2}}, true)).sign.requires_grad());
}

}  // namespace xgrad_tests::determinant_rows
