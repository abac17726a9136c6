// What there is to test of solve and inv.
#include <xgrad/ops/linalg/solve.hpp>

#include <gtest/gtest.h>

#include "../common/call.hpp"
#include "../common/matrices.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::solve_rows {

using naive::Matrix, naive::of_matrices;

/// b as columns, which it is if it has fewer axes than a.
Reference with_vectors(const Reference& of_columns) {
  return [=](const naive::Arguments& x) {
    const Shape shape = x[1].shape();
    return naive::reshaped(of_columns({x[0], naive::reshaped(x[1], naive::joined(shape, {1}))}), shape);
  };
}

Op solve_op() {
  Op op{"solve"};
  const auto f = [](const auto& x) { return xgrad::solve(dominant(x[0]), x[1]); };
  const Reference reference =
      of_matrices([](const auto& x) { return naive::solved(naive::dominant(x[0]), x[1]); });
  op.cases = make_cases({{{1, 1}, {1, 1}},
                         {{2, 2}, {2, 3}},
                         {{3, 3}, {3, 2}},
                         {{12, 12}, {12, 5}},
                         {{2, 3, 3}, {2, 3, 1}},
                         {{2, 1, 4, 4}, {3, 4, 2}},
                         {{3, 3}, {2, 3, 2}},
                         {{2, 10, 10}, {10, 3}},
                         {{0, 3, 3}, {0, 3, 2}},
                         {{0, 0}, {0, 2}},
                         {{3, 3}, {3, 0}}},
                        f, reference);
  for (const Case& one :
       make_cases({{{3, 3}, {3}}, {{12, 12}, {12}}, {{2, 3, 3}, {2, 3}}}, f, with_vectors(reference)))
    op.cases.push_back(one);
  for (const Case& one : make_cases(
           {{{3, 3}, {3, 3}}, {{2, 10, 10}, {4, 10}}},
           [](const auto& x) { return xgrad::solve(dominant(x[0]), x[1], {.left = false}); },
           of_matrices([](const auto& x) {
             return naive::transpose(
                 naive::solved(naive::transpose(naive::dominant(x[0])), naive::transpose(x[1])));
           })))
    op.cases.push_back(one);
  op.large = make_cases({{{5000, 4, 4}, {5000, 4, 2}}, {{40, 20, 20}, {20, 30}}}, f, reference);
  op.errors = {error<ShapeError>("solve: a must be square matrices (..., n, n), got (2, 3)",
                                 [] { xgrad::solve(x(2, 3), x(2, 3)); }),
               error<ShapeError>("solve: b must have 3 rows, got a (3, 3) and b (2, 3)",
                                 [] { xgrad::solve(x(3, 3), x(2, 3)); }),
               error<ShapeError>("solve: b must have 3 columns, got a (3, 3) and b (3, 2)",
                                 [] { xgrad::solve(x(3, 3), x(3, 2), {.left = false}); }),
               error<ShapeError>("solve: the batch axes must broadcast, got a (2, 3, 3) and b (4, 3, 2)",
                                 [] { xgrad::solve(x(2, 3, 3), x(4, 3, 2)); }),
               error<ValueError>("solve: the matrix is singular, pivot 2 of 3 is 0",
                                 [] { xgrad::solve(x(3, 3), x(3)); }),
               error<ValueError>("solve: matrix (1) is singular, pivot 2 of 2 is 0", [] {
                 xgrad::solve(Variable<float>(Array<float>{{{1, 2}, {3, 4}}, {{1, 0}, {3, 0}}}), x(2));
               })};
  return op;
}

Op inv_op() {
  Op op{"solve.inv"};
  const auto f = [](const auto& x) { return xgrad::inv(dominant(x[0])); };
  const Reference reference = of_matrices(
      [](const auto& x) { return naive::solved(naive::dominant(x[0]), naive::identity(x[0].rows)); });
  op.cases = make_cases(square_matrices, f, reference);
  op.large = make_cases({{{5000, 4, 4}}, {{40, 20, 20}}}, f, reference);
  op.errors = {
      error<ShapeError>("inv: a must be square matrices (..., n, n), got (3)", [] { xgrad::inv(x(3)); }),
      error<ValueError>("inv: matrix (0, 0) is singular, pivot 2 of 12 is 0",
                        [] { xgrad::inv(x(1, 2, 12, 12)); })};
  return op;
}

const Rows rows([] { return std::vector<Op>{solve_op(), inv_op()}; });

const Conformance conformance{
    {"solve",
     [](const auto& c) { return solve(c.x(0), c.x(1), {.left = !c.has_attr("left") || c.flag("left")}); }},
    {"inv", [](const auto& c) { return inv(c.x()); }}};

const Draws draws{
    matrix_draw("solve",
                [](Drawing& d, std::size_t n) {
                  const Name b = drawn_matrices(d, n, 1 + d.below(3)), a = drawn_dominant(d, n);
                  if (d.rank(a) > 2 && d.rank(b) > 2 && d.shape(a)[0] != d.shape(b)[0]) return;
                  d.call("solve", {a, b}, {{"left", true}});
                }),
    matrix_draw("inv", [](Drawing& d, std::size_t n) { d.call("inv", {drawn_dominant(d, n)}); })};

TEST(SolveTest, RowsAreExchangedWherePivotsAreZero) {
  const Variable<double> a(Array<double>{{0, 2}, {4, 0}}), b(Array<double>{2, 4});
  EXPECT_EQ(solve(a, b).value(), (Array<double>{1, 1}));
  EXPECT_EQ(inv(a).value(), (Array<double>{{0, 0.25}, {0.5, 0}}));
}

TEST(SolveTest, HilbertsMatrixIsSolvedAsExactlyAsItsConditionAllows) {
  constexpr std::size_t n = 8;  // condition 1.5e10
  Array<double> a = Array<double>::from_shape({n, n}), b = Array<double>::from_shape({n});
  for (std::size_t r = 0; r < n; ++r) {
    b(r) = 0;
    for (std::size_t c = 0; c < n; ++c) {
      a(r, c) = 1 / static_cast<double>(r + c + 1);
      b(r) += a(r, c);
    }
  }
  const Array<double> found = solve(Variable<double>(a), Variable<double>(b)).value();
  for (const double element : found) EXPECT_NEAR(element, 1, 1e-5);
}

}  // namespace xgrad_tests::solve_rows
