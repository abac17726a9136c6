// What there is to test of solve_triangular.
#include <xgrad/ops/linalg/solve_triangular.hpp>

#include <gtest/gtest.h>

#include <xgrad/ops/reduce/reductions.hpp>

#include "../common/call.hpp"
#include "../common/matrices.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::solve_triangular_rows {

using naive::Matrix, naive::of_matrices;
using xgrad::SolveTriangularOptions;

/// The triangle of x + 3 n that the options read, and what they take for its diagonal.
Matrix read(const Matrix& x, const SolveTriangularOptions& options) {
  Matrix a = naive::dominant(x);
  for (std::size_t r = 0; r < a.rows; ++r) {
    for (std::size_t c = 0; c < a.cols; ++c) {
      if (options.upper ? c < r : c > r) a(r, c) = 0;
    }
    if (options.unitriangular) a(r, r) = 1;
  }
  return a;
}

/// X from a and b, or with b X^T to the left of a.
std::vector<Case> triangular_cases(const std::vector<std::vector<Input>>& lists,
                                   const SolveTriangularOptions& options) {
  return make_cases(
      lists,
      [=](const auto& x) {
        return xgrad::solve_triangular(dominant(x[0]), options.left ? x[1] : mT(x[1]), options);
      },
      of_matrices([=](const auto& x) {
        const Matrix a = read(x[0], options);
        return options.left ? naive::solved(a, x[1])
                            : naive::transpose(naive::solved(naive::transpose(a), x[1]));
      }));
}

const Rows rows([] {
  Op op{"solve_triangular"};
  const std::vector<std::vector<Input>> lists{
      {{1, 1}, {1, 1}},          {{3, 3}, {3, 2}},    {{12, 12}, {12, 5}},    {{2, 3, 3}, {2, 3, 1}},
      {{2, 1, 4, 4}, {3, 4, 2}}, {{3, 3}, {2, 3, 2}}, {{2, 10, 10}, {10, 3}}, {{0, 3, 3}, {0, 3, 2}},
      {{0, 0}, {0, 2}},          {{3, 3}, {3, 0}}};
  const std::vector<std::vector<Input>> some{{{3, 3}, {3, 2}}, {{12, 12}, {12, 5}}, {{2, 4, 4}, {2, 4, 4}}};
  for (const bool upper : {false, true}) {
    for (const bool left : {true, false}) {
      for (const Case& one : triangular_cases(left && !upper ? lists : some, {.upper = upper, .left = left}))
        op.cases.push_back(one);
    }
    for (const Case& one : triangular_cases({{{3, 3}, {3, 2}}}, {.upper = upper, .unitriangular = true}))
      op.cases.push_back(one);
    for (const Case& one :
         triangular_cases({{{2, 3, 3}, {3, 2}}}, {.upper = upper, .left = false, .unitriangular = true}))
      op.cases.push_back(one);
  }
  op.large = triangular_cases({{{5000, 4, 4}, {5000, 4, 2}}, {{40, 20, 20}, {20, 30}}}, {});
  op.errors = {
      error<ShapeError>("solve_triangular: a must be square matrices (..., n, n), got (2, 3)",
                        [] { xgrad::solve_triangular(x(2, 3), x(2, 3)); }),
      error<ShapeError>("solve_triangular: b must be matrices (..., m, n), got (3)",
                        [] { xgrad::solve_triangular(x(3, 3), x(3)); }),
      error<ShapeError>("solve_triangular: b must have 3 rows, got a (3, 3) and b (2, 3)",
                        [] { xgrad::solve_triangular(x(3, 3), x(2, 3)); }),
      error<ShapeError>("solve_triangular: b must have 3 columns, got a (3, 3) and b (3, 2)",
                        [] { xgrad::solve_triangular(x(3, 3), x(3, 2), {.left = false}); }),
      error<ShapeError>("solve_triangular: the batch axes must broadcast, got a (2, 3, 3) and b (4, 3, 2)",
                        [] { xgrad::solve_triangular(x(2, 3, 3), x(4, 3, 2)); }),
      error<ValueError>("solve_triangular: element (1, 1) of the diagonal of matrix (1) is 0, it is singular",
                        [] {
                          xgrad::solve_triangular(
                              Variable<float>(Array<float>{{{1, 0}, {0, 1}}, {{1, 0}, {0, 0}}}), x(2, 2));
                        })};
  return std::vector<Op>{op};
});

const Conformance conformance{{"solve_triangular", [](const auto& c) {
                                 const auto set = [&](const char* name, bool absent) {
                                   return c.has_attr(name) ? c.flag(name) : absent;
                                 };
                                 return solve_triangular(c.x(0), c.x(1),
                                                         {.upper = set("upper", false),
                                                          .left = set("left", true),
                                                          .unitriangular = set("unitriangular", false)});
                               }}};

const Draws draws{matrix_draw("solve_triangular", [](Drawing& d, std::size_t n) {
  const bool left = d.chance(0.5);
  const std::size_t m = 1 + d.below(3);
  const Name b = left ? drawn_matrices(d, n, m) : drawn_matrices(d, m, n), a = drawn_dominant(d, n);
  if (d.rank(a) > 2 && d.rank(b) > 2 && d.shape(a)[0] != d.shape(b)[0]) return;
  d.call("solve_triangular", {a, b},
         {{"upper", d.chance(0.5)}, {"left", left}, {"unitriangular", d.chance(0.3)}});
})};

TEST(SolveTriangularTest, TheOtherTriangleIsNotReadAndHasNoGradient) {
  const Variable<double> a(Array<double>{{2, nan}, {1, 4}}, true), b(column({2, 5}), true);
  const Variable<double> y = solve_triangular(a, b);
  EXPECT_EQ(y.value(), column({1, 1}));
  sum(y).backward();
  EXPECT_EQ(b.grad().value(), column({0.375, 0.25}));
  EXPECT_EQ(a.grad().value(), (Array<double>{{-0.375, 0}, {-0.25, -0.25}}));
}

TEST(SolveTriangularTest, ADiagonalOfOnesIsNotRead) {
  const Variable<double> a(Array<double>{{0, 3}, {nan, 0}}, true), b(column({7, 2}));
  const Variable<double> y = solve_triangular(a, b, {.upper = true, .unitriangular = true});
  EXPECT_EQ(y.value(), column({1, 2}));
  sum(y).backward();
  EXPECT_EQ(a.grad().value(), (Array<double>{{0, -2}, {0, 0}}));
}

}  // namespace xgrad_tests::solve_triangular_rows
