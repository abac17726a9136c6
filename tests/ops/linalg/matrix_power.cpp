// What there is to test of matrix_power.
#include <xgrad/ops/linalg/matrix_power.hpp>

#include <limits>

#include <gtest/gtest.h>

#include <xgrad/ops/product/matmul.hpp>

#include "../common/call.hpp"
#include "../common/expect_near.hpp"
#include "../common/matrices.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::matrix_power_rows {

using naive::Matrix, naive::of_matrices;

const Rows rows([] {
  Op op{"matrix_power"};
  for (const int n : {1, 2, 3, 5, 8}) {
    const auto f = [n](const auto& x) { return xgrad::matrix_power(x[0], n); };
    const Reference reference = of_matrices([n](const auto& x) {
      Matrix y = x[0];
      for (int k = 1; k < n; ++k) y = y * x[0];
      return y;
    });
    for (const Case& one :
         make_cases({{{{2, 2}, {-1, 1, 0}}}, {{{2, 3, 3}, {-1, 1, 0}}}, {{0, 0}}, {{0, 2, 2}}}, f, reference))
      op.cases.push_back(one);
    if (n == 3) op.large = make_cases({{{{300, 11, 11}, {-0.5, 0.5, 0}}}}, f, reference);
  }
  op.cases.push_back(make_case(
      {{3, 3}}, [](const auto& x) { return matmul(xgrad::matrix_power(dominant(x[0]), -2), dominant(x[0])); },
      of_matrices([](const auto& x) {
        const std::size_t n = x[0].rows;
        return naive::pseudo_inverse(x[0] + naive::identity(n, 3.0 * static_cast<double>(n)));
      })));
  op.errors = {error<ShapeError>("matrix_power: a must be square matrices (..., n, n), got (2, 3)",
                                 [] { xgrad::matrix_power(x(2, 3), 2); }),
               error<ValueError>("inv: the matrix is singular, pivot 2 of 2 is 0",
                                 [] { xgrad::matrix_power(x(2, 2), -1); })};
  return std::vector<Op>{op};
});

const Conformance conformance{
    {"matrix_power", [](const auto& c) { return matrix_power(c.x(), c.integer("n")); }}};

const Draws draws{matrix_draw("matrix_power", [](Drawing& d, std::size_t n) {
  const Name a = d.within(drawn_matrices(d, n, n), {-1, 1});
  d.call("matrix_power", {a}, {{"n", static_cast<std::ptrdiff_t>(1 + d.below(4))}});
})};

TEST(MatrixPowerTest, OfExponentsBelowOneIsThatOfPyTorch) {
  const Variable<double> a(Array<double>{{2, 1}, {0, 1}});
  expect_near(matrix_power(a, -2).value(), Array<double>{{0.25, -0.75}, {0, 1}}, 1e-15, "-2");
  EXPECT_EQ(matrix_power(a, 0).value(), (Array<double>{{1, 0}, {0, 1}}));
  EXPECT_EQ(matrix_power(Variable<double>(Array<double>(Shape{2, 1, 1}, 5.0)), 0).value(),
            Array<double>(Shape{2, 1, 1}, 1.0));
}

TEST(MatrixPowerTest, AnyExponentEnds) {
  const Variable<double> a(Array<double>{{0, 1}, {1, 0}});
  for (const std::ptrdiff_t n :
       {std::numeric_limits<std::ptrdiff_t>::max(), std::numeric_limits<std::ptrdiff_t>::min()}) {
    const bool odd = n % 2 != 0;
    expect_near(matrix_power(a, n).value(), odd ? a.value() : Array<double>{{1, 0}, {0, 1}}, 0, "power");
  }
}

}  // namespace xgrad_tests::matrix_power_rows
