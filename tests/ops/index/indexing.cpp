// What there is to test of indexing.
#include <xgrad/ops/index/indexing.hpp>

#include <limits>
#include <tuple>

#include <gtest/gtest.h>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::indexing_rows {

using naive::at, naive::generated, naive::without, naive::Arguments;

Reference naive_select(std::size_t axis, std::size_t index) {
  return [axis, index](const Arguments& x) {
    return generated(without(x[0].shape(), axis), [&](const Shape& place) {
      Shape source = place;
      source.insert(source.begin() + static_cast<std::ptrdiff_t>(axis), index);
      return at(x[0], source);
    });
  };
}

Op select_op() {
  Op op{"indexing.select"};
  struct Sample {
    Shape shape;
    int dim;
    std::ptrdiff_t index;
    std::size_t axis, position;
  };
  for (const auto& [shape, dim, index, axis, position] :
       {Sample{{2, 3}, 0, 1, 0, 1}, Sample{{2, 3}, -1, -3, 1, 0}, Sample{{2, 3, 4}, 1, 2, 1, 2},
        Sample{{17}, 0, -1, 0, 16}, Sample{{3, 0}, 0, 1, 0, 1}, Sample{{1}, 0, 0, 0, 0}})
    op.cases.push_back(make_case(
        {shape}, [dim = dim, index = index](const auto& x) { return xgrad::select(x[0], dim, index); },
        naive_select(axis, position)));
  op.large = {
      make_case(
          {{3, 517, 403}}, [](const auto& x) { return xgrad::select(x[0], 0, 1); }, naive_select(0, 1)),
      make_case(
          {{517, 2, 403}}, [](const auto& x) { return xgrad::select(x[0], 1, 1); }, naive_select(1, 1)),
      make_case(
          {{140001, 2}}, [](const auto& x) { return xgrad::select(x[0], 1, 1); }, naive_select(1, 1))};
  op.errors = {
      error<IndexError>("select: index 3 is out of range for axis 1 of x (2, 3)",
                        [] { xgrad::select(x(2, 3), 1, 3); }),
      error<IndexError>("select: index -3 is out of range for axis 0 of x (2, 3)",
                        [] { xgrad::select(x(2, 3), 0, -3); }),
      error<IndexError>("select: index 0 is out of range for axis 0 of x (0, 3)",
                        [] { xgrad::select(x(0, 3), 0, 0); }),
      error<IndexError>("select: axis 2 is out of range for x (2, 3)", [] { xgrad::select(x(2, 3), 2, 0); })};
  return op;
}

Op slice_op() {
  Op op{"indexing.slice"};
  constexpr std::ptrdiff_t open = std::numeric_limits<std::ptrdiff_t>::max();
  struct Sample {
    Shape shape;
    int dim;
    std::ptrdiff_t start, end, step;
    std::size_t axis, first, count;
  };
  for (const auto& [shape, dim, start, end, step, axis, first, count] :
       {Sample{{5}, 0, 1, 4, 1, 0, 1, 3}, Sample{{5}, 0, 0, open, 2, 0, 0, 3},
        Sample{{5}, 0, 1, open, 2, 0, 1, 2}, Sample{{5}, 0, -2, open, 1, 0, 3, 2},
        Sample{{5}, 0, 0, -1, 3, 0, 0, 2}, Sample{{5}, 0, -100, 100, 1, 0, 0, 5},
        Sample{{5}, 0, 3, 2, 1, 0, 0, 0}, Sample{{5}, 0, 9, open, 1, 0, 0, 0},
        Sample{{5}, 0, 1, open, open, 0, 1, 1}, Sample{{2, 5, 3}, 1, 1, 4, 2, 1, 1, 2},
        Sample{{2, 17}, -1, 3, 16, 3, 1, 3, 5}, Sample{{0, 3}, 0, 0, open, 1, 0, 0, 0}})
    op.cases.push_back(make_case(
        {shape},
        [=, dim = dim, start = start, end = end, step = step](const auto& x) {
          return xgrad::slice(x[0], dim, start, end, step);
        },
        naive::slice(axis, first, count, static_cast<std::size_t>(step))));
  for (const auto& [shape, axis, step] : {std::tuple<Shape, std::size_t, std::size_t>{plane, 0, 1},
                                          {plane, 1, 1},
                                          {{517, 806}, 1, 2},
                                          {wide, 1, 1},
                                          {{2, 280001}, 1, 2},
                                          {tall, 0, 1}}) {
    const std::size_t count = (shape[axis] - 1 + step - 1) / step;
    op.large.push_back(make_case(
        {shape},
        [dim = static_cast<int>(axis), by = static_cast<std::ptrdiff_t>(step)](const auto& x) {
          return xgrad::slice(x[0], dim, 1, open, by);
        },
        naive::slice(axis, 1, count, step)));
  }
  op.errors = {
      error<ValueError>("slice: step must be at least 1, got 0", [] { xgrad::slice(x(5), 0, 0, 5, 0); }),
      error<ValueError>("slice: step must be at least 1, got -1", [] { xgrad::slice(x(5), 0, 0, 5, -1); }),
      error<IndexError>("slice: axis 1 is out of range for x (5)", [] { xgrad::slice(x(5), 1, 0); })};
  return op;
}

Op narrow_op() {
  Op op{"indexing.narrow"};
  struct Sample {
    Shape shape;
    int dim;
    std::ptrdiff_t start, length;
    std::size_t axis, first;
  };
  for (const auto& [shape, dim, start, length, axis, first] :
       {Sample{{5}, 0, 1, 3, 0, 1}, Sample{{2, 5}, -1, -2, 2, 1, 3}, Sample{{2, 5, 3}, 1, 5, 0, 1, 5}})
    op.cases.push_back(make_case(
        {shape},
        [=, dim = dim, start = start, length = length](const auto& x) {
          return xgrad::narrow(x[0], dim, start, length);
        },
        naive::slice(axis, first, static_cast<std::size_t>(length), 1)));
  op.large = {make_case(
      {plane}, [](const auto& x) { return xgrad::narrow(x[0], 1, 3, 390); }, naive::slice(1, 3, 390, 1))};
  const auto refused = [](std::ptrdiff_t start, std::ptrdiff_t length) {
    return error<IndexError>("narrow: start " + std::to_string(start) + " and length " +
                                 std::to_string(length) + " are out of range for axis 0 of x (5)",
                             [=] { xgrad::narrow(x(5), 0, start, length); });
  };
  constexpr std::ptrdiff_t huge = std::numeric_limits<std::ptrdiff_t>::max();
  op.errors = {refused(4, 2),  refused(-6, 1),   refused(6, 0),
               refused(0, -1), refused(1, huge), refused(huge, 1)};
  return op;
}

struct IndexSample {
  Shape shape;
  int dim;
  Ids index;
  std::size_t axis;  // dim, counted from the front
};

Op index_select_op() {
  Op op{"indexing.index_select"};
  for (const auto& [shape, dim, index, axis] :
       std::vector<IndexSample>{{{4}, 0, ids_of({3}, {3, 0, 3}), 0},
                                {{4, 3}, 0, ids_of({2}, {2, 2}), 0},
                                {{2, 4, 3}, 1, ids_of({5}, {3, 0, 1, 1, 2}), 1},
                                {{2, 3}, -1, ids_of({}, {1}), 1},
                                {{2, 3}, 0, ids_of({0}, {}), 0}}) {
    Shape result = shape;
    result[axis] = index.size();
    op.cases.push_back(make_case(
        {shape}, [dim = dim, index = index](const auto& x) { return xgrad::index_select(x[0], dim, index); },
        naive::taken(result, [axis = axis, index = index](Shape at) {
          at[axis] = static_cast<std::size_t>(index.data()[at[axis]]);
          return at;
        })));
  }
  for (const auto& [shape, axis] : {std::pair<Shape, std::size_t>{plane, 0}, {plane, 1}, {wide, 1}}) {
    op.large.push_back(late_case({shape}, [shape = shape, axis = axis] {
      const Ids index = scattered_ids({shape[axis] + 7}, shape[axis]);
      return make_case(
          {},
          [dim = static_cast<int>(axis), index](const auto& x) {
            return xgrad::index_select(x[0], dim, index);
          },
          naive::taken(naive::with(shape, axis, index.size()), [axis, index](Shape at) {
            at[axis] = static_cast<std::size_t>(index(at[axis]));
            return at;
          }));
    }));
  }
  for (const Ids& index : {ids_of({}, {0}), ids_of({1}, {0})}) {
    op.cases.push_back(make_case(
        {{}}, [index](const auto& x) { return xgrad::index_select(x[0], -1, index); },
        naive::map([](double x) { return x; })));
  }
  op.errors = {error<IndexError>("index_select: index must be in [0, 1), got 1",
                                 [] { xgrad::index_select(x(), 0, ids_of({1}, {1})); }),
               error<IndexError>("index_select: axis 0 is out of range for x ()",
                                 [] {
                                   xgrad::index_select(x(), 0, ids_of({2}, {0, 0}));
                                 }),
               error<IndexError>("index_select: index must be in [0, 2), got 2",
                                 [] { xgrad::index_select(x(2, 3), 0, ids_of({1}, {2})); }),
               error<IndexError>("index_select: index must be in [0, 3), got -1",
                                 [] {
                                   xgrad::index_select(x(2, 3), 1, ids_of({2}, {0, -1}));
                                 }),
               error<IndexError>("index_select: axis 2 is out of range for x (2, 3)",
                                 [] { xgrad::index_select(x(2, 3), 2, ids_of({1}, {0})); }),
               error<ShapeError>("index_select: index must have at most one axis, got (1, 1)", [] {
                 xgrad::index_select(x(2, 3), 0, ids_of({1, 1}, {0}));
               })};
  return op;
}

Op gather_op() {
  Op op{"indexing.gather"};
  for (const auto& [shape, dim, index, axis] :
       std::vector<IndexSample>{{{4}, 0, ids_of({3}, {3, 0, 3}), 0},
                                {{2, 3}, 1, ids_of({2, 4}, {0, 2, 2, 1, 1, 1, 0, 2}), 1},
                                {{3, 2}, 0, ids_of({1, 2}, {2, 0}), 0},
                                {{2, 3, 2}, -1, ids_of({1, 2, 1}, {1, 0}), 2},
                                {{2, 3}, 0, ids_of({0, 3}, {}), 0}}) {
    op.cases.push_back(make_case(
        {shape}, [dim = dim, index = index](const auto& x) { return xgrad::gather(x[0], dim, index); },
        naive::taken(index.shape(), [axis = axis, index = index](Shape at) {
          std::size_t offset = 0;
          for (std::size_t k = 0; k < at.size(); ++k) offset = offset * index.shape()[k] + at[k];
          at[axis] = static_cast<std::size_t>(index.data()[offset]);
          return at;
        })));
  }
  op.cases.push_back(make_case(
      {{}}, [](const auto& x) { return xgrad::gather(x[0], 0, ids_of({}, {0})); },
      naive::map([](double x) { return x; })));
  for (const auto& [shape, dim, index] :
       {std::tuple(Shape{}, 0, ids_of({2}, {0, 0})), std::tuple(Shape{3}, -1, ids_of({}, {2})),
        std::tuple(Shape{2, 3}, 1, ids_of({0}, {})), std::tuple(Shape{2, 3}, 0, ids_of({5, 0, 7}, {})),
        std::tuple(Shape{}, 0, ids_of({0}, {}))}) {
    op.cases.push_back(make_case(
        {shape}, [dim = dim, index = index](const auto& x) { return xgrad::gather(x[0], dim, index); },
        naive::taken(index.shape(), [scalar = shape.empty(), index = index](const Shape& at) {
          const std::int64_t id = index.data()[at.empty() ? 0 : at[0]];
          return scalar ? Shape{} : Shape{static_cast<std::size_t>(id)};
        })));
  }
  for (const auto& [shape, axis] : {std::pair<Shape, std::size_t>{plane, 0},
                                    {plane, 1},
                                    {{5, 129, 331}, 1},
                                    {long_vector, 0},
                                    {wide, 1},
                                    {wide, 0}}) {
    op.large.push_back(late_case({shape}, [shape = shape, axis = axis] {
      const Ids index = scattered_ids(shape, shape[axis]);
      return make_case(
          {},
          [dim = static_cast<int>(axis), index](const auto& x) { return xgrad::gather(x[0], dim, index); },
          naive::taken(shape, [axis, index](Shape place) {
            place[axis] = static_cast<std::size_t>(at(index, place));
            return place;
          }));
    }));
  }
  const std::string shapes =
      "gather: index must have the rank of x and be no longer than x except along axis 0, got x (2, 3) ";
  op.errors = {
      error<IndexError>("gather: index must be in [0, 2), got 4294967297",
                        [] {
                          xgrad::gather(x(2, 3), 0, ids_of({1, 1}, {4294967297}));
                        }),
      error<IndexError>("gather: axis 2 is out of range for x (2, 3)",
                        [] { xgrad::gather(x(2, 3), 2, ids_of({0}, {})); }),
      error<IndexError>("gather: index must be in [0, 1), got 1",
                        [] { xgrad::gather(x(), 0, ids_of({1}, {1})); }),
      error<IndexError>("gather: index must be in [0, 2), got 2",
                        [] {
                          xgrad::gather(x(2, 3), 0, ids_of({1, 1}, {2}));
                        }),
      error<ShapeError>(shapes + "and index (1)", [] { xgrad::gather(x(2, 3), 0, ids_of({1}, {0})); }),
      error<ShapeError>(shapes + "and index (1, 4)", [] {
        xgrad::gather(x(2, 3), 0, ids_of({1, 4}, {0, 0, 0, 0}));
      })};
  return op;
}

/// The elements whose places along the axes are these.
Reference naive_index(std::vector<std::vector<std::size_t>> places, Shape result) {
  return [=](const Arguments& x) {
    naive::Numbers y = naive::Numbers::from_shape(result);
    Shape lengths;
    for (const auto& along : places) lengths.push_back(along.size());
    std::size_t i = 0;
    naive::for_each_index(lengths, [&](Shape at) {
      for (std::size_t axis = 0; axis < at.size(); ++axis) at[axis] = places[axis][at[axis]];
      y.data()[i++] = naive::at(x[0], at);
    });
    return y;
  };
}

Op index_op() {
  using xgrad::all, xgrad::range, xgrad::index;
  Op op{"indexing.index"};
  op.cases = {
      make_case(
          {{3, 4, 5}}, [](const auto& x) { return index(x[0], 1, all, range(1, 3)); },
          naive_index({{1}, {0, 1, 2, 3}, {1, 2}}, {4, 2})),
      make_case(
          {{3, 4, 5}}, [](const auto& x) { return index(x[0], -1, std::size_t{2}, -5); },
          naive_index({{2}, {2}, {0}}, {})),
      make_case(
          {{3, 4}}, [](const auto& x) { return index(x[0], range(-2, 3), range(0, 4, 3)); },
          naive_index({{1, 2}, {0, 3}}, {2, 2})),
      make_case(
          {{3, 4}}, [](const auto& x) { return index(x[0], range(1)); },
          naive_index({{1, 2}, {0, 1, 2, 3}}, {2, 4})),
      make_case(
          {{3, 2}}, [](const auto& x) { return index(x[0], all, all); },
          naive_index({{0, 1, 2}, {0, 1}}, {3, 2})),
      make_case(
          {{2}}, [](const auto& x) { return index(x[0]); }, naive_index({{0, 1}}, {2})),
      make_case(
          {{}}, [](const auto& x) { return index(x[0]); }, naive::map([](double x) { return x; })),
      make_case(
          {{3, 2}}, [](const auto& x) { return index(x[0], range(2, 2), 1); }, naive_index({{}, {1}}, {0})),
      make_case(
          {{4, 3, 5, 6}},
          [](const auto& x) { return index(x[0], range(1, -1), -1, range(0, 5, 2), range(9, 2)); },
          naive_index({{1, 2}, {2}, {0, 2, 4}, {}}, {2, 3, 0})),
      make_case(
          {{4, 3, 5, 6}}, [](const auto& x) { return index(x[0], range(1, 4, 2), 1, range(3), 4); },
          naive_index({{1, 3}, {1}, {3, 4}, {4}}, {2, 2}))};
  op.large = {make_case(
      {plane}, [](const auto& x) { return index(x[0], range(1, 517), range(0, 403, 1)); },
      naive::slice(0, 1, 516, 1))};
  op.errors = {
      error<IndexError>("index: there must be no more items than axes, got 3 for x (2, 3)",
                        [] { index(x(2, 3), 0, all, 1); }),
      error<IndexError>("index: index 2 is out of range for axis 0 of x (2, 3)", [] { index(x(2, 3), 2); }),
      error<IndexError>("index: index -4 is out of range for axis 1 of x (2, 3)",
                        [] { index(x(2, 3), 0, -4); }),
      error<ValueError>("index: step must be at least 1, got 0", [] { index(x(2, 3), range(0, 2, 0)); })};
  return op;
}

Op repeat_interleave_op() {
  Op op{"indexing.repeat_interleave"};
  const auto sample = [](const Shape& shape, int dim, std::size_t axis, const Ids& repeats) {
    std::vector<std::size_t> from;
    for (std::size_t i = 0; i < shape[axis]; ++i)
      from.insert(from.end(), static_cast<std::size_t>(repeats.data()[repeats.size() == 1 ? 0 : i]), i);
    return make_case(
        {shape}, [=](const auto& x) { return xgrad::repeat_interleave(x[0], repeats, dim); },
        naive::taken(naive::with(shape, axis, from.size()), [=](Shape at) {
          at[axis] = from[at[axis]];
          return at;
        }));
  };
  op.cases = {sample({4}, 0, 0, ids_of({4}, {2, 0, 1, 3})), sample({2, 3}, -1, 1, ids_of({}, {2})),
              sample({2, 3}, 0, 0, ids_of({2}, {0, 3})),    sample({3, 2, 2}, 1, 1, ids_of({1}, {2})),
              sample({2, 3}, 0, 0, ids_of({}, {0})),        sample({0, 3}, 1, 1, ids_of({3}, {1, 2, 0}))};
  op.cases.push_back(make_case(
      {{2, 2}}, [](const auto& x) { return xgrad::repeat_interleave(x[0], 2); },
      [](const std::vector<Array<double>>& x) {
        return naive::generated({8}, [&](const Shape& at) { return x[0].data()[at[0] / 2]; });
      }));
  op.cases.push_back(make_case(
      {{}}, [](const auto& x) { return xgrad::repeat_interleave(x[0], 2, 0); },
      [](const std::vector<Array<double>>& x) { return naive::filled({2}, x[0]()); }));
  op.large = {sample(plane, 0, 0, ids_of({}, {3})), sample(plane, 1, 1, scattered_ids({403}, 4))};
  const std::string rule =
      "repeat_interleave: repeats must be one number, or one for each of the 2 elements along axis 0 of x "
      "(2, "
      "3), got ";
  op.errors = {error<IndexError>("repeat_interleave: axis 2 is out of range for x (2, 3)",
                                 [] { xgrad::repeat_interleave(x(2, 3), 1, 2); }),
               error<ShapeError>(rule + "(3)",
                                 [] {
                                   xgrad::repeat_interleave(x(2, 3), ids_of({3}, {1, 1, 1}), 0);
                                 }),
               error<ShapeError>(rule + "(1, 1)",
                                 [] {
                                   xgrad::repeat_interleave(x(2, 3), ids_of({1, 1}, {1}), 0);
                                 }),
               error<ValueError>("repeat_interleave: repeats must not be negative, got -1", [] {
                 xgrad::repeat_interleave(x(2, 3), ids_of({2}, {1, -1}), 0);
               })};
  return op;
}

const Rows rows([] {
  return std::vector<Op>{select_op(), slice_op(), narrow_op(),           index_select_op(),
                         gather_op(), index_op(), repeat_interleave_op()};
});

const Conformance conformance{
    {"slice",
     [](const auto& c) {
       const std::vector<int> dims = c.ints("dims");
       const auto starts = c.list("starts", dims.size()), ends = c.list("ends", dims.size()),
                  steps = c.list("steps", dims.size());
       auto y = c.x();
       for (std::size_t i = 0; i < dims.size(); ++i) y = slice(y, dims[i], starts[i], ends[i], steps[i]);
       return y;
     }},
    {"narrow", [](const auto& c) { return narrow(c.x(), c.dim(), c.integer("start"), c.integer("length")); }},
    {"select", [](const auto& c) { return select(c.x(), c.dim(), c.integer("index")); }},
    {"index_select", [](const auto& c) { return index_select(c.x(), c.dim(), c.ids(1)); }},
    {"gather", [](const auto& c) { return gather(c.x(), c.dim(), c.ids(1)); }},
    {"repeat_interleave", [](const auto& c) { return repeat_interleave(c.x(), c.ids(1), c.dim()); }},
    {"nonzero", []<class T>(const Call<T>& c) { return as_numbers<T>(xgrad::nonzero(c.mask(0))); }},
    {"index", [](const auto& c) {
       const auto starts = c.list("starts"), ends = c.list("ends", starts.size()),
                  steps = c.list("steps", starts.size());
       std::vector<xgrad::Index> items;
       for (std::size_t i = 0; i < starts.size(); ++i) {
         if (steps[i] == 0) {  // an element
           items.emplace_back(starts[i]);
         } else {
           items.emplace_back(xgrad::range(starts[i], ends[i], steps[i]));
         }
       }
       return index(c.x(), items);
     }}};

void draw_select(Drawing& d) {
  const auto [x, dim, length] = d.cut();
  if (length == 0) return;
  const auto index = static_cast<std::ptrdiff_t>(d.below(2 * length)) - static_cast<std::ptrdiff_t>(length);
  d.call("select", {x}, {{"dim", dim}, {"index", index}});
}

void draw_narrow(Drawing& d) {
  const auto [x, dim, length] = d.cut();
  const std::size_t start = d.below(length + 1);
  const bool from_end = start < length && d.chance(0.5);
  d.call("narrow", {x},
         {{"dim", dim},
          {"start", static_cast<std::ptrdiff_t>(start) - static_cast<std::ptrdiff_t>(from_end ? length : 0)},
          {"length", static_cast<std::ptrdiff_t>(d.below(length - start + 1))}});
}

void draw_slice(Drawing& d) {
  const auto [x, dim, length] = d.cut();
  const auto bound = [&, length = length] {
    return static_cast<std::ptrdiff_t>(d.below(3 * length + 3)) - static_cast<std::ptrdiff_t>(length + 1);
  };
  const std::ptrdiff_t start = d.chance(0.4) ? 0 : bound();
  const std::ptrdiff_t end = d.chance(0.4) ? std::numeric_limits<std::ptrdiff_t>::max() : bound();
  d.call("slice", {x},
         {{"dims", std::vector{dim}},
          {"starts", std::vector{start}},
          {"ends", std::vector{end}},
          {"steps", std::vector{static_cast<std::ptrdiff_t>(1 + d.below(3))}}});
}

void draw_index_select(Drawing& d) {
  const auto [x, dim, length] = d.cut();
  if (length == 0) return;
  const Name index = d.ids(d.chance(0.15) ? Shape{} : Shape{d.length()}, length);
  d.call("index_select", {x, index}, {{"dim", dim}});
}

void draw_repeat_interleave(Drawing& d) {
  const auto [x, dim, length] = d.cut();
  d.call("repeat_interleave", {x, d.ids(d.chance(0.5) ? Shape{} : Shape{length}, 3)}, {{"dim", dim}});
}

void draw_gather(Drawing& d) {
  const auto [x, dim, length] = d.cut();
  if (length == 0) return;
  Shape shape = d.shape(x);
  for (std::size_t& other : shape)
    if (d.chance(0.3)) other = d.below(other + 1);
  shape[static_cast<std::size_t>(dim < 0 ? dim + std::ssize(shape) : dim)] = d.length();
  d.call("gather", {x, d.ids(shape, length)}, {{"dim", dim}});
}

void draw_index(Drawing& d) {
  const Name x = d.numbers();
  std::vector<std::ptrdiff_t> starts, ends, steps;
  for (const std::size_t length : d.shape(x)) {
    if (d.chance(0.2)) break;
    const auto n = static_cast<std::ptrdiff_t>(length);
    const bool element = n > 0 && d.chance(0.4);
    starts.push_back(element ? static_cast<std::ptrdiff_t>(d.below(2 * length)) - n
                             : static_cast<std::ptrdiff_t>(d.below(length + 1)));
    ends.push_back(n - static_cast<std::ptrdiff_t>(d.below(2)));
    steps.push_back(element ? 0 : 1 + static_cast<std::ptrdiff_t>(d.below(2)));
  }
  d.call("index", {x}, {{"starts", starts}, {"ends", ends}, {"steps", steps}});
}

const Draws draws{{"index", draw_index},
                  {"select", draw_select},
                  {"narrow", draw_narrow},
                  {"slice", draw_slice},
                  {"repeat_interleave", draw_repeat_interleave},
                  {"nonzero", [](Drawing& d) { d.call("nonzero", {d.mask(d.shape())}); }},
                  {"index_select", draw_index_select},
                  {"gather", draw_gather}};

TEST(IndexingTest, PlacesOfWhatIsNotZero) {
  EXPECT_EQ(xgrad::nonzero(mask_of({2, 3}, {0, 1, 0, 0, 1, 1})), ids_of({3, 2}, {0, 1, 1, 1, 1, 2}));
  EXPECT_EQ(xgrad::nonzero(Variable<float>(Array<float>{nan, 0, -0.0F, 2})), ids_of({2, 1}, {0, 3}));
  EXPECT_EQ(xgrad::nonzero(mask_of({}, {1})), ids_of({1, 0}, {}));
  EXPECT_EQ(xgrad::nonzero(mask_of({2, 0}, {})), ids_of({0, 2}, {}));
}

}  // namespace xgrad_tests::indexing_rows
