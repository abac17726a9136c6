// What there is to test of matrix_exp.
#include <xgrad/ops/linalg/matrix_exp.hpp>

#include <cmath>

#include <gtest/gtest.h>

#include "../common/call.hpp"
#include "../common/expect_near.hpp"
#include "../common/matrices.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::matrix_exp_rows {

using naive::Matrix, naive::of_matrices;

/// The series of a / 2^8, squared eight times.
Matrix naive_matrix_exp(const Matrix& a) {
  const Matrix small = 0x1p-8 * a;
  Matrix sum = naive::identity(a.rows), term = sum;
  for (int k = 1; k < 20; ++k) {
    term = (1.0 / k) * (term * small);
    sum = sum + term;
  }
  for (int squaring = 0; squaring < 8; ++squaring) sum = sum * sum;
  return sum;
}

const Rows rows([] {
  Op op{"matrix_exp"};
  const auto f = [](const auto& x) { return xgrad::matrix_exp(x[0]); };
  const Reference reference = of_matrices([](const auto& x) { return naive_matrix_exp(x[0]); });
  op.cases =
      make_cases({{{1, 1}}, {{2, 2}}, {{3, 3}}, {{5, 5}}, {{2, 3, 3}}, {{2, 2, 4, 4}}, {{0, 3, 3}}, {{0, 0}}},
                 f, reference);
  for (const Case& one : make_cases(
           {{{11, 11}}, {{3, 3}}}, [](const auto& x) { return xgrad::matrix_exp(x[0] * 0.01); },
           of_matrices([](const auto& x) { return naive_matrix_exp(0.01 * x[0]); })))
    op.cases.push_back(one);
  op.large = make_cases({{{3000, 4, 4}}}, f, reference);
  op.errors = {error<ShapeError>("matrix_exp: a must be square matrices (..., n, n), got (2, 3)",
                                 [] { xgrad::matrix_exp(x(2, 3)); })};
  return std::vector<Op>{op};
});

const Conformance conformance{{"matrix_exp", [](const auto& c) { return matrix_exp(c.x()); }}};

const Draws draws{matrix_draw(
    "matrix_exp", [](Drawing& d, std::size_t n) { d.call("matrix_exp", {drawn_matrices(d, n, n)}); })};

TEST(MatrixExpTest, ARotationComesFromItsGenerator) {
  for (const double angle : {0.001, 1.0, 30.0}) {
    const Variable<double> a(Array<double>{{0, -angle}, {angle, 0}});
    expect_near(matrix_exp(a).value(),
                Array<double>{{std::cos(angle), -std::sin(angle)}, {std::sin(angle), std::cos(angle)}}, 1e-13,
                "rotation");
  }
}

TEST(MatrixExpTest, OfZerosIsTheIdentity) {
  expect_near(matrix_exp(Variable<double>(Array<double>(Shape{2, 2}, 0.0))).value(),
              Array<double>{{1, 0}, {0, 1}}, 1e-16, "identity");
}

}  // namespace xgrad_tests::matrix_exp_rows
