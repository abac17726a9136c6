// What there is to test of svd and pinv.
#include <xgrad/ops/linalg/svd.hpp>

#include <algorithm>
#include <cmath>
#include <optional>

#include <xgrad/ops/index/indexing.hpp>
#include <xgrad/ops/reduce/reductions.hpp>

#include <gtest/gtest.h>

#include "../common/call.hpp"
#include "../common/expect_near.hpp"
#include "../common/matrices.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::svd_rows {

using naive::Matrix, naive::of_matrices;

/// U, the singular values and V, of k columns each, from the eigenvalues of the smaller product of x with
/// itself.
struct Decomposed {
  Matrix u, s, v;
};

Decomposed decomposed(const Matrix& x) {
  if (x.rows < x.cols) {
    const Decomposed turned = decomposed(naive::transpose(x));
    return {turned.v, turned.s, turned.u};
  }
  const naive::Eigen found = naive::eigen(naive::transpose(x) * x);
  const std::size_t k = x.cols;
  Matrix s(1, k), v(k, k), u(x.rows, k);
  for (std::size_t c = 0; c < k; ++c) {
    s(0, c) = std::sqrt(found.values[k - 1 - c]);
    for (std::size_t r = 0; r < k; ++r) v(r, c) = found.vectors(r, k - 1 - c);
  }
  const Matrix scaled = x * v;
  for (std::size_t r = 0; r < x.rows; ++r)
    for (std::size_t c = 0; c < k; ++c) u(r, c) = scaled(r, c) / s(0, c);
  return {u, s, v};
}

Shape smaller(const std::vector<Matrix>& x) { return {std::min(x[0].rows, x[0].cols)}; }

const auto values = [](const auto& x) { return xgrad::svd(apart(x[0])).S; };
const Reference naive_values =
    of_matrices([](const auto& x) { return decomposed(naive::apart(x[0])).s; }, smaller);

/// U diag(1, 2, ...) Vh, which does not depend on the signs of vectors that belong together.
const auto of_vectors = [](const auto& x) {
  const auto [u, s, vh] = xgrad::svd(apart(x[0]), {.full_matrices = false});
  return matmul(weighted(u), vh);
};
const Reference naive_of_vectors = of_matrices([](const auto& x) {
  const Decomposed found = decomposed(naive::apart(x[0]));
  return naive::weighted(found.u) * naive::transpose(found.v);
});

Op svd_op() {
  Op op{"svd", make_cases(rectangles, values, naive_values)};
  for (const Case& one : make_cases(rectangles, of_vectors, naive_of_vectors)) op.cases.push_back(one);
  op.large = make_cases({{{3000, 4, 3}}, {{30, 10, 20}}}, of_vectors, naive_of_vectors);
  op.large.push_back(make_case({{3000, 3, 4}}, values, naive_values));
  op.errors = {
      error<ShapeError>("svd: a must be matrices (..., m, n), got (3)", [] { xgrad::svd(x(3)); }),
      error<ValueError>("svd: the matrix gives no singular values, the algorithm did not converge", [] {
        xgrad::svd(Variable<float>(Array<float>{{1, nan}, {nan, 1}}));
      })};
  return op;
}

Op pinv_op() {
  Op op{"svd.pinv"};
  const auto f = [](const auto& x) { return xgrad::pinv(x[0]); };
  const Reference reference = of_matrices([](const auto& x) { return naive::pseudo_inverse(x[0]); });
  op.cases =
      make_cases({{{3, 3}}, {{5, 2}}, {{2, 5}}, {{2, 4, 3}}, {{2, 3, 4}}, {{1, 4}}, {{20, 9}}, {{0, 2, 3}}},
                 f, reference);
  op.large = make_cases({{{3000, 6, 3}}, {{30, 12, 40}}}, f, reference);
  op.errors = {error<ShapeError>("pinv: a must be matrices (..., m, n), got (3)", [] { xgrad::pinv(x(3)); }),
               error<ValueError>("pinv: rtol must be from 0, got -1", [] { xgrad::pinv(x(2, 2), -1.0); })};
  return op;
}

const Rows rows([] { return std::vector<Op>{svd_op(), pinv_op()}; });

const Conformance conformance{
    {"svd",
     [](const auto& c) {
       const auto [u, s, vh] =
           svd(c.x(), {.full_matrices = !c.has_attr("full_matrices") || c.flag("full_matrices")});
       return std::vector{u, s, vh};
     }},
    {"pinv", [](const auto& c) {
       return pinv(c.x(), c.has_attr("rtol") ? std::optional<double>(c.number("rtol")) : std::nullopt);
     }}};

Name drawn_rectangle(Drawing& d, std::size_t n) {
  const Name m = drawn_dominant(d, n);
  return drawn(d, "narrow", {m},
               {{"dim", std::ptrdiff_t{d.chance(0.5) ? -1 : -2}},
                {"start", std::ptrdiff_t{0}},
                {"length", static_cast<std::ptrdiff_t>(1 + d.below(n))}});
}

const Draws draws{
    matrix_draw("svd",
                [](Drawing& d, std::size_t n) {
                  const std::vector<Name> found =
                      d.call("svd", {drawn_rectangle(d, n)}, {{"full_matrices", false}}, 3);
                  drawn_product_of_vectors(d, found[0], found[2]);
                }),
    matrix_draw("pinv", [](Drawing& d, std::size_t n) { d.call("pinv", {drawn_rectangle(d, n)}); })};

TEST(SvdTest, FullMatricesAreSquareAndOrthogonal) {
  const Variable<double> a(Array<double>{{1, 2}, {3, 4}, {5, 7}});
  const auto [u, s, vh] = svd(a);
  EXPECT_EQ(u.shape(), (Shape{3, 3}));
  EXPECT_EQ(vh.shape(), (Shape{2, 2}));
  expect_near(matmul(mT(u), u).value(), Array<double>{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, 1e-14, "U^T U");
  expect_near(matmul(narrow(u, 1, 0, 2) * s, vh).value(), a.value(), 1e-14, "U diag(S) Vh");
}

TEST(SvdTest, EqualSingularValuesHaveGradientsUnlessTheirVectorsAreUsed) {
  const Variable<double> a(Array<double>{{2, 0}, {0, 2}}, true);
  sum(svd(a).S).backward();
  expect_near(a.grad().value(), Array<double>{{1, 0}, {0, 1}}, 1e-14, "gradient");
}

TEST(SvdTest, PinvLeavesOutSmallSingularValues) {
  const Variable<double> a(Array<double>{{4, 0}, {0, 1e-3}});
  expect_near(pinv(a).value(), Array<double>{{0.25, 0}, {0, 1000}}, 1e-12, "pinv");
  expect_near(pinv(a, 1e-2).value(), Array<double>{{0.25, 0}, {0, 0}}, 1e-14, "pinv");
}

}  // namespace xgrad_tests::svd_rows
