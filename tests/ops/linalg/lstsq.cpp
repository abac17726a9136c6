// What there is to test of lstsq.
#include <xgrad/ops/linalg/lstsq.hpp>

#include <algorithm>

#include <gtest/gtest.h>

#include "../common/call.hpp"
#include "../common/expect_near.hpp"
#include "../common/matrices.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::lstsq_rows {

using naive::Matrix, naive::of_matrices;

const Rows rows([] {
  Op op{"lstsq"};
  const auto f = [](const auto& x) { return xgrad::lstsq(x[0], x[1]); };
  const Reference reference = of_matrices([](const auto& x) { return naive::pseudo_inverse(x[0]) * x[1]; });
  op.cases = make_cases({{{3, 3}, {3, 2}},
                         {{5, 2}, {5, 1}},
                         {{2, 5}, {2, 3}},
                         {{20, 9}, {20, 4}},
                         {{2, 4, 3}, {2, 4, 2}},
                         {{2, 3, 4}, {3, 2}},
                         {{4, 1}, {3, 4, 2}},
                         {{0, 3, 2}, {0, 3, 1}}},
                        f, reference);
  op.large = make_cases({{{3000, 6, 3}, {3000, 6, 2}}, {{30, 40, 12}, {40, 3}}}, f, reference);
  op.errors = {
      error<ShapeError>("lstsq: a must be matrices (..., m, n), got (3)",
                        [] { xgrad::lstsq(x(3), x(3, 1)); }),
      error<ShapeError>("lstsq: b must be matrices (..., m, n), got (3)",
                        [] { xgrad::lstsq(x(3, 2), x(3)); }),
      error<ShapeError>("lstsq: b must have as many rows as a, got a (3, 2) and b (2, 1)",
                        [] { xgrad::lstsq(x(3, 2), x(2, 1)); }),
      error<ShapeError>("lstsq: the batch axes must broadcast, got a (2, 3, 2) and b (4, 3, 2)",
                        [] { xgrad::lstsq(x(2, 3, 2), x(4, 3, 2)); }),
      error<ValueError>("lstsq: a must have full rank, the columns of the matrix are linearly dependent", [] {
        xgrad::lstsq(Variable<float>(Array<float>{{1, 0}, {2, 0}, {3, 0}}), x(3, 1));
      })};
  return std::vector<Op>{op};
});

const Conformance conformance{{"lstsq", [](const auto& c) { return lstsq(c.x(0), c.x(1)); }}};

const Draws draws{matrix_draw("lstsq", [](Drawing& d, std::size_t n) {
  const Name a = drawn_dominant(d, n);
  Shape shape = d.shape(a);
  shape.back() = 1 + d.below(3);
  const Name b = d.within(d.numbers(shape), {-1, 1});
  const Name twice = drawn(d, "cat", {a, a}, {{"dim", std::ptrdiff_t{-2}}});
  d.call("lstsq", {twice, drawn(d, "cat", {b, drawn(d, "neg", {b})}, {{"dim", std::ptrdiff_t{-2}}})});
})};

TEST(LstsqTest, ALineThroughPoints) {
  const Variable<double> a(Array<double>{{1, 0}, {1, 1}, {1, 2}, {1, 3}}), b(column({1, 3, 4, 4}));
  expect_near(lstsq(a, b).value(), column({1.5, 1}), 1e-14, "intercept and slope");
}

}  // namespace xgrad_tests::lstsq_rows
