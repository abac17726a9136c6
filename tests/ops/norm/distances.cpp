// What there is to test of normalize, cosine_similarity and cdist.
#include <xgrad/ops/norm/distances.hpp>

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include <xgrad/ops/reduce/reductions.hpp>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/expect_near.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::distances_rows {

using naive::at, naive::generated, naive::with, naive::Numbers, naive::Arguments;

/// The norm of the line of x that the index lies on.
double length_of(const Numbers& x, const Shape& index, std::size_t axis, double p) {
  double total = 0;
  for (std::size_t i = 0; i < x.shape()[axis]; ++i)
    total += std::pow(std::abs(at(x, with(index, axis, i))), p);
  return std::pow(total, 1 / p);
}

Op normalize_op() {
  Op op{"distances.normalize"};
  const auto sample = [](const Shape& shape, int dim, std::size_t axis, double p, double eps) {
    return make_case(
        {{shape, away_from_zero}},
        [=](const auto& x) { return xgrad::normalize(x[0], dim, {.p = p, .eps = eps}); },
        [=](const Arguments& x) {
          return generated(x[0].shape(), [&](const Shape& index) {
            return at(x[0], index) / std::max(length_of(x[0], index, axis, p), eps);
          });
        });
  };
  op.cases = {sample({2, 3}, 1, 1, 2, 1e-12), sample({3, 4}, 0, 0, 3, 1e-12),
              sample({2, 3, 2}, -2, 1, 1, 1e-12), sample({4}, 0, 0, 2, 100), sample({0, 3}, 1, 1, 2, 1e-12)};
  op.large = {sample({5003, 41}, 1, 1, 2, 1e-12)};
  op.errors = {
      error<IndexError>("norm: axis 2 is out of range for x (2, 3)", [] { xgrad::normalize(x(2, 3), 2); })};
  return op;
}

Op cosine_similarity_op() {
  Op op{"distances.cosine_similarity"};
  const auto sample = [](const Shape& a, const Shape& b, int dim, std::size_t axis) {
    return make_case(
        {{a, away_from_zero}, {b, away_from_zero}},
        [dim](const auto& x) { return xgrad::cosine_similarity(x[0], x[1], dim); },
        [axis](const Arguments& x) {
          const Shape whole = naive::stretched(x[0].shape(), x[1].shape());
          const auto stretched = [&](const Numbers& part) {
            return generated(whole, [&](const Shape& index) { return at(part, index); });
          };
          const Numbers left = stretched(x[0]), right = stretched(x[1]);
          Numbers y = generated(with(whole, axis, 1), [&](const Shape& index) {
            double total = 0;
            for (std::size_t i = 0; i < whole[axis]; ++i)
              total += at(left, with(index, axis, i)) * at(right, with(index, axis, i));
            return total / length_of(left, index, axis, 2) / length_of(right, index, axis, 2);
          });
          return naive::reshaped(y, naive::without(whole, axis));
        });
  };
  op.cases = {sample({2, 3}, {2, 3}, 1, 1), sample({3, 4}, {3, 4}, 0, 0), sample({2, 3, 2}, {3, 1}, -2, 1),
              sample({4}, {4}, 0, 0), sample({0, 3}, {0, 3}, 1, 1)};
  op.large = {sample(plane, plane, 1, 1)};
  op.errors = {error<ShapeError>("cosine_similarity: shapes must broadcast, got a (2, 3) and b (2, 4)",
                                 [] { xgrad::cosine_similarity(x(2, 3), x(2, 4)); })};
  return op;
}

Op cdist_op() {
  Op op{"distances.cdist"};
  const auto sample = [](const Shape& a, const Shape& b, double p) {
    return make_case(
        {a, {b, {3, 5, 0}}},
        [p]<class T>(const Inputs<T>& x) { return xgrad::cdist(x[0], x[1], static_cast<T>(p)); },
        [p](const Arguments& x) {
          Shape batch_a(x[0].shape().begin(), x[0].shape().end() - 2),
              batch_b(x[1].shape().begin(), x[1].shape().end() - 2);
          const std::size_t n = x[0].shape()[batch_a.size()], m = x[1].shape()[batch_b.size()];
          return generated(naive::joined(naive::stretched(batch_a, batch_b), {n, m}), [&](Shape index) {
            const std::size_t j = index.back();
            index.pop_back();
            const std::size_t i = index.back();
            index.pop_back();
            double total = 0, largest = 0;
            for (std::size_t k = 0; k < x[0].shape().back(); ++k) {
              const double gap =
                  std::abs(at(x[0], naive::joined(index, {i, k})) - at(x[1], naive::joined(index, {j, k})));
              total += std::pow(gap, p);
              largest = std::max(largest, gap);
            }
            return std::isinf(p) ? largest : std::pow(total, 1 / p);
          });
        });
  };
  op.cases = {sample({2, 3}, {4, 3}, 2),    sample({2, 3}, {4, 3}, 1),          sample({2, 3}, {4, 3}, 3),
              sample({5, 2, 3}, {4, 3}, 2), sample({2, 1, 2, 3}, {3, 4, 3}, 2), sample({2, 40}, {3, 40}, 2),
              sample({2, 3}, {1, 3}, inf),  sample({0, 3}, {4, 3}, 2)};
  op.large = {sample({300, 5}, {200, 5}, 2)};
  op.errors = {
      error<ShapeError>("cdist: a and b must be rows of one length, got a (2, 3) and b (2, 4)",
                        [] { xgrad::cdist(x(2, 3), x(2, 4)); }),
      error<ShapeError>("cdist: a and b must be rows of one length, got a (3) and b (2, 3)",
                        [] { xgrad::cdist(x(3), x(2, 3)); }),
      error<ValueError>("cdist: p must not be negative, got -1", [] { xgrad::cdist(x(2, 3), x(2, 3), -1); })};
  return op;
}

const Rows rows([] { return std::vector<Op>{normalize_op(), cosine_similarity_op(), cdist_op()}; });

const Conformance conformance{
    {"normalize",
     [](const auto& c) { return normalize(c.x(), c.dim(), {.p = c.number("p"), .eps = c.number("eps")}); }},
    {"cosine_similarity",
     [](const auto& c) { return cosine_similarity(c.x(), c.x(1), c.dim(), c.number("eps")); }},
    {"cdist", [](const auto& c) { return cdist(c.x(), c.x(1), c.scalar("p")); }}};

void draw_normalize(Drawing& d) {
  const auto [drawn_x, dim, length] = d.cut();
  const Name x = d.within(drawn_x, away_from_zero);
  d.call("normalize", {x}, {{"dim", dim}, {"p", d.one_of({1.0, 2.0, 3.0})}, {"eps", 1e-12}});
}

void draw_cosine_similarity(Drawing& d) {
  const auto [drawn_a, dim, length] = d.cut();
  const Name a = d.within(drawn_a, positive), b = d.within(d.numbers(d.shape(a)), positive);
  d.call("cosine_similarity", {a, b}, {{"dim", dim}, {"eps", 1e-8}});
}

/// Of rows whose elements differ.
void draw_cdist(Drawing& d) {
  const std::size_t columns = 1 + d.below(4);
  const Name a = d.within(d.numbers(Shape{d.length(), columns}), {-2, -0.5}),
             b = d.within(d.numbers(Shape{d.length(), columns}), {0.5, 2});
  d.call("cdist", {a, b}, {{"p", d.one_of({1.0, 2.0, 3.0})}});
}

const Draws draws{
    {"normalize", draw_normalize}, {"cosine_similarity", draw_cosine_similarity}, {"cdist", draw_cdist}};

TEST(DistancesTest, VectorsShorterThanEpsAreDividedByIt) {
  const Variable<double> zeros(Array<double>{0, 0}, true), x(Array<double>{3, -4}, true);
  EXPECT_EQ(normalize(zeros, 0).value(), (Array<double>{0, 0}));
  expect_near(grad(sum(normalize(zeros, 0)), {zeros})[0].value(), Array<double>{1e12, 1e12}, 1e-15,
              "gradient");
  expect_near(normalize(x, 0, {.eps = 10}).value(), Array<double>{0.3, -0.4}, 1e-15, "normalize");
  EXPECT_EQ(cosine_similarity(zeros, x, 0).item(), 0);
  const auto grads = grad(cosine_similarity(zeros, x, 0), {zeros, x});
  expect_near(grads[0].value(), Array<double>{6e7, -8e7}, 1e-15, "da");
  EXPECT_EQ(grads[1].value(), (Array<double>{0, 0}));
}

TEST(DistancesTest, RowsFarFromZeroKeepTheirDistance) {
  const Variable<float> a(Array<float>{{10000, 20000}}, true), b(Array<float>{{10003, 19996}}, true);
  EXPECT_EQ(cdist(a, b).item(), 5);
  const auto grads = grad(cdist(a, b), {a, b});
  expect_near(grads[0].value(), Array<float>{{-0.6F, 0.8F}}, 1e-7, "da");
  expect_near(grads[1].value(), Array<float>{{0.6F, -0.8F}}, 1e-7, "db");
}

template <class T>
void expect_distance_in_range(T size) {
  const Variable<T> a(Array<T>{{3 * size, 0}}, true), b(Array<T>{{0, -4 * size}}, true);
  EXPECT_NEAR(cdist(a, b).item() / size, 5, 1e-6) << size;
  const auto grads = grad(cdist(a, b), {a, b});
  expect_near(grads[0].value(), Array<T>{{T(0.6), T(0.8)}}, 1e-6, "da");
  expect_near(grads[1].value(), Array<T>{{T(-0.6), T(-0.8)}}, 1e-6, "db");
}

TEST(DistancesTest, SquaresMayLeaveTheRange) {
  for (const float size : {1e30F, 1e-25F, 1e-40F}) expect_distance_in_range(size);
  for (const double size : {1e200, 1e-200}) expect_distance_in_range(size);
  const Variable<float> a(Array<float>{{inf, nan}, {inf, 0}}), b(Array<float>{{0, 0}});
  EXPECT_TRUE(std::isnan(cdist(a, b).value()(0, 0)));
  EXPECT_EQ(cdist(a, b).value()(1, 0), inf);
}

TEST(DistancesTest, ASmallGradientOfALongDistanceIsNotLost) {
  const Variable<float> a(Array<float>{{3e30F, 0}}, true), b(Array<float>{{0, -4e30F}}, true);
  const auto grads = grad(cdist(a, b), {a, b}, {.seed = Variable<float>(Array<float>({1, 1}, 1e-20F))});
  EXPECT_FLOAT_EQ(grads[0].value()(0, 0), 0.6e-20F);
  EXPECT_FLOAT_EQ(grads[1].value()(0, 1), -0.8e-20F);
}

TEST(DistancesTest, EqualRowsGetNothingOfAnInfiniteGradient) {
  const Variable<float> a(Array<float>{{1, 2}}, true), b(Array<float>{{1, 2}, {1, 3}}, true);
  const Variable<float> seed(Array<float>{{inf, 1}});
  const auto grads = grad(cdist(a, b), {a, b}, {.seed = seed});
  EXPECT_EQ(grads[0].value(), (Array<float>{{0, -1}}));
  EXPECT_EQ(grads[1].value(), (Array<float>{{0, 0}, {0, 1}}));
}

TEST(DistancesTest, DistancesAreThoseOfPyTorch) {
  const Variable<double> a(Array<double>{{0, 0}, {1, 2}}, true), b(Array<double>{{0, 0}, {3, 1}}, true);
  expect_near(cdist(a, b).value(), Array<double>{{0, std::sqrt(10)}, {std::sqrt(5), std::sqrt(5)}}, 1e-15,
              "2");
  EXPECT_EQ(cdist(a, b, 1).value(), (Array<double>{{0, 4}, {3, 3}}));
  EXPECT_EQ(cdist(a, b, 0).value(), (Array<double>{{0, 2}, {2, 2}}));
  EXPECT_EQ(cdist(a, b, inf).value(), (Array<double>{{0, 3}, {2, 2}}));
  const auto grads = grad(sum(cdist(a, b)), {a, b});
  expect_near(
      grads[0].value(),
      Array<double>{{-0.9486832980505138, -0.31622776601683794}, {-0.4472135954999579, 1.3416407864998738}},
      1e-14, "da");
}

}  // namespace xgrad_tests::distances_rows
