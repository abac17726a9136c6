// What there is to test of eigh.
#include <xgrad/ops/linalg/eigh.hpp>

#include <cmath>
#include <string>

#include <xgrad/ops/index/indexing.hpp>
#include <xgrad/ops/pointwise/elementwise.hpp>
#include <xgrad/ops/reduce/reductions.hpp>

#include <gtest/gtest.h>

#include "../common/call.hpp"
#include "../common/expect_near.hpp"
#include "../common/matrices.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::eigh_rows {

using naive::Matrix, naive::of_matrices;

const auto eigenvalues = [](const auto& x) { return xgrad::eigh(spread(x[0])).eigenvalues; };
const auto from_upper = [](const auto& x) { return xgrad::eigh(spread(x[0]), {.upper = true}).eigenvalues; };

const Reference naive_eigenvalues = of_matrices(
    [](const auto& x) {
      Matrix w(1, x[0].rows);
      w.elements = naive::eigen(naive::spread(x[0])).values;
      return w;
    },
    [](const auto& x) { return Shape{x[0].rows}; });

/// V diag(1, 2, ...) V^T, which does not depend on the signs of V's columns.
const auto of_vectors = [](const auto& x) {
  const auto v = xgrad::eigh(spread(x[0])).eigenvectors;
  return matmul(weighted(v), mT(v));
};

const Reference naive_of_vectors = of_matrices([](const auto& x) {
  const Matrix v = naive::eigen(naive::spread(x[0])).vectors;
  return naive::weighted(v) * naive::transpose(v);
});

const Rows rows([] {
  Op op{"eigh", make_cases(square_matrices, eigenvalues, naive_eigenvalues)};
  for (const Case& one : make_cases({{{3, 3}}, {{2, 9, 9}}}, from_upper, naive_eigenvalues))
    op.cases.push_back(one);
  for (const Case& one : make_cases(square_matrices, of_vectors, naive_of_vectors)) op.cases.push_back(one);
  op.large = make_cases({{{3000, 3, 3}}, {{90, 12, 12}}}, of_vectors, naive_of_vectors);
  op.large.push_back(make_case({{3000, 4, 4}}, eigenvalues, naive_eigenvalues));
  op.errors = {error<ShapeError>("eigh: a must be square matrices (..., n, n), got (2, 3)",
                                 [] { xgrad::eigh(x(2, 3)); }),
               error<ValueError>("eigh: matrix (1) gives no eigenvalues, the algorithm did not converge", [] {
                 xgrad::eigh(Variable<float>(Array<float>{{{1, 0}, {0, 1}}, {{1, nan}, {nan, 1}}}));
               })};
  return std::vector<Op>{op};
});

const Conformance conformance{{"eigh", [](const auto& c) {
                                 const auto [w, v] =
                                     eigh(c.x(), {.upper = c.has_attr("UPLO") && c.text("UPLO") == "U"});
                                 return std::vector{w, v};
                               }}};

const Draws draws{matrix_draw("eigh", [](Drawing& d, std::size_t n) {
  const Name m = drawn_matrices(d, n, n), both = drawn(d, "add", {m, drawn_transpose(d, m)});
  const Name apart = drawn_plus_diagonal(d, both, [](std::size_t i) { return 5 * static_cast<double>(i); });
  const std::vector<Name> found = d.call("eigh", {apart}, {{"UPLO", d.one_of<std::string>({"L", "U"})}}, 2);
  drawn_product_of_vectors(d, found[1], drawn_transpose(d, found[1]));
})};

TEST(EighTest, TheGradientIsSymmetric) {
  const Variable<double> a(Array<double>{{2, 1}, {1, 3}}, true);
  const auto [w, v] = eigh(a);
  const Variable<double> seed(Array<double>{{1, 0}, {2, 3}});
  expect_near(grad(matmul(v * w, mT(v)), {a}, {.seed = seed})[0].value(), Array<double>{{1, 1}, {1, 3}},
              1e-14, "of a itself, from its parts");
}

TEST(EighTest, EigenvaluesAscendWithTheirVectors) {
  const Variable<double> a(Array<double>{{3, 0, 0}, {0, 1, 0}, {0, 0, 2}});
  const auto [w, v] = xgrad::eigh(a);
  EXPECT_EQ(w.value(), (Array<double>{1, 2, 3}));
  EXPECT_EQ(xgrad::abs(v).value(), (Array<double>{{0, 0, 1}, {1, 0, 0}, {0, 1, 0}}));
}

TEST(EighTest, OneTriangleIsRead) {
  const Array<double> lower{{2, nan}, {1, 2}}, upper{{2, 1}, {nan, 2}};
  for (const auto& [w, v] : {eigh(Variable<double>(lower)), eigh(Variable<double>(upper), {.upper = true})}) {
    EXPECT_NEAR(w.value()(0), 1, 1e-15);
    EXPECT_NEAR(w.value()(1), 3, 1e-15);
    EXPECT_NEAR(std::abs(v.value()(0, 0)), std::sqrt(0.5), 1e-15);
  }
}

TEST(EighTest, EqualEigenvaluesHaveGradientsUnlessTheirVectorsAreUsed) {
  const Variable<double> a(Array<double>{{2, 0, 0}, {0, 2, 0}, {0, 0, 5}}, true);
  const auto [w, v] = eigh(a);
  sum(square(w)).backward();
  EXPECT_EQ(a.grad().value(), (Array<double>{{4, 0, 0}, {0, 4, 0}, {0, 0, 10}}));
  const Array<double> da = grad(sum(select(eigh(a).eigenvectors, 0, 0)), {a})[0].value();
  EXPECT_FALSE(std::isfinite(da(0, 1)));
}

}  // namespace xgrad_tests::eigh_rows
