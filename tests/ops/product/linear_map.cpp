// What there is to test of linear_map.
#include <xgrad/ops/product/linear_map.hpp>

#include <gtest/gtest.h>

#include <xgrad/autograd/gradcheck.hpp>
#include <xgrad/ops/reduce/reductions.hpp>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"
#include "running_sums.hpp"

namespace xgrad_tests::linear_map_rows {

/// A map from (2, n) to (n + 1): row 0 once, at the front, and row 1 twice, one place later.
template <class T>
Array<T> overlapped(const Array<T>& x) {
  const std::size_t n = x.shape(1);
  Array<T> y = xt::zeros<T>({n + 1});
  for (std::size_t i = 0; i < n; ++i) {
    y(i) += x(0, i);
    y(i + 1) += 2 * x(1, i);
  }
  return y;
}

template <class T>
Array<T> overlapped_transposed(const Array<T>& y) {
  const std::size_t n = y.size() - 1;
  Array<T> x = Array<T>::from_shape({2, n});
  for (std::size_t i = 0; i < n; ++i) {
    x(0, i) = y(i);
    x(1, i) = 2 * y(i + 1);
  }
  return x;
}

template <class T>
Variable<T> overlapping(const Variable<T>& x) {
  return linear_map(x, overlapped<T>, overlapped_transposed<T>);
}

naive::Numbers sums_of_heads(const naive::Numbers& x) {
  naive::Numbers y = naive::filled(x.shape(), 0);
  naive::for_each_index(x.shape(), [&](const Shape& index) {
    Shape from = index;
    for (from.back() = 0; from.back() <= index.back(); ++from.back())
      naive::at(y, index) += naive::at(x, from);
  });
  return y;
}

naive::Numbers overlap_of_rows(const naive::Numbers& x) {
  naive::Numbers y = naive::filled({x.shape(1) + 1}, 0);
  for (std::size_t i = 0; i <= x.shape(1); ++i) {
    if (i < x.shape(1)) y(i) += x(0, i);
    if (i > 0) y(i) += 2 * x(1, i - 1);
  }
  return y;
}

Op linear_map_op() {
  Op op{"linear_map"};
  op.takes_any_length = false;  // its function is for one length
  const auto sums = [](const auto& x) { return cumulated(x[0]); };
  const auto overlap = [](const auto& x) { return overlapping(x[0]); };
  const Reference of_sums = [](const naive::Arguments& x) { return sums_of_heads(x[0]); };
  const Reference of_overlap = [](const naive::Arguments& x) { return overlap_of_rows(x[0]); };
  op.cases =
      make_cases({{Shape{1}}, {Shape{5}}, {Shape{2, 3}}, {Shape{0, 3}}, {Shape{2, 1, 4}}}, sums, of_sums);
  for (const Case& one : make_cases({{Shape{2, 1}}, {Shape{2, 4}}}, overlap, of_overlap))
    op.cases.push_back(one);
  op.large = make_cases({{wide}}, overlap, of_overlap);
  for (const Case& one : make_cases({{tall}}, sums, of_sums)) op.large.push_back(one);

  const auto same = [](const Array<float>& from) { return from; };
  const auto total = [](const Array<float>& from) { return Array<float>({1}, from.data()[0]); };
  op.errors = {
      error<ShapeError>(
          "linear_map: transposed must return an array of shape (2, 3), got (1), for one of shape (2, 3)",
          [=] { sum(linear_map(x(2, 3), same, total)).backward(); }),
      error<ShapeError>(
          "linear_map: map must return an array of shape (2, 3), got (1), for one of shape (2, 3)",
          [=] {
            bool first = true;
            const auto changing = [&](const Array<float>& from) {
              return std::exchange(first, false) ? same(from) : total(from);
            };
            const Variable<float> at = x(2, 3), dy = x(2, 3);
            const Variable<float> dx =
                grad(linear_map(at, changing, same), {at}, {.seed = dy, .create_graph = true}).front();
            sum(dx).backward();
          }),
      error<ValueError>("linear_map: map and transposed must be functions, got none for transposed",
                        [=] { linear_map(x(2), same, nullptr); }),
      error<ValueError>("linear_map: map and transposed must be functions, got none for map",
                        [=] { linear_map(x(2), nullptr, same); })};
  return op;
}

const Rows rows([] { return std::vector<Op>{linear_map_op()}; });

const Conformance conformance{{"linear_map", [](const auto& c) { return cumulated(c.x()); }}};

const Draws draws{{"linear_map", [](Drawing& d) { d.call("linear_map", {d.numbers(1)}); }}};

TEST(LinearMapTest, GradcheckFindsWhatIsNotTransposedOrNotLinear) {
  const Variable<double> at(Array<double>{1, -2, 0.5}, true);
  const auto check = [&](auto map, auto transposed) {
    return xgrad::gradcheck([=](const auto& x) { return linear_map(x[0], map, transposed); }, {at}).ok;
  };
  const auto square = [](const Array<double>& x) { return Array<double>(x * x); };
  const auto same = [](const Array<double>& x) { return x; };
  EXPECT_TRUE(check(running_sums<double>, running_sums_from_the_end<double>));
  EXPECT_FALSE(check(running_sums<double>, running_sums<double>));
  EXPECT_FALSE(check(square, same));
}

}  // namespace xgrad_tests::linear_map_rows
