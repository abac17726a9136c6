// What there is to test of putting elements where ids or a mask say.
#include <xgrad/ops/index/scatter.hpp>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/autograd/gradcheck.hpp>
#include <xgrad/ops/reduce/reductions.hpp>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/expect_near.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::scatter_rows {

using naive::at, naive::for_each_index, naive::with, naive::Numbers, naive::Arguments;

/// x, and the elements of the second argument at the places that `to` gives them: added, or put there.
Reference put(std::function<Shape(const Shape&)> to, Shape from, bool accumulate = true) {
  return [=](const Arguments& x) {
    Numbers y = x[0];
    for_each_index(from, [&](const Shape& index) {
      double& there = at(y, to(index));
      there = at(x[1], index) + (accumulate ? there : 0);
    });
    return y;
  };
}

struct ScatterSample {
  Shape x;
  int dim;
  Ids index;
  Shape src;
  std::size_t axis;
};

Case scatter_case(const ScatterSample& s) {
  return make_case(
      {s.x, s.src}, [s](const auto& x) { return xgrad::scatter_add(x[0], s.dim, s.index, x[1]); },
      [s](const Arguments& x) {
        Numbers y = x[0];
        if (y.dimension() == 0 || s.index.dimension() == 0) {  // one element, or as many as there are ids
          const auto n = s.index.size();
          for (std::size_t i = 0; i < n; ++i) y.data()[s.index.data()[i]] += x[1].data()[i];
          return y;
        }
        for_each_index(s.index.shape(), [&](const Shape& index) {
          at(y, with(index, s.axis, static_cast<std::size_t>(at(s.index, index)))) +=
              x[1].data()[naive::position(x[1].shape(), index)];
        });
        return y;
      });
}

Op scatter_add_op() {
  Op op{"scatter.scatter_add"};
  for (const ScatterSample& sample :
       std::vector<ScatterSample>{{{4}, 0, ids_of({3}, {3, 0, 3}), {3}, 0},
                                  {{2, 3}, 1, ids_of({2, 4}, {0, 2, 2, 1, 1, 1, 0, 2}), {2, 4}, 1},
                                  {{3, 2}, 0, ids_of({2, 2}, {2, 0, 2, 2}), {3, 4}, 0},
                                  {{2, 3, 2}, -1, ids_of({1, 2, 3}, {1, 0, 0, 1, 1, 1}), {2, 2, 3}, 2},
                                  {{2, 3}, 0, ids_of({0, 3}, {}), {2, 3}, 0},
                                  {{2, 3}, 1, ids_of({0}, {}), {4}, 1},
                                  {{}, 0, ids_of({}, {0}), {}, 0},
                                  {{}, -1, ids_of({2}, {0, 0}), {3}, 0},
                                  {{3}, 0, ids_of({}, {2}), {}, 0}})
    op.cases.push_back(scatter_case(sample));
  for (const auto& [shape, axis] : {std::pair<Shape, std::size_t>{plane, 0},
                                    {plane, 1},
                                    {{5, 129, 331}, 1},
                                    {long_vector, 0},
                                    {wide, 1}}) {
    op.large.push_back(late_case({shape, shape}, [shape = shape, axis = axis] {
      return scatter_case({shape, static_cast<int>(axis), scattered_ids(shape, shape[axis]), shape, axis});
    }));
  }
  const std::string rule =
      "scatter_add: index must be no longer than src, and no longer than x except along axis 0, got x (2, "
      "3), index ";
  op.errors = {error<IndexError>("scatter_add: axis 2 is out of range for x (2, 3)",
                                 [] {
                                   xgrad::scatter_add(x(2, 3), 2, ids_of({1, 1}, {0}), x(1, 1));
                                 }),
               error<IndexError>("scatter_add: index must be in [0, 2), got 2",
                                 [] {
                                   xgrad::scatter_add(x(2, 3), 0, ids_of({1, 1}, {2}), x(1, 1));
                                 }),
               error<ShapeError>(rule + "(1, 1) and src (1)",
                                 [] {
                                   xgrad::scatter_add(x(2, 3), 0, ids_of({1, 1}, {0}), x(1));
                                 }),
               error<ShapeError>(rule + "(2, 1) and src (1, 3)",
                                 [] {
                                   xgrad::scatter_add(x(2, 3), 0, ids_of({2, 1}, {0, 0}), x(1, 3));
                                 }),
               error<ShapeError>(rule + "(1, 4) and src (1, 4)", [] {
                 xgrad::scatter_add(x(2, 3), 0, ids_of({1, 4}, {0, 0, 0, 0}), x(1, 4));
               })};
  return op;
}

Op index_add_op() {
  Op op{"scatter.index_add"};
  const auto sample = [](const Shape& shape, int dim, const Ids& index, std::size_t axis) {
    const Shape source = shape.empty() ? shape : with(shape, axis, index.size());
    return make_case(
        {shape, source}, [=](const auto& x) { return xgrad::index_add(x[0], dim, index, x[1]); },
        put(
            [=](const Shape& from) {
              return from.empty() ? from
                                  : with(from, axis, static_cast<std::size_t>(index.data()[from[axis]]));
            },
            source));
  };
  op.cases = {sample({4}, 0, ids_of({3}, {3, 0, 3}), 0),
              sample({4, 3}, 0, ids_of({2}, {2, 2}), 0),
              sample({2, 4, 3}, 1, ids_of({5}, {3, 0, 1, 1, 2}), 1),
              sample({2, 3}, -1, ids_of({}, {1}), 1),
              sample({2, 3}, 0, ids_of({0}, {}), 0),
              sample({}, 0, ids_of({1}, {0}), 0)};
  for (const auto& [shape, axis] : {std::pair<Shape, std::size_t>{plane, 0}, {plane, 1}, {wide, 1}})
    op.large.push_back(
        late_case({shape, with(shape, axis, shape[axis] + 7)}, [=, shape = shape, axis = axis] {
          return sample(shape, static_cast<int>(axis), scattered_ids({shape[axis] + 7}, shape[axis]), axis);
        }));
  const std::string rule =
      "index_add: source must have the shape of x, with the length of index along axis 0, got x ";
  op.errors = {error<IndexError>("index_add: axis 2 is out of range for x (2, 3)",
                                 [] { xgrad::index_add(x(2, 3), 2, ids_of({1}, {0}), x(2, 3)); }),
               error<IndexError>("index_add: index must be in [0, 2), got -1",
                                 [] { xgrad::index_add(x(2, 3), 0, ids_of({1}, {-1}), x(1, 3)); }),
               error<ShapeError>("index_add: index must have at most one axis, got (1, 1)",
                                 [] {
                                   xgrad::index_add(x(2, 3), 0, ids_of({1, 1}, {0}), x(1, 3));
                                 }),
               error<ShapeError>(rule + "(2, 3), index (1) and source (2, 3)",
                                 [] { xgrad::index_add(x(2, 3), 0, ids_of({1}, {0}), x(2, 3)); }),
               error<ShapeError>(rule + "(), index (2) and source ()", [] {
                 xgrad::index_add(x(), 0, ids_of({2}, {0, 0}), x());
               })};
  return op;
}

Op index_put_op() {
  Op op{"scatter.index_put"};
  // `common` is what the ids broadcast to
  const auto sample = [](const Shape& shape, const std::vector<Ids>& indices, const Shape& common,
                         const Shape& values, bool accumulate) {
    Shape from = common;
    from.insert(from.end(), shape.begin() + static_cast<std::ptrdiff_t>(indices.size()), shape.end());
    return make_case(
        {shape, values},
        [=](const auto& x) { return xgrad::index_put(x[0], indices, x[1], {.accumulate = accumulate}); },
        put(
            [=](const Shape& place) {
              const Shape of_ids(place.begin(), place.begin() + static_cast<std::ptrdiff_t>(common.size()));
              Shape to;
              for (std::size_t axis = 0; axis < indices.size(); ++axis) {
                const std::int64_t id = at(indices[axis], of_ids);
                to.push_back(static_cast<std::size_t>(id) + (id < 0 ? shape[axis] : 0));
              }
              to.insert(to.end(), place.begin() + static_cast<std::ptrdiff_t>(common.size()), place.end());
              return to;
            },
            from, accumulate));
  };
  for (const bool accumulate : {true, false}) {
    for (const Case& one :
         {sample({5}, {ids_of({3}, {3, 0, 3})}, {3}, {3}, accumulate),
          sample({5}, {ids_of({2}, {-1, 1})}, {2}, {}, accumulate),
          sample({4, 3}, {ids_of({3}, {2, 2, 1})}, {3}, {3, 3}, accumulate),
          sample({4, 3}, {ids_of({2}, {2, 0})}, {2}, {1, 3}, accumulate),
          sample({4, 3}, {ids_of({3}, {1, -4, 1}), ids_of({3}, {2, 0, 2})}, {3}, {3}, accumulate),
          sample({4, 3}, {ids_of({2, 1}, {1, 3}), ids_of({3}, {2, 0, 2})}, {2, 3}, {2, 3}, accumulate),
          sample({3, 2, 2}, {ids_of({2}, {1, 0}), ids_of({}, {1})}, {2}, {2, 2}, accumulate),
          sample({3, 2}, {ids_of({}, {1})}, {}, {2}, accumulate),
          sample({3, 2}, {ids_of({0}, {})}, {0}, {0, 2}, accumulate)})
      op.cases.push_back(one);
    op.large.push_back(sample(plane, {scattered_ids({700}, 517)}, {700}, {700, 403}, accumulate));
    op.large.push_back(sample(plane, {scattered_ids({500, 1}, 517), scattered_ids({300}, 403)}, {500, 300},
                              {500, 300}, accumulate));
  }
  const std::string too_many =
      "index_put: there must be ids for at least one axis, and for at most all axes of x, got ";
  op.errors = {
      error<IndexError>(too_many + "2 for x (3)",
                        [] {
                          xgrad::index_put(x(3), {ids_of({1}, {0}), ids_of({1}, {0})}, x(1));
                        }),
      error<IndexError>(too_many + "0 for x (3)", [] { xgrad::index_put(x(3), {}, x(1)); }),
      error<IndexError>("index_put: indices must be in [-3, 3) for axis 1 of x (2, 3), got 3",
                        [] {
                          xgrad::index_put(x(2, 3), {ids_of({1}, {0}), ids_of({1}, {3})}, x(1));
                        }),
      error<ShapeError>("index_put: indices must broadcast, got (2) and (3)",
                        [] {
                          xgrad::index_put(x(2, 3), {ids_of({2}, {0, 0}), ids_of({3}, {0, 0, 0})}, x(1));
                        }),
      error<ShapeError>("index_put: values must broadcast to (2, 3), got (3, 3)", [] {
        xgrad::index_put(x(2, 3), {ids_of({2}, {0, 1})}, x(3, 3));
      })};
  return op;
}

Op masked_select_op() {
  Op op{"scatter.masked_select"};
  const auto sample = [](const Shape& shape, const Mask& mask) {
    return make_case(
        {shape}, [mask](const auto& x) { return xgrad::masked_select(x[0], mask); },
        [mask](const Arguments& x) {
          std::vector<double> found;
          for_each_index(naive::stretched(x[0].shape(), mask.shape()), [&](const Shape& index) {
            if (at(mask, index)) found.push_back(at(x[0], index));
          });
          Numbers y = Numbers::from_shape({found.size()});
          std::copy(found.begin(), found.end(), y.data());
          return y;
        });
  };
  op.cases = {sample({5}, mask_of({5}, {0, 1, 1, 0, 1})), sample({2, 3}, mask_of({2, 3}, {1, 0, 0, 0, 1, 1})),
              sample({2, 3}, mask_of({3}, {1, 0, 1})),    sample({3}, mask_of({2, 3}, {1, 0, 1, 1, 1, 0})),
              sample({2, 1}, mask_of({1, 3}, {1, 0, 1})), sample({2, 3}, mask_of({}, {1})),
              sample({2, 3}, mask_of({}, {0})),           sample({}, mask_of({}, {1})),
              sample({0, 3}, mask_of({3}, {1, 0, 1}))};
  for (const auto& [shape, mask] :
       {std::pair<Shape, Shape>{plane, plane}, {plane, {403}}, {long_vector, long_vector}})
    op.large.push_back(
        late_case({shape}, [=, shape = shape, mask = mask] { return sample(shape, scattered_mask(mask)); }));
  op.errors = {error<ShapeError>("masked_select: shapes must broadcast, got x (2, 3) and mask (4)", [] {
    xgrad::masked_select(x(2, 3), mask_of({4}, {0, 0, 0, 0}));
  })};
  return op;
}

/// What `combine` makes of x, if it is included, and of all elements of src with its position, in order.
template <class Combine>
Reference naive_scatter(const ScatterSample& s, bool include_self, const Combine& combine) {
  return [=](const Arguments& x) {
    std::vector<std::vector<double>> met(x[0].size());
    const auto put = [&](const Shape& to, const Shape& from) {
      met[naive::position(x[0].shape(), to)].push_back(x[1].data()[naive::position(x[1].shape(), from)]);
    };
    if (x[0].dimension() == 0) {
      for (std::size_t i = 0; i < s.index.size(); ++i) met[0].push_back(x[1].data()[i]);
    } else if (s.index.size() > 0) {
      for_each_index(s.index.shape(), [&](const Shape& index) {
        put(with(index, s.axis, static_cast<std::size_t>(at(s.index, index))), index);
      });
    }
    Numbers y = x[0];
    for (std::size_t i = 0; i < y.size(); ++i) {
      if (met[i].empty()) continue;
      if (include_self) met[i].insert(met[i].begin(), x[0].data()[i]);
      y.data()[i] = combine(met[i]);
    }
    return y;
  };
}

double last_of(const std::vector<double>& met) { return met.back(); }

const std::vector<ScatterSample>& scatter_samples() {
  static const std::vector<ScatterSample> all{
      {{4}, 0, ids_of({3}, {3, 0, 3}), {3}, 0},
      {{2, 3}, 1, ids_of({2, 4}, {0, 2, 2, 1, 1, 1, 1, 1}), {2, 4}, 1},
      {{3, 2}, 0, ids_of({2, 2}, {2, 0, 2, 2}), {3, 4}, 0},
      {{2, 3, 2}, -1, ids_of({1, 2, 3}, {1, 0, 0, 1, 1, 1}), {2, 2, 3}, 2},
      {{2, 3}, 0, ids_of({0, 3}, {}), {2, 3}, 0},
      {{}, -1, ids_of({2}, {0, 0}), {3}, 0}};
  return all;
}

Op scatter_op() {
  Op op{"scatter.scatter"};
  const auto sample = [](const ScatterSample& s) {
    return make_case(
        {s.x, s.src}, [s](const auto& x) { return xgrad::scatter(x[0], s.dim, s.index, x[1]); },
        naive_scatter(s, false, last_of));
  };
  for (const ScatterSample& s : scatter_samples()) op.cases.push_back(sample(s));
  op.cases.push_back(make_case(
      {{2, 3}},
      [](const auto& x) {
        return xgrad::scatter(x[0], 1, ids_of({2, 1}, {2, 0}), 0.5);
      },
      [](const Arguments& x) {
        Numbers y = x[0];
        y(0, 2) = y(1, 0) = 0.5;
        return y;
      }));
  for (const std::size_t axis : {0, 1}) {
    op.large.push_back(late_case({plane, plane}, [sample, axis] {
      return sample({plane, static_cast<int>(axis), scattered_ids(plane, plane[axis]), plane, axis});
    }));
  }
  op.errors = {
      error<IndexError>("scatter: axis 2 is out of range for x (2, 3)",
                        [] {
                          xgrad::scatter(x(2, 3), 2, ids_of({1, 1}, {0}), x(1, 1));
                        }),
      error<IndexError>("scatter: index must be in [0, 2), got -1",
                        [] {
                          xgrad::scatter(x(2, 3), 0, ids_of({1, 1}, {-1}), x(1, 1));
                        }),
      error<ShapeError>("scatter: index must be no longer than src, and no longer than x except along "
                        "axis 0, got x (2, 3), index (1, 2) and src (1, 1)",
                        [] {
                          xgrad::scatter(x(2, 3), 0, ids_of({1, 2}, {0, 0}), x(1, 1));
                        })};
  return op;
}

struct NaiveReduction {
  xgrad::ScatterReduction reduce;
  double (*combine)(const std::vector<double>&);
};

double sum_of(const std::vector<double>& met) { return std::accumulate(met.begin(), met.end(), 0.0); }

const std::vector<NaiveReduction>& naive_reductions() {
  using enum xgrad::ScatterReduction;
  static const std::vector<NaiveReduction> all{
      {sum, sum_of},
      {prod,
       [](const std::vector<double>& met) {
         return std::accumulate(met.begin(), met.end(), 1.0, std::multiplies<>());
       }},
      {mean, [](const std::vector<double>& met) { return sum_of(met) / static_cast<double>(met.size()); }},
      {amax, [](const std::vector<double>& met) { return *std::max_element(met.begin(), met.end()); }},
      {amin, [](const std::vector<double>& met) { return *std::min_element(met.begin(), met.end()); }}};
  return all;
}

Op scatter_reduce_op() {
  Op op{"scatter.scatter_reduce"};
  const auto sample = [](const ScatterSample& s, const NaiveReduction& naive, bool include_self) {
    return make_case(
        {s.x, s.src},
        [s, reduce = naive.reduce, include_self](const auto& x) {
          return xgrad::scatter_reduce(x[0], s.dim, s.index, x[1], reduce, {.include_self = include_self});
        },
        naive_scatter(s, include_self, naive.combine));
  };
  for (const NaiveReduction& naive : naive_reductions()) {
    for (const bool include_self : {true, false}) {
      for (const ScatterSample& s : scatter_samples()) op.cases.push_back(sample(s, naive, include_self));
    }
    op.large.push_back(late_case({plane, plane}, [sample, naive] {
      return sample({plane, 1, scattered_ids(plane, plane[1]), plane, 1}, naive, true);
    }));
  }
  op.errors = {
      error<IndexError>(
          "scatter_reduce: index must be in [0, 2), got 2",
          [] {
            xgrad::scatter_reduce(x(2, 3), 0, ids_of({1, 1}, {2}), x(1, 1), xgrad::ScatterReduction::amax);
          }),
      error<ShapeError>(
          "scatter_reduce: index must be no longer than src, and no longer than x except "
          "along axis 0, got x (2, 3), index (1, 2) and src (1, 1)",
          [] {
            xgrad::scatter_reduce(x(2, 3), 0, ids_of({1, 2}, {0, 0}), x(1, 1), xgrad::ScatterReduction::sum);
          })};
  return op;
}

xgrad::ScatterReduction reduction_of(const std::string& name) {
  const std::vector<std::string> names = {"sum", "prod", "mean", "amax", "amin"};
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw ValueError("scatter_reduce: there is no reduction '" + name + "'");
  return static_cast<xgrad::ScatterReduction>(found - names.begin());
}

const Rows rows([] {
  return std::vector<Op>{scatter_add_op(),   index_add_op(), index_put_op(),
                         masked_select_op(), scatter_op(),   scatter_reduce_op()};
});

const Conformance conformance{
    {"scatter_add", [](const auto& c) { return scatter_add(c.x(), c.dim(), c.ids(1), c.x(2)); }},
    {"scatter",
     [](const auto& c) {
       return c.has_attr("value") ? scatter(c.x(), c.dim(), c.ids(1), c.scalar("value"))
                                  : scatter(c.x(), c.dim(), c.ids(1), c.x(2));
     }},
    {"scatter_reduce",
     [](const auto& c) {
       return scatter_reduce(c.x(), c.dim(), c.ids(1), c.x(2), reduction_of(c.text("reduce")),
                             {.include_self = c.flag("include_self")});
     }},
    {"index_add",
     [](const auto& c) { return index_add(c.x(), c.dim(), c.ids(1), c.x(2) * c.number("alpha", 1)); }},
    {"index_put",
     [](const auto& c) {
       std::vector<Ids> indices;
       for (std::size_t i = 2; i < c.size(); ++i) indices.push_back(c.ids(i));
       return index_put(c.x(), indices, c.x(1), {.accumulate = c.flag("accumulate")});
     }},
    {"masked_select", [](const auto& c) { return masked_select(c.x(), c.mask(1)); }},
    {"one_hot", []<class T>(const Call<T>& c) {
       return as_numbers<T>(xgrad::one_hot(c.ids(0), c.integer("num_classes")));
     }}};

void draw_scatter_add(Drawing& d) {
  const auto [x, dim, length] = d.cut();
  if (length == 0) return;
  Shape shape = d.shape(x);
  for (std::size_t& other : shape)
    if (other > 1 && d.chance(0.3)) other = 1 + d.below(other);
  shape[static_cast<std::size_t>(dim < 0 ? dim + std::ssize(shape) : dim)] = 1 + d.length();
  if (xgrad::element_count(shape) == 0) return;  // PyTorch's second derivative refuses it
  d.call("scatter_add", {x, d.ids(shape, length), d.numbers(shape)}, {{"dim", dim}});
}

/// Places along the axis that differ: PyTorch says nothing of several elements with one.
void draw_scatter(Drawing& d) {
  const auto [x, dim, length] = d.cut();
  if (length == 0) return;
  Shape shape = d.shape(x);
  const auto axis = static_cast<std::size_t>(dim < 0 ? dim + std::ssize(shape) : dim);
  const std::vector<std::ptrdiff_t> order = d.order(length);
  shape[axis] = 1 + d.below(length);
  if (xgrad::element_count(shape) == 0) return;
  Ids index = Ids::from_shape(shape);
  for_each_index(shape, [&](const Shape& place) { at(index, place) = order[place[axis]]; });
  const Name places = d.leaf({{{}, std::move(index)}});
  if (d.chance(0.3)) {
    d.call("scatter", {x, places}, {{"dim", dim}, {"value", 0.5}});
  } else {
    d.call("scatter", {x, places, d.numbers(shape)}, {{"dim", dim}});
  }
}

/// Of products PyTorch has no second derivative where an element is 0.
void draw_scatter_reduce(Drawing& d) {
  const auto [drawn_x, dim, length] = d.cut();
  if (length == 0) return;
  const std::string reduce = d.one_of<std::string>({"sum", "prod", "mean", "amax", "amin"});
  const bool is_product = reduce == "prod";
  const Name x = is_product ? d.within(drawn_x, {0.5, 1.5}) : drawn_x;
  Shape shape = d.shape(x);
  shape[static_cast<std::size_t>(dim < 0 ? dim + std::ssize(shape) : dim)] = 1 + d.length();
  if (xgrad::element_count(shape) == 0) return;
  const Name src = is_product ? d.within(d.numbers(shape), {0.5, 1.5}) : d.numbers(shape);
  if (reduce == "amax" || reduce == "amin") {
    std::vector<double> all(d.value(x).storage().begin(), d.value(x).storage().end());
    all.insert(all.end(), d.value(src).storage().begin(), d.value(src).storage().end());
    std::sort(all.begin(), all.end());
    const double near = all.size() > 1000 ? 1e-5 : 1e-2;
    for (std::size_t i = 1; i < all.size(); ++i)
      if (all[i] - all[i - 1] < near) return;
  }
  d.call("scatter_reduce", {x, d.ids(shape, length), src},
         {{"dim", dim}, {"reduce", reduce}, {"include_self", d.chance(0.5)}});
}

void draw_index_add(Drawing& d) {
  const auto [x, dim, length] = d.cut();
  if (length == 0) return;
  const std::size_t count = d.length();
  const Shape& shape = d.shape(x);
  const auto axis = static_cast<std::size_t>(dim < 0 ? dim + std::ssize(shape) : dim);
  const Name source = d.numbers(with(shape, axis, count));
  d.call("index_add", {x, d.ids({count}, length), source}, {{"dim", dim}});
}

/// Of several values for one place PyTorch says nothing, unless they are added.
void draw_index_put(Drawing& d) {
  const Name x = d.numbers(1);
  const Shape shape = d.shape(x);
  if (shape[0] == 0) return;
  const bool accumulate = d.chance(0.6);
  if (accumulate && shape.size() > 1 && shape[1] > 0 && d.chance(0.5)) {
    const std::size_t count = d.length();
    Shape values(shape.begin() + 1, shape.end());
    values[0] = count;
    d.call("index_put",
           {x, d.numbers(d.narrowed(values)), d.ids({count}, shape[0]),
            d.ids({d.chance(0.5) ? count : 1}, shape[1])},
           {{"accumulate", true}});
    return;
  }
  std::vector<std::ptrdiff_t> order = d.order(shape[0]);
  order.resize(1 + d.below(shape[0]));
  Ids rows = Ids::from_shape({order.size()});
  std::copy(order.begin(), order.end(), rows.data());
  const Name values = d.numbers(d.narrowed(with(shape, 0, order.size())));
  d.call("index_put", {x, values, d.leaf({{{}, std::move(rows)}})}, {{"accumulate", accumulate}});
}

void draw_masked_select(Drawing& d) {
  const Name x = d.numbers();
  d.call("masked_select", {x, d.mask(d.narrowed(d.shape(x)))});
}

void draw_one_hot(Drawing& d) {
  const std::size_t classes = 1 + d.below(5);
  d.call("one_hot", {d.ids({1 + d.length()}, classes)},
         {{"num_classes", static_cast<std::ptrdiff_t>(classes)}});
}

const Draws draws{{"scatter", draw_scatter},         {"scatter_reduce", draw_scatter_reduce},
                  {"scatter_add", draw_scatter_add}, {"index_add", draw_index_add},
                  {"index_put", draw_index_put},     {"masked_select", draw_masked_select},
                  {"one_hot", draw_one_hot}};

TEST(ScatterTest, WhatIsReplacedLeavesNoNan) {
  const Variable<float> x(Array<float>{nan, 1, inf}, true), v(Array<float>{5, 6, nan, 7}, true);
  const Variable<float> y = index_put(x, {ids_of({4}, {0, 2, 1, 1})}, v);
  EXPECT_EQ(y.value(), (Array<float>{5, 7, 6}));
  y.backward(Variable<float>(Array<float>{nan, 2, 3}));
  EXPECT_EQ(x.grad().value(), (Array<float>{0, 0, 0}));
  EXPECT_EQ(v.grad().value()(1), 3);
  EXPECT_EQ(v.grad().value()(2), 0);
  EXPECT_EQ(v.grad().value()(3), 2);
}

TEST(ScatterTest, EqualExtremesShareTheGradientEvenly) {
  const Variable<double> x(Array<double>{2, 3, 0}, true), src(Array<double>{2, 2, nan}, true);
  const Ids index = ids_of({3}, {0, 0, 2});
  for (const bool include_self : {true, false}) {
    const Variable<double> y =
        scatter_reduce(x, 0, index, src, xgrad::ScatterReduction::amax, {.include_self = include_self});
    expect_near(y.value(), Array<double>{2, 3, nan}, 0, "amax");
    const auto grads = grad(sum(y), {x, src});
    const double share = include_self ? 1.0 / 3 : 0.5;
    expect_near(grads[0].value(), Array<double>{include_self ? share : 0, 1, 0}, 1e-15, "dx");
    expect_near(grads[1].value(), Array<double>{share, share, 1}, 1e-15, "dsrc");
  }
}

TEST(ScatterTest, DerivativesOfProductsAreRightBesideZeros) {
  const Variable<double> x(Array<double>{2, 3, 0}, true), src(Array<double>{0, 5, 0, 7}, true);
  const auto f = [](const std::vector<Variable<double>>& in) {
    return scatter_reduce(in[0], 0, ids_of({4}, {0, 0, 2, 2}), in[1], xgrad::ScatterReduction::prod);
  };
  EXPECT_EQ(f({x, src}).value(), (Array<double>{0, 3, 0}));
  const auto grads = grad(sum(f({x, src})), {x, src});
  EXPECT_EQ(grads[0].value(), (Array<double>{0, 1, 0}));
  EXPECT_EQ(grads[1].value(), (Array<double>{10, 0, 0, 0}));
  EXPECT_TRUE(xgrad::gradcheck(f, {x, src}));
  EXPECT_TRUE(xgrad::gradgradcheck(f, {x, src}));
}

TEST(ScatterTest, OneHot) {
  EXPECT_EQ(xgrad::one_hot(ids_of({3}, {2, 0, 1})), ids_of({3, 3}, {0, 0, 1, 1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(xgrad::one_hot(ids_of({1, 2}, {1, 1}), 3), ids_of({1, 2, 3}, {0, 1, 0, 0, 1, 0}));
  EXPECT_EQ(xgrad::one_hot(ids_of({}, {1}), 2), ids_of({2}, {0, 1}));
  EXPECT_EQ(xgrad::one_hot(ids_of({0}, {}), 2), ids_of({0, 2}, {}));
  EXPECT_EQ(message_of<IndexError>([] { xgrad::one_hot(ids_of({1}, {3}), 3); }),
            "one_hot: index must be in [0, 3), got 3");
  EXPECT_EQ(message_of<IndexError>([] { xgrad::one_hot(ids_of({1}, {-5})); }),
            "one_hot: index must be in [0, 0), got -5");
  EXPECT_EQ(message_of<ValueError>([] { xgrad::one_hot(ids_of({1}, {0}), 0); }),
            "one_hot: num_classes must be at least 1, got 0");
  EXPECT_EQ(message_of<ValueError>([] { xgrad::one_hot(ids_of({0}, {})); }),
            "one_hot: num_classes must be given if ids is empty, got ids (0)");
}

}  // namespace xgrad_tests::scatter_rows
