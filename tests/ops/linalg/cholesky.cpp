// What there is to test of cholesky.
#include <xgrad/ops/linalg/cholesky.hpp>

#include <gtest/gtest.h>
#include <xgrad/base/random.hpp>

#include "../common/call.hpp"
#include "../common/expect_near.hpp"
#include "../common/matrices.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::cholesky_rows {

using naive::Matrix, naive::of_matrices;

const Rows rows([] {
  Op op{"cholesky"};
  const auto lower = [](const auto& x) { return xgrad::cholesky(definite(x[0])); };
  const auto upper = [](const auto& x) { return xgrad::cholesky(definite(x[0]), {.upper = true}); };
  const Reference reference =
      of_matrices([](const auto& x) { return naive::cholesky(naive::definite(x[0])); });
  op.cases = make_cases(square_matrices, lower, reference);
  for (const Case& one : make_cases({{{3, 3}}, {{2, 9, 9}}}, upper, of_matrices([](const auto& x) {
                                      return naive::transpose(naive::cholesky(naive::definite(x[0])));
                                    })))
    op.cases.push_back(one);
  op.large = make_cases({{{5000, 4, 4}}, {{40, 20, 20}}}, lower, reference);
  op.errors = {error<ShapeError>("cholesky: a must be square matrices (..., n, n), got (2, 3)",
                                 [] { xgrad::cholesky(x(2, 3)); }),
               error<ShapeError>("cholesky: a must be square matrices (..., n, n), got (3)",
                                 [] { xgrad::cholesky(x(3)); }),
               error<ValueError>("cholesky: the leading minor of order 2 of the matrix is not positive",
                                 [] { xgrad::cholesky(x(2, 2)); }),
               error<ValueError>("cholesky: the leading minor of order 2 of matrix (0, 0) is not positive",
                                 [] { xgrad::cholesky(x(1, 2, 10, 10)); })};
  return std::vector<Op>{op};
});

const Conformance conformance{{"cholesky", [](const auto& c) {
                                 return cholesky(c.x(), {.upper = c.has_attr("upper") && c.flag("upper")});
                               }}};

const Draws draws{matrix_draw("cholesky", [](Drawing& d, std::size_t n) {
  d.call("cholesky", {drawn_definite(d, n)}, {{"upper", d.chance(0.5)}});
})};

TEST(CholeskyTest, ReadsTheLowerTriangleAndGivesASymmetricGradient) {
  const Variable<double> a(Array<double>{{4, nan}, {2, 5}}, true);
  EXPECT_EQ(cholesky(a).value(), (Array<double>{{2, 0}, {1, 2}}));
  EXPECT_EQ(cholesky(a, {.upper = true}).value(), (Array<double>{{2, 1}, {0, 2}}));
  const Array<double> da =
      grad(cholesky(a), {a}, {.seed = Variable<double>(Array<double>{{1, 0}, {2, 3}})})[0].value();
  EXPECT_EQ(da(0, 1), da(1, 0));
}

TEST(CholeskyTest, TheGradientOfALargeMatrixIsThatOfItsOps) {
  xgrad::Generator generator(1);
  for (const std::size_t n : {9, 64, 65, 150}) {
    const Variable<double> x(xgrad::normal<double>({n, n}, 0, 1, generator));
    const Variable<double> a(definite(x).value(), true), seed(xgrad::normal<double>({n, n}, 0, 1, generator));
    const Array<double> by_kernel = grad(cholesky(a), {a}, {.seed = seed})[0].value();
    const Array<double> by_ops = grad(cholesky(a), {a}, {.seed = seed, .create_graph = true})[0].value();
    expect_near(by_kernel, by_ops, 1e-12, "gradient");
  }
}

TEST(CholeskyTest, NamesTheFirstMatrixThatIsNotPositiveDefinite) {
  for (const std::size_t n : {8, 12}) {
    Array<double> a = Array<double>::from_shape({3, n, n});
    for (std::size_t i = 0; i < a.size(); ++i) a.data()[i] = i / n % n == i % n ? 1.0 : 0.0;
    a(2, 3, 3) = 0;
    for (const double wrong : {-1.0F, nan}) {
      a(1, 7, 7) = wrong;
      EXPECT_EQ(message_of<ValueError>([&] { xgrad::cholesky(Variable<double>(a)); }),
                "cholesky: the leading minor of order 8 of matrix (1) is not positive");
    }
  }
}

}  // namespace xgrad_tests::cholesky_rows
