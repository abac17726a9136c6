// What there is to test of qr.
#include <xgrad/ops/linalg/qr.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <xgrad/ops/pointwise/elementwise.hpp>
#include <xgrad/ops/reduce/reductions.hpp>

#include <gtest/gtest.h>

#include "../common/call.hpp"
#include "../common/expect_near.hpp"
#include "../common/matrices.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::qr_rows {

using naive::Matrix, naive::of_matrices;

/// Q (m, k) and R (k, n) of x, by Gram and Schmidt's way.
std::pair<Matrix, Matrix> decomposed(const Matrix& x) {
  const std::size_t k = std::min(x.rows, x.cols);
  Matrix q(x.rows, k);
  for (std::size_t c = 0; c < k; ++c) {
    std::vector<double> column(x.rows);
    for (std::size_t r = 0; r < x.rows; ++r) column[r] = x(r, c);
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t before = 0; before < c; ++before) {
        double along = 0;
        for (std::size_t r = 0; r < x.rows; ++r) along += q(r, before) * column[r];
        for (std::size_t r = 0; r < x.rows; ++r) column[r] -= along * q(r, before);
      }
    }
    double length = 0;
    for (const double element : column) length += element * element;
    for (std::size_t r = 0; r < x.rows; ++r) q(r, c) = column[r] / std::sqrt(length);
  }
  return {q, naive::transpose(q) * x};
}

/// Q diag(1, 2, ...) Q^T, which does not depend on the signs of Q's columns.
const auto of_q = [](const auto& x) {
  const auto q = xgrad::qr(apart(x[0])).Q;
  return matmul(weighted(q), mT(q));
};

const Reference naive_of_q = of_matrices([](const auto& x) {
  const Matrix q = decomposed(naive::apart(x[0])).first;
  return naive::weighted(q) * naive::transpose(q);
});

/// The squares of R, which do not depend on the signs of its rows.
const auto of_r = [](const auto& x) { return square(xgrad::qr(apart(x[0])).R); };
const auto of_r_alone = [](const auto& x) { return square(xgrad::qr(apart(x[0]), xgrad::QrMode::r).R); };
const Reference naive_of_r =
    of_matrices([](const auto& x) { return naive::squares(decomposed(naive::apart(x[0])).second); });

const Rows rows([] {
  Op op{"qr"};
  for (const auto& [f, reference] : {std::pair<Case, Reference>{make_case({}, of_q, naive_of_q), naive_of_q},
                                     {make_case({}, of_r, naive_of_r), naive_of_r},
                                     {make_case({}, of_r_alone, naive_of_r), naive_of_r}}) {
    for (const std::vector<Input>& inputs : rectangles)
      op.cases.push_back({inputs, f.in_float, f.in_double, reference});
  }
  op.large = make_cases({{{3000, 4, 3}}, {{30, 24, 12}}}, of_q, naive_of_q);
  op.large.push_back(make_case({{3000, 3, 4}}, of_r, naive_of_r));
  op.errors = {error<ShapeError>("qr: a must be matrices (..., m, n), got (3)", [] { xgrad::qr(x(3)); })};
  return std::vector<Op>{op};
});

template <class C>
xgrad::QrMode mode_of(const C& c) {
  const std::string mode = c.has_attr("mode") ? c.text("mode") : "reduced";
  return mode == "complete" ? xgrad::QrMode::complete
         : mode == "r"      ? xgrad::QrMode::r
                            : xgrad::QrMode::reduced;
}

const Conformance conformance{{"qr", [](const auto& c) {
                                 const auto [q, r] = qr(c.x(), mode_of(c));
                                 return q.defined() ? std::vector{q, r} : std::vector{r};
                               }}};

const Draws draws{matrix_draw("qr", [](Drawing& d, std::size_t n) {
  const Name a = drawn_dominant(d, n);
  const std::vector<Name> found = d.call("qr", {a}, {{"mode", std::string("reduced")}}, 2);
  drawn_product_of_vectors(d, found[0], found[1]);
})};

TEST(QrTest, ACompleteQIsSquareAndOrthogonal) {
  const Variable<double> a(Array<double>{{1, 2}, {3, 4}, {5, 7}});
  const auto [q, r] = qr(a, xgrad::QrMode::complete);
  EXPECT_EQ(q.shape(), (Shape{3, 3}));
  EXPECT_EQ(r.shape(), (Shape{3, 2}));
  expect_near(matmul(mT(q), q).value(), Array<double>{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, 1e-14, "Q^T Q");
  expect_near(matmul(q, r).value(), a.value(), 1e-14, "Q R");
}

TEST(QrTest, ANanIsInAllThatItChanges) {
  const Array<double> good{{1, 2, 4}, {3, 4, 1}, {5, 7, 2}, {2, 1, 1}};
  for (std::size_t row = 0; row < 4; ++row) {
    for (std::size_t column = 0; column < 3; ++column) {
      Array<double> a = good;
      a(row, column) = nan;
      const auto [q, r] = qr(Variable<double>(a));
      for (std::size_t k = 0; k < 3; ++k) {
        for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(std::isnan(q.value()(i, k)), k >= column);
        for (std::size_t i = 0; i <= k; ++i) EXPECT_EQ(std::isnan(r.value()(i, k)), k >= column);
      }
    }
  }
}

TEST(QrTest, TheGradientOfZerosBelowRsDiagonalIsIgnored) {
  const Variable<double> a(Array<double>{{1, 2, 4}, {3, 4, 1}, {5, 7, 2}}, true);
  const auto gradient = [&](const Array<double>& seed) {
    return grad(qr(a).R, {a}, {.seed = Variable<double>(seed)})[0].value();
  };
  EXPECT_EQ(gradient({{1, 2, 3}, {7, 4, 5}, {8, 9, 6}}), gradient({{1, 2, 3}, {0, 4, 5}, {0, 0, 6}}));
}

TEST(QrTest, ModeRGivesNoQ) {
  EXPECT_FALSE(qr(Variable<float>(Array<float>{{1, 2}, {3, 4}}), xgrad::QrMode::r).Q.defined());
}

TEST(QrTest, ACompleteQOfMoreRowsThanColumnsHasNoGradient) {
  const Variable<double> a(Array<double>{{1, 2}, {3, 4}, {5, 7}}, true);
  EXPECT_EQ(
      message_of<xgrad::GraphError>([&] { sum(qr(a, xgrad::QrMode::complete).Q).backward(); }),
      "backward: 'qr' has no gradient in mode complete for matrices with more rows than columns, 3 and 2");
}

}  // namespace xgrad_tests::qr_rows
