// What there is to test of maxima with their indices, sort and topk.
#include <xgrad/ops/reduce/sorting.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include <xgrad/ops/reduce/reductions.hpp>

#include "../../keep_num_threads.hpp"
#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::sorting_rows {

using naive::at, naive::generated, naive::with, naive::without, naive::Numbers, naive::Arguments;

/// a before b in ascending order, where nan comes last.
template <class T>
bool before(T a, T b) {
  return std::isnan(b) ? !std::isnan(a) : a < b;
}

/// The places of the line of x that the index lies on, in order.
template <class T>
std::vector<std::size_t> order_of(const Array<T>& x, Shape index, std::size_t axis, bool descending) {
  std::vector<T> line;
  for (index[axis] = 0; index[axis] < x.shape()[axis]; ++index[axis]) line.push_back(at(x, index));
  std::vector<std::size_t> order(line.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return descending ? before(line[b], line[a]) : before(line[a], line[b]);
  });
  return order;
}

/// The first k in order, computed once for a line.
Reference naive_sorted(std::size_t axis, std::size_t k, bool descending) {
  return [=](const Arguments& x) {
    if (x[0].dimension() == 0) return x[0];
    Numbers y = Numbers::from_shape(with(x[0].shape(), axis, k));
    naive::for_each_index(with(x[0].shape(), axis, 1), [&](const Shape& first) {
      const std::vector<std::size_t> order = order_of(x[0], first, axis, descending);
      for (std::size_t i = 0; i < k; ++i) at(y, with(first, axis, i)) = at(x[0], with(first, axis, order[i]));
    });
    return y;
  };
}

Reference naive_extreme(std::size_t axis, bool largest, bool keepdim) {
  return [=](const Arguments& x) {
    const Numbers y = naive_sorted(axis, 1, largest)(x);
    return keepdim || y.dimension() == 0 ? y : naive::reshaped(y, without(y.shape(), axis));
  };
}

struct Sample {
  Shape shape;
  int dim;
  std::size_t axis;
};

const std::vector<Sample>& samples() {
  static const std::vector<Sample> all{{{5}, 0, 0},    {{1}, -1, 0},    {{}, 0, 0},         {{}, -1, 0},
                                       {{2, 3}, 0, 0}, {{2, 3}, -1, 1}, {{2, 3, 4}, 1, 1},  {{2, 17}, 1, 1},
                                       {{9, 2}, 0, 0}, {{0, 3}, 1, 1},  {{3, 40, 2}, 1, 1}, {{70}, 0, 0}};
  return all;
}

const std::vector<Sample>& large_samples() {
  static const std::vector<Sample> all{{plane, 1, 1},      {plane, 0, 0},         {{140001}, 0, 0},
                                       {{2, 70001}, 1, 1}, {{5, 129, 331}, 1, 1}, {tall, 0, 0}};
  return all;
}

/// Numbers 2^-14 from each other, in another order.
Array<double> far_apart(const Shape& shape) {
  Array<double> x = Array<double>::from_shape(shape);
  for (std::size_t i = 0; i < x.size(); ++i)
    x.data()[i] = static_cast<double>(std::uint64_t{i} * 48271 % x.size()) * 0x1p-14;
  return x;
}

/// A case of arguments so far from each other that neither a difference nor rounding changes their order.
template <class F>
Case apart_case(const Shape& shape, const F& f, const Reference& reference) {
  return make_case(
      {Input(shape, {-1e-5, 1e-5})},
      [f, shape](const auto& x) {
        using T = typename std::decay_t<decltype(x[0])>::value_type;
        return f(x[0] + Variable<T>(Array<T>(xt::cast<T>(far_apart(shape)))));
      },
      [reference, shape](const Arguments& x) { return reference({Numbers(x[0] + far_apart(shape))}); });
}

template <class F>
Op extreme_op(const std::string& name, const F& f, bool largest) {
  Op op{"sorting." + name};
  const auto sample = [&](const Sample& one, bool keepdim) {
    return make_case(
        {one.shape}, [=, dim = one.dim](const auto& x) { return f(x[0], dim, keepdim).values; },
        naive_extreme(one.axis, largest, keepdim));
  };
  for (const Sample& one : samples()) {
    for (const bool keepdim : {false, true}) op.cases.push_back(sample(one, keepdim));
  }
  for (const Sample& one : large_samples()) {
    op.large.push_back(apart_case(
        one.shape, [f, dim = one.dim](const auto& x) { return f(x, dim, false).values; },
        naive_extreme(one.axis, largest, false)));
  }
  op.errors = {
      error<IndexError>(name + ": axis 2 is out of range for x (2, 3)", [f] { f(x(2, 3), 2, false); }),
      error<ValueError>(name + ": there are no elements to choose from in x (2, 0)",
                        [f] { f(x(2, 0), 1, false); })};
  return op;
}

Op sort_op() {
  Op op{"sorting.sort"};
  op.passes_nan_on = false;  // it is the largest number, as in PyTorch
  const auto sample = [](const Sample& one, bool descending) {
    const std::size_t length = one.shape.empty() ? 1 : one.shape[one.axis];
    return make_case(
        {one.shape},
        [descending, dim = one.dim](const auto& x) {
          return xgrad::sort(x[0], dim, {.descending = descending}).values;
        },
        naive_sorted(one.axis, length, descending));
  };
  for (const Sample& one : samples()) {
    for (const bool descending : {false, true}) op.cases.push_back(sample(one, descending));
  }
  op.cases.push_back(sample({{3, 0}, 1, 1}, false));
  for (const Sample& one : large_samples()) {
    op.large.push_back(apart_case(
        one.shape,
        [dim = one.dim, descending = one.axis == 0](const auto& x) {
          return xgrad::sort(x, dim, {.descending = descending}).values;
        },
        naive_sorted(one.axis, one.shape[one.axis], one.axis == 0)));
  }
  op.errors = {
      error<IndexError>("sort: axis 2 is out of range for x (2, 3)", [] { xgrad::sort(x(2, 3), 2); })};
  return op;
}

Op topk_op() {
  Op op{"sorting.topk"};
  op.passes_nan_on = false;  // as sort
  const auto sample = [](const Sample& one, std::size_t k, bool largest) {
    return make_case(
        {one.shape},
        [=, dim = one.dim, k = static_cast<std::ptrdiff_t>(k)](const auto& x) {
          return xgrad::topk(x[0], k, dim, {.largest = largest}).values;
        },
        naive_sorted(one.axis, k, largest));
  };
  for (const Sample& one : samples()) {
    const std::size_t length = one.shape.empty() ? 1 : one.shape[one.axis];
    for (const std::size_t k : {std::min<std::size_t>(length, 2), length})
      op.cases.push_back(sample(one, k, k < length));
  }
  op.cases.push_back(sample({{2, 3}, 1, 1}, 0, true));
  for (const Sample& one : large_samples()) {
    op.large.push_back(apart_case(
        one.shape,
        [dim = one.dim, largest = one.axis == 0](const auto& x) {
          return xgrad::topk(x, 7, dim, {.largest = largest}).values;
        },
        naive_sorted(one.axis, 7, one.axis == 0)));
  }
  op.errors = {
      error<IndexError>("topk: axis 2 is out of range for x (2, 3)", [] { xgrad::topk(x(2, 3), 1, 2); }),
      error<ValueError>("topk: k must be in [0, 3], got 4 for axis 1 of x (2, 3)",
                        [] { xgrad::topk(x(2, 3), 4, -1); }),
      error<ValueError>("topk: k must be in [0, 3], got -1 for axis 1 of x (2, 3)",
                        [] { xgrad::topk(x(2, 3), -1); }),
      error<ValueError>("topk: k must be in [1, 1], got 0 for axis 0 of x ()", [] { xgrad::topk(x(), 0); })};
  return op;
}

/// Each element times its place among the distinct ones.
Op unique_op() {
  Op op{"sorting.unique"};
  op.passes_nan_on = false;  // as sort
  const auto f = []<class T>(const Inputs<T>& x) {
    return x[0] * Variable<T>(Array<T>(xt::cast<T>(xgrad::unique(x[0]).inverse)));
  };
  const Reference reference = [](const Arguments& x) {
    std::vector<double> sorted(x[0].storage().begin(), x[0].storage().end());
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    Numbers y = x[0];
    for (double& element : y.storage())
      element *=
          static_cast<double>(std::lower_bound(sorted.begin(), sorted.end(), element) - sorted.begin());
    return y;
  };
  op.cases = make_cases({{{5}}, {{2, 3}}, {{}}, {{0}}, {{2, 0}}, {{3, 4, 5}}}, f, reference);
  op.large.push_back(late_case({{2, 101}}, [f, reference] { return make_case({}, f, reference); }));
  op.errors = {
      error<IndexError>("unique: axis 2 is out of range for x (2, 3)", [] { xgrad::unique(x(2, 3), 2); }),
      error<ShapeError>("unique: slices must have elements, got x (0, 3) and dim 1",
                        [] { xgrad::unique(x(0, 3), 1); })};
  return op;
}

const Rows rows([] {
  return std::vector<Op>{
      extreme_op(
          "max",
          [](const auto& x, int dim, bool keepdim) { return xgrad::max(x, dim, {.keepdim = keepdim}); },
          true),
      extreme_op(
          "min",
          [](const auto& x, int dim, bool keepdim) { return xgrad::min(x, dim, {.keepdim = keepdim}); },
          false),
      sort_op(), topk_op(), unique_op()};
});

template <class T>
Results<T> both(const xgrad::Ranked<T>& ranked) {
  return {ranked.values, as_numbers<T>(ranked.indices)};
}

const Conformance conformance{
    {"max", [](const auto& c) { return both(max(c.x(), c.dim(), {.keepdim = c.flag("keepdim")})); }},
    {"min", [](const auto& c) { return both(min(c.x(), c.dim(), {.keepdim = c.flag("keepdim")})); }},
    {"sort", [](const auto& c) { return both(sort(c.x(), c.dim(), {.descending = c.flag("descending")})); }},
    {"topk",
     [](const auto& c) {
       return both(topk(c.x(), c.integer("k"), c.dim(), {.largest = c.flag("largest")}));
     }},
    {"argmax",
     []<class T>(const Call<T>& c) {
       return as_numbers<T>(c.has_attr("dim") ? argmax(c.x(), c.dim(), {.keepdim = c.flag("keepdim")})
                                              : argmax(c.x()));
     }},
    {"argmin",
     []<class T>(const Call<T>& c) {
       return as_numbers<T>(c.has_attr("dim") ? argmin(c.x(), c.dim(), {.keepdim = c.flag("keepdim")})
                                              : argmin(c.x()));
     }},
    {"argsort",
     []<class T>(const Call<T>& c) {
       return as_numbers<T>(argsort(c.x(), c.dim(), {.descending = c.flag("descending")}));
     }},
    {"searchsorted",
     []<class T>(const Call<T>& c) {
       return as_numbers<T>(searchsorted(c.x(), c.x(1), {.right = c.flag("right")}));
     }},
    {"unique", []<class T>(const Call<T>& c) {
       const auto found = c.has_attr("dim") ? unique(c.x(), c.dim()) : unique(c.x());
       return Results<T>{Variable<T>(found.values), as_numbers<T>(found.inverse),
                         as_numbers<T>(found.counts)};
     }}};

/// Whether no two elements are so near to each other that rounding could change their order.
bool is_apart(const Array<double>& x) {
  std::vector<double> sorted(x.storage().begin(), x.storage().end());
  std::sort(sorted.begin(), sorted.end());
  const double near = x.size() > 1000 ? 1e-5 : 1e-2;
  for (std::size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i] - sorted[i - 1] < near) return false;
  return x.size() > 0;
}

/// A call with these attributes besides the axis, of elements that are clear of each other.
Draw sorting_draw(const char* op, std::size_t results,
                  std::function<std::vector<Attr>(Drawing&, std::size_t)> attrs) {
  return {op, [=](Drawing& d) {
            const Name x = d.numbers();
            if (!is_apart(d.value(x))) return;
            const std::ptrdiff_t dim = d.axis(x);
            const Shape& shape = d.shape(x);
            const auto rank = static_cast<std::ptrdiff_t>(shape.size());
            std::vector<Attr> all =
                attrs(d, rank == 0 ? 1 : shape[static_cast<std::size_t>(dim < 0 ? dim + rank : dim)]);
            all.push_back({"dim", dim});
            d.call(op, {x}, all, results);
          }};
}

std::vector<Attr> keepdim_attr(Drawing& d, std::size_t) { return {{"keepdim", d.chance(0.5)}}; }

std::vector<Attr> descending_attr(Drawing& d, std::size_t) { return {{"descending", d.chance(0.5)}}; }

std::vector<Attr> topk_attrs(Drawing& d, std::size_t length) {
  return {{"k", static_cast<std::ptrdiff_t>(1 + d.below(length))}, {"largest", d.chance(0.5)}};
}

/// In rows that sort gives, or one row.
void draw_searchsorted(Drawing& d) {
  const Name x = d.numbers(1);
  if (!is_apart(d.value(x))) return;
  Shape shape = d.shape(x);
  shape.back() = 1 + d.length();
  const Name values = d.numbers(shape);
  const std::vector<Name> sorted =
      d.call("sort", {x}, {{"dim", std::ptrdiff_t{-1}}, {"descending", false}}, 2);
  d.call("searchsorted", {sorted[0], values}, {{"right", d.chance(0.5)}});
}

/// Of few whole numbers.
void draw_unique(Drawing& d) {
  const Name x = drawn(d, "round", {d.within(d.numbers(), {0.6, 1.4})});
  std::vector<Attr> attrs{{"dim", nullptr}};
  if (!d.shape(x).empty() && xgrad::element_count(d.shape(x)) > 0 && d.chance(0.5))
    attrs[0].value = d.axis(x);
  d.call("unique", {x}, attrs, 3);
}

const Draws draws{{"searchsorted", draw_searchsorted},        {"unique", draw_unique},
                  sorting_draw("max", 2, keepdim_attr),       sorting_draw("min", 2, keepdim_attr),
                  sorting_draw("sort", 2, descending_attr),   sorting_draw("topk", 2, topk_attrs),
                  sorting_draw("argmax", 1, keepdim_attr),    sorting_draw("argmin", 1, keepdim_attr),
                  sorting_draw("argsort", 1, descending_attr)};

/// Of few different numbers, some of them nan and infinite.
template <class T>
Array<T> with_ties(const Shape& shape) {
  const T numbers[] = {0, -T{0}, 1, -2, nan, std::copysign(T{nan}, T{-1}), inf, -inf};
  const Ids chosen = scattered_ids(shape, std::size(numbers));
  Array<T> x = Array<T>::from_shape(shape);
  for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = numbers[chosen.data()[i]];
  return x;
}

template <class T>
void check_indices(const Shape& shape, int dim) {
  const Variable<T> x(with_ties<T>(shape));
  const auto axis = static_cast<std::size_t>(dim);
  const auto n = static_cast<std::ptrdiff_t>(shape[axis]), k = std::min<std::ptrdiff_t>(n, 5);
  for (const bool descending : {false, true}) {
    const auto sorted = sort(x, dim, {.descending = descending});
    const auto top = topk(x, k, dim, {.largest = descending});
    EXPECT_EQ(argsort(x, dim, {.descending = descending}), sorted.indices);
    naive::for_each_index(with(shape, axis, 1), [&](const Shape& first) {
      const std::vector<std::size_t> order = order_of(x.value(), first, axis, descending);
      for (std::ptrdiff_t i = 0; i < n; ++i) {
        const auto place = static_cast<std::size_t>(i);
        const Shape there = with(first, axis, place);
        ASSERT_EQ(at(sorted.indices, there), static_cast<std::int64_t>(order[place])) << place;
        if (i < k) {
          ASSERT_EQ(at(top.indices, there), static_cast<std::int64_t>(order[place])) << place;
        }
      }
    });
  }
  const Ids largest = argmax(x, dim, {.keepdim = true}), smallest = argmin(x, dim, {.keepdim = true});
  EXPECT_EQ(max(x, dim, {.keepdim = true}).indices, largest);
  EXPECT_EQ(min(x, dim, {.keepdim = true}).indices, smallest);
  naive::for_each_index(with(shape, axis, 1), [&](const Shape& first) {
    ASSERT_EQ(at(largest, first), static_cast<std::int64_t>(order_of(x.value(), first, axis, true)[0]));
    // a nan is the smallest, too
    std::int64_t expected = static_cast<std::int64_t>(order_of(x.value(), first, axis, false)[0]);
    for (std::size_t i = shape[axis]; i-- > 0;) {
      if (std::isnan(at(x.value(), with(first, axis, i)))) expected = static_cast<std::int64_t>(i);
    }
    ASSERT_EQ(at(smallest, first), expected);
  });
}

TEST(SortingTest, IndicesOfTiesAndNansComeInOrder) {
  const KeepNumThreads keep;
  for (const std::size_t threads : {1, 3}) {
    xgrad::set_num_threads(threads);
    for (const auto& [shape, dim] :
         {std::pair(Shape{1}, 0), std::pair(Shape{40}, 0), std::pair(Shape{3, 5}, 0),
          std::pair(Shape{3, 5}, 1), std::pair(Shape{4, 33, 3}, 1), std::pair(Shape{300, 301}, 0),
          std::pair(Shape{300, 301}, 1), std::pair(Shape{2, 140001}, 1), std::pair(Shape{3, 70001}, 0)}) {
      SCOPED_TRACE(xgrad::to_string(shape) + " along " + std::to_string(dim));
      check_indices<float>(shape, dim);
      check_indices<double>(shape, dim);
    }
  }
}

TEST(SortingTest, SearchesAreThoseOfPyTorch) {
  const Variable<float> row(Array<float>{1, 2, nan}), x(Array<float>{nan, 3, 2});
  EXPECT_EQ(searchsorted(row, x), ids_of({3}, {3, 3, 1}));
  EXPECT_EQ(searchsorted(row, x, {.right = true}), ids_of({3}, {3, 3, 3}));
  EXPECT_EQ(searchsorted(row, Variable<float>(2.0f)), ids_of({}, {1}));
  EXPECT_EQ(searchsorted(row, Variable<float>(Array<float>{{0, 1.5}, {2, 9}})), ids_of({2, 2}, {0, 1, 1, 3}));
  const Variable<float> rows(Array<float>{{1, 2, 2}, {4, 5, 6}});
  EXPECT_EQ(searchsorted(rows, Variable<float>(Array<float>{{2, 0}, {2, 5}})), ids_of({2, 2}, {1, 0, 0, 1}));
  EXPECT_EQ(searchsorted(Variable<float>(Array<float>::from_shape({0})), x), ids_of({3}, {0, 0, 0}));
  const std::string rule =
      "searchsorted: sorted must have one axis, or all axes of values but the last, got ";
  EXPECT_EQ(message_of<ShapeError>([&] { searchsorted(rows, x); }), rule + "sorted (2, 3) and values (3)");
  EXPECT_EQ(message_of<ShapeError>([&] {
              searchsorted(rows, Variable<float>(Array<float>::from_shape({3, 2})));
            }),
            rule + "sorted (2, 3) and values (3, 2)");
  EXPECT_EQ(message_of<ShapeError>([&] { searchsorted(Variable<float>(1.0f), x); }),
            rule + "sorted () and values (3)");
}

TEST(SortingTest, ManySearchesAreTheSameInSeveralThreads) {
  const KeepNumThreads keep;
  const Variable<double> row(far_apart({5000}));
  const auto sorted = sort(row).values;
  for (const std::size_t threads : {1, 3}) {
    xgrad::set_num_threads(threads);
    const Ids found = searchsorted(sorted, row);
    for (std::size_t i = 0; i < row.size(); ++i)
      ASSERT_EQ(sorted.value()(static_cast<std::size_t>(found(i))), row.value()(i));
  }
}

TEST(SortingTest, DistinctElementsAreThoseOfPyTorch) {
  const auto found = unique(Variable<float>(Array<float>{3, 1, nan, 1, nan, -0.0F, 0}));
  EXPECT_EQ(found.values.size(), 5u);
  EXPECT_EQ(found.values(0), 0);
  EXPECT_EQ(found.values(1), 1);
  EXPECT_EQ(found.values(2), 3);
  EXPECT_TRUE(std::isnan(found.values(3)) && std::isnan(found.values(4)));
  EXPECT_EQ(found.inverse, ids_of({7}, {2, 1, 3, 1, 4, 0, 0}));
  EXPECT_EQ(found.counts, ids_of({5}, {2, 2, 1, 1, 1}));
}

TEST(SortingTest, DistinctSlicesAreThoseOfPyTorch) {
  const Variable<float> x(Array<float>{{1, 0, 1, 0}, {2, 5, 2, 3}, {1, 0, 1, 0}});
  const auto columns = unique(x, -1), rows = unique(x, 0);
  EXPECT_EQ(columns.values, (Array<float>{{0, 0, 1}, {3, 5, 2}, {0, 0, 1}}));
  EXPECT_EQ(columns.inverse, ids_of({4}, {2, 1, 2, 0}));
  EXPECT_EQ(columns.counts, ids_of({3}, {1, 1, 2}));
  EXPECT_EQ(rows.values, (Array<float>{{1, 0, 1, 0}, {2, 5, 2, 3}}));
  EXPECT_EQ(rows.inverse, ids_of({3}, {0, 1, 0}));
  const auto with_nan = unique(Variable<float>(Array<float>{{nan, 1}, {2, 1}, {nan, 0}, {2, 1}}), 0);
  EXPECT_EQ(with_nan.inverse, ids_of({4}, {2, 0, 1, 0}));
  EXPECT_EQ(unique(Variable<float>(Array<float>::from_shape({0, 2})), 0).values.shape(), (Shape{0, 2}));
}

TEST(SortingTest, IndicesOfAllElements) {
  const Variable<float> x(Array<float>{{1, 5, 2}, {-3, 5, -3}});
  EXPECT_EQ(argmax(x), Ids(Shape{}, 1));
  EXPECT_EQ(argmin(x), Ids(Shape{}, 3));
  EXPECT_EQ(argmax(x, 0), ids_of({3}, {0, 0, 0}));
  EXPECT_EQ(argmin(x, 1, {.keepdim = true}), ids_of({2, 1}, {0, 0}));
  EXPECT_EQ(message_of<ValueError>([] {
              xgrad::argmax(Variable<float>(Array<float>::from_shape({0, 2})));
            }),
            "argmax: there are no elements to choose from in x (0, 2)");
  EXPECT_EQ(message_of<IndexError>([&] { xgrad::argsort(x, 2); }),
            "argsort: axis 2 is out of range for x (2, 3)");
}

TEST(SortingTest, TheGradientOfTiesGoesToTheChosenOne) {
  const Variable<float> x(Array<float>{{2, 1, 2}, {nan, 3, nan}}, true);
  EXPECT_EQ(grad(sum(max(x, 1).values), {x})[0].value(), (Array<float>{{1, 0, 0}, {1, 0, 0}}));
  EXPECT_EQ(grad(sum(min(x, 1).values), {x})[0].value(), (Array<float>{{0, 1, 0}, {1, 0, 0}}));
  EXPECT_TRUE(std::isnan(max(x, 1).values.value()(1)));
  EXPECT_TRUE(std::isnan(min(x, 1).values.value()(1)));
  EXPECT_EQ(grad(sum(topk(x, 1).values), {x})[0].value(), (Array<float>{{1, 0, 0}, {1, 0, 0}}));
}

}  // namespace xgrad_tests::sorting_rows
