// What there is to test of the ops that change shapes.
#include <xgrad/ops/shape/shapes.hpp>

#include <limits>

#include <gtest/gtest.h>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::shapes_rows {

using naive::at, naive::generated, naive::with, naive::without, naive::Numbers, naive::Arguments;

Reference naive_cat(std::size_t axis) {
  return [axis](const Arguments& x) {
    std::size_t length = 0;
    for (const Numbers& part : x) length += part.shape()[axis];
    return generated(with(x[0].shape(), axis, length), [&](const Shape& index) {
      Shape source = index;
      std::size_t part = 0;
      while (source[axis] >= x[part].shape()[axis]) source[axis] -= x[part++].shape()[axis];
      return at(x[part], source);
    });
  };
}

Reference naive_stack(std::size_t axis) {
  return [axis](const Arguments& x) {
    Shape shape = x[0].shape();
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), x.size());
    return generated(shape, [&](const Shape& index) { return at(x[index[axis]], without(index, axis)); });
  };
}

/// A large array in another shape.
template <class F>
std::vector<Case> large_reshaped(const Shape& from, const Shape& to, const F& f) {
  return {make_case(
      {from}, [f](const auto& x) { return f(x[0]); }, naive::reshape(to))};
}

/// A row whose results are x in another shape.
template <class F>
void add_reshaped(Op& op, const Shape& from, const Shape& to, const F& f) {
  op.cases.push_back(make_case(
      {from}, [f](const auto& x) { return f(x[0]); }, naive::reshape(to)));
}

Op reshape_op() {
  Op op{"shapes.reshape"};
  struct Sample {
    Shape from;
    Dims to;
    Shape expected;
  };
  for (const auto& [from, to, expected] :
       {Sample{{2, 3}, {3, 2}, {3, 2}}, Sample{{2, 3}, -1, {6}}, Sample{{2, 3, 4}, {4, -1}, {4, 6}},
        Sample{{1}, Shape{}, {}}, Sample{{}, {1, 1}, {1, 1}}, Sample{{0, 3}, {3, 0}, {3, 0}},
        Sample{{0, 3}, {-1, 3}, {0, 3}}, Sample{{17}, {17, 1}, {17, 1}}})
    op.cases.push_back(make_case(
        {from}, [to = to](const auto& x) { return xgrad::reshape(x[0], to); }, naive::reshape(expected)));
  op.large = large_reshaped(plane, {403, 517}, [](const auto& x) { return xgrad::reshape(x, {403, -1}); });
  const auto refused = [](std::string why, Dims shape) {
    return error<ShapeError>("reshape: " + why + ", got x (2, 3) and shape " + xgrad::to_string(shape),
                             [shape] { xgrad::reshape(x(2, 3), shape); });
  };
  constexpr std::ptrdiff_t huge = std::numeric_limits<std::ptrdiff_t>::max() / 2 + 1;
  op.errors = {refused("the number of elements must not change", {2, 4}),
               refused("the number of elements must not change", {4, -1}),
               refused("the number of elements must not change", {huge, huge}),
               refused("only one length can be -1", {-1, -1}),
               refused("a length must be at least 0, or -1 once", {-2, 3}),
               refused("-1 cannot be inferred beside a length of 0", {0, -1})};
  return op;
}

Op permute_op() {
  Op op{"shapes.permute"};
  struct Sample {
    Shape shape;
    Dims dims;
    Shape order;
  };
  for (const auto& [shape, dims, order] :
       {Sample{{2, 3}, {1, 0}, {1, 0}}, Sample{{2, 3, 4}, {1, 2, 0}, {1, 2, 0}},
        Sample{{2, 2, 2}, {2, 0, 1}, {2, 0, 1}}, Sample{{2, 3, 4}, {0, -1, 1}, {0, 2, 1}},
        Sample{{2, 1, 3, 2}, {3, 1, 0, 2}, {3, 1, 0, 2}}, Sample{{}, Shape{}, {}},
        Sample{{0, 3}, {1, 0}, {1, 0}}, Sample{{17, 9}, {1, 0}, {1, 0}}})
    op.cases.push_back(make_case(
        {shape}, [dims = dims](const auto& x) { return xgrad::permute(x[0], dims); }, naive::permute(order)));
  // squares that are transposed, rows, single elements
  for (const auto& [shape, order] : {std::pair<Shape, Shape>{plane, {1, 0}},
                                     {{7, 60, 6, 67}, {0, 2, 1, 3}},
                                     {{60, 7, 6, 67}, {1, 3, 2, 0}},
                                     {{3, 140001}, {1, 0}},
                                     {{5, 129, 331}, {0, 2, 1}},
                                     {{3000, 3, 5, 7}, {0, 3, 2, 1}},
                                     {{2, 3, 70001}, {1, 0, 2}}})
    op.large.push_back(make_case(
        {shape}, [order = order](const auto& x) { return xgrad::permute(x[0], order); },
        naive::permute(order)));
  op.errors = {
      error<ShapeError>("permute: dims must name every axis of x once, got x (2, 3) and dims (0)",
                        [] { xgrad::permute(x(2, 3), 0); }),
      error<ShapeError>("permute: dims must name every axis of x once, got x (2, 3) and dims (1, -1)",
                        [] {
                          xgrad::permute(x(2, 3), {1, -1});
                        }),
      error<IndexError>("permute: axis 2 is out of range for x (2, 3)", [] {
        xgrad::permute(x(2, 3), {0, 2});
      })};
  return op;
}

Op transpose_op() {
  const auto f = [](const auto& x) { return xgrad::transpose(x[0], -1, 0); };
  Op op{"shapes.transpose", make_cases({{{2, 3}}, {{17, 9}}, {{0, 3}}}, f, naive::permute({1, 0})), {}};
  op.cases.push_back(make_case({{2, 3, 4}}, f, naive::permute({2, 1, 0})));
  op.cases.push_back(make_case({{5}}, f, naive::permute({0})));
  op.large = make_cases({{tall}}, f, naive::permute({1, 0}));
  op.errors = {
      error<IndexError>("transpose: axis 2 is out of range for x (2, 3)",
                        [] { xgrad::transpose(x(2, 3), 0, 2); }),
      error<IndexError>("transpose: axis 0 is out of range for x ()", [] { xgrad::transpose(x(), 0, 1); })};
  return op;
}

Op mt_op() {
  const auto f = [](const auto& x) { return xgrad::mT(x[0]); };
  Op op{"shapes.mT", make_cases({{{2, 3}}, {{17, 9}}, {{0, 3}}}, f, naive::permute({1, 0})), {}};
  op.cases.push_back(make_case({{2, 3, 4}}, f, naive::permute({0, 2, 1})));
  op.large = make_cases({{tall}}, f, naive::permute({1, 0}));
  op.errors = {error<ShapeError>("mT: x must have at least two axes, got (3)", [] { xgrad::mT(x(3)); })};
  return op;
}

Op concat_op() {
  Op op{"shapes.cat"};
  struct Sample {
    std::vector<Input> parts;
    int dim;
    std::size_t axis;
  };
  for (const auto& [parts, dim, axis] :
       {Sample{{{2, 3}, {1, 3}}, 0, 0}, Sample{{{2, 3}, {2, 1}, {2, 2}}, -1, 1},
        Sample{{{2, 2, 3}, {2, 2, 3}}, 1, 1}, Sample{{{3}}, 0, 0}, Sample{{{2, 3}, {0, 3}, {1, 3}}, 0, 0},
        Sample{{{0, 3}, {0, 2}}, 1, 1}, Sample{{{17}, {17}}, 0, 0}})
    op.cases.push_back(make_case(
        parts, [dim = dim](const auto& x) { return xgrad::cat(x, dim); }, naive_cat(axis)));
  for (const auto& [parts, axis] : {std::pair<std::vector<Input>, std::size_t>{{{517, 203}, {517, 300}}, 1},
                                    {{{517, 403}, {100, 403}}, 0},
                                    {{{2, 140001}, {2, 5}, {2, 70001}}, 1},
                                    {{{70001, 3}, {70001, 1}}, 1},
                                    {{{50, 40, 70}, {50, 30, 70}}, 1}})
    op.large.push_back(make_case(
        parts, [dim = static_cast<int>(axis)](const auto& x) { return xgrad::cat(x, dim); },
        naive_cat(axis)));
  op.errors = {
      error<ShapeError>("cat: parts must agree in every axis but 0, got part 0 (2, 3) and part 1 (2, 4)",
                        [] {
                          xgrad::cat({x(2, 3), x(2, 4)});
                        }),
      error<ShapeError>("cat: parts must agree in every axis but 1, got part 0 (2, 3) and part 2 (3)",
                        [] {
                          xgrad::cat({x(2, 3), x(2, 4), x(3)}, 1);
                        }),
      error<ShapeError>("cat: parts need at least one axis, got part 0 ()", [] { xgrad::cat({x()}); }),
      error<IndexError>("cat: axis 2 is out of range for part 0 (2, 3)", [] { xgrad::cat({x(2, 3)}, 2); }),
      error<ValueError>("cat: parts must not be empty", [] { xgrad::cat(Inputs<float>{}); })};
  return op;
}

Op flatten_op() {
  Op op{"shapes.flatten"};
  add_reshaped(op, {2, 3, 4}, {24}, [](const auto& x) { return xgrad::flatten(x); });
  add_reshaped(op, {2, 3, 4}, {2, 12}, [](const auto& x) { return xgrad::flatten(x, 1); });
  add_reshaped(op, {2, 3, 4}, {6, 4}, [](const auto& x) { return xgrad::flatten(x, 0, -2); });
  add_reshaped(op, {2, 3}, {2, 3}, [](const auto& x) { return xgrad::flatten(x, 1, 1); });
  add_reshaped(op, {}, {1}, [](const auto& x) { return xgrad::flatten(x); });
  add_reshaped(op, {2, 0}, {0}, [](const auto& x) { return xgrad::flatten(x); });
  op.large =
      large_reshaped({2, 517, 203}, {1034, 203}, [](const auto& x) { return xgrad::flatten(x, 0, 1); });
  op.errors = {error<IndexError>("flatten: axis 2 is out of range for x (2, 3)",
                                 [] { xgrad::flatten(x(2, 3), 0, 2); }),
               error<ValueError>("flatten: start_dim must not come after end_dim, got 1 and 0 for x (2, 3)",
                                 [] { xgrad::flatten(x(2, 3), 1, 0); })};
  return op;
}

Op unsqueeze_op() {
  Op op{"shapes.unsqueeze"};
  add_reshaped(op, {2, 3}, {1, 2, 3}, [](const auto& x) { return xgrad::unsqueeze(x, 0); });
  add_reshaped(op, {2, 3}, {2, 3, 1}, [](const auto& x) { return xgrad::unsqueeze(x, -1); });
  add_reshaped(op, {2, 3}, {2, 1, 3}, [](const auto& x) { return xgrad::unsqueeze(x, -2); });
  add_reshaped(op, {}, {1}, [](const auto& x) { return xgrad::unsqueeze(x, 0); });
  op.large = large_reshaped(plane, {517, 1, 403}, [](const auto& x) { return xgrad::unsqueeze(x, 1); });
  op.errors = {error<IndexError>("unsqueeze: axis 3 is out of range for x with one more axis (2, 3, 1)",
                                 [] { xgrad::unsqueeze(x(2, 3), 3); })};
  return op;
}

Op squeeze_op() {
  Op op{"shapes.squeeze"};
  add_reshaped(op, {1, 2, 1, 3}, {2, 3}, [](const auto& x) { return xgrad::squeeze(x); });
  add_reshaped(op, {1, 1}, {}, [](const auto& x) { return xgrad::squeeze(x); });
  add_reshaped(op, {2, 1, 3}, {2, 3}, [](const auto& x) { return xgrad::squeeze(x, 1); });
  add_reshaped(op, {2, 1, 3}, {2, 1, 3}, [](const auto& x) { return xgrad::squeeze(x, -1); });
  add_reshaped(op, {}, {}, [](const auto& x) { return xgrad::squeeze(x, 0); });
  op.large = large_reshaped({517, 1, 403}, plane, [](const auto& x) { return xgrad::squeeze(x, 1); });
  op.errors = {
      error<IndexError>("squeeze: axis 2 is out of range for x (2, 3)", [] { xgrad::squeeze(x(2, 3), 2); })};
  return op;
}

Op expand_op() {
  Op op{"shapes.expand"};
  struct Sample {
    Shape from;
    Dims shape;
    Shape to;
  };
  for (const auto& [from, shape, to] :
       {Sample{{3, 1}, {3, 4}, {3, 4}}, Sample{{3, 1}, {2, -1, 4}, {2, 3, 4}}, Sample{{}, {2, 2}, {2, 2}},
        Sample{{1}, {0}, {0}}, Sample{{2, 3}, {-1, -1}, {2, 3}}})
    op.cases.push_back(make_case(
        {from}, [shape = shape](const auto& x) { return xgrad::expand(x[0], shape); },
        naive::broadcast_to(to)));
  op.large = {make_case(
      {{403}},
      [](const auto& x) {
        return xgrad::expand(x[0], {517, -1});
      },
      naive::broadcast_to(plane))};
  const auto refused = [](Dims shape) {
    return error<ShapeError>(
        "expand: x must broadcast to shape, got x (2, 1) and shape " + xgrad::to_string(shape),
        [shape] { xgrad::expand(x(2, 1), shape); });
  };
  op.errors = {refused({3, 3}), refused(2), refused({-1, 2, 1}), refused({2, -2})};
  return op;
}

Op stack_op() {
  Op op{"shapes.stack"};
  op.cases = {
      make_case(
          {{2, 3}, {2, 3}}, [](const auto& x) { return xgrad::stack(x); }, naive_stack(0)),
      make_case(
          {{2, 3}, {2, 3}, {2, 3}}, [](const auto& x) { return xgrad::stack(x, -1); }, naive_stack(2)),
      make_case(
          {{2, 3}, {2, 3}}, [](const auto& x) { return xgrad::stack(x, -2); }, naive_stack(1)),
      make_case(
          {{}, {}}, [](const auto& x) { return xgrad::stack(x); }, naive_stack(0))};
  op.large = {make_case(
                  {plane, plane}, [](const auto& x) { return xgrad::stack(x, 1); }, naive_stack(1)),
              make_case(
                  {plane, plane, plane}, [](const auto& x) { return xgrad::stack(x, -1); }, naive_stack(2))};
  op.errors = {error<ValueError>("stack: parts must not be empty", [] { xgrad::stack(Inputs<float>{}); }),
               error<IndexError>("stack: axis 2 is out of range for part 0 with one more axis (2, 1)",
                                 [] {
                                   xgrad::stack({x(2), x(2)}, 2);
                                 }),
               error<ShapeError>("stack: parts must have one shape, got (2) and (3)", [] {
                 xgrad::stack({x(2), x(3)});
               })};
  return op;
}

Op split_op() {
  Op op{"shapes.split"};
  const auto second = [](const auto& x) { return xgrad::split(x[0], {1, 3, 0, 1}, 1)[1]; };
  const auto last = [](const auto& x) { return xgrad::split(x[0], 2, -1).back(); };
  op.cases = {make_case({{2, 5}}, second, naive::slice(1, 1, 3, 1)),
              make_case({{2, 5}}, last, naive::slice(1, 4, 1, 1)),
              make_case({{4}}, last, naive::slice(0, 2, 2, 1)),
              make_case(
                  {{2, 5}},
                  [](const auto& x) {
                    return xgrad::cat(xgrad::split(x[0], {2, 3}, 1), 1);
                  },
                  naive::map([](double x) { return x; }))};
  op.large = {make_case(
      {{517, 603}},
      [](const auto& x) {
        return xgrad::split(x[0], {100, 500, 3}, 1)[1];
      },
      naive::slice(1, 100, 500, 1))};
  const auto refused = [](std::vector<std::ptrdiff_t> lengths) {
    return error<ValueError>("split: lengths must be at least 0 and add up to the length of axis 0 of x (5)",
                             [lengths] { xgrad::split(x(5), lengths); });
  };
  constexpr std::ptrdiff_t huge = std::numeric_limits<std::ptrdiff_t>::max();
  op.errors = {refused({-1, 6}), refused({}), refused({2, 2}), refused({huge, huge, 7}),
               error<ValueError>("split: length must be at least 1, got 0", [] { xgrad::split(x(5), 0); })};
  return op;
}

const Rows rows([] {
  return std::vector<Op>{reshape_op(), flatten_op(),   unsqueeze_op(), squeeze_op(),
                         expand_op(),  transpose_op(), mt_op(),        permute_op(),
                         concat_op(),  stack_op(),     split_op()};
});

const Conformance conformance{
    {"reshape", [](const auto& c) { return reshape(c.x(), c.dims("shape")); }},
    {"flatten", [](const auto& c) { return flatten(c.x(), c.dim("start_dim"), c.dim("end_dim")); }},
    {"unsqueeze", [](const auto& c) { return unsqueeze(c.x(), c.dim()); }},
    {"squeeze", [](const auto& c) { return c.has_attr("dim") ? squeeze(c.x(), c.dim()) : squeeze(c.x()); }},
    {"expand", [](const auto& c) { return expand(c.x(), c.dims("shape")); }},
    {"mT", [](const auto& c) { return mT(c.x()); }},
    {"transpose", [](const auto& c) { return transpose(c.x(), c.dim("dim0"), c.dim("dim1")); }},
    {"permute", [](const auto& c) { return permute(c.x(), c.dims("dims")); }},
    {"cat", [](const auto& c) { return cat(c.all(), c.dim()); }},
    {"stack", [](const auto& c) { return stack(c.all(), c.dim()); }},
    {"split", [](const auto& c) { return split(c.x(), c.list("sizes"), c.dim()); }}};

TEST(ShapesTest, CatLeavesOutEmptyVectors) {
  const Variable<float> empty = x(0), matrix = x(2, 3);
  EXPECT_EQ(xgrad::cat({empty, matrix, empty, matrix}, 1).shape(), (Shape{2, 6}));
  EXPECT_EQ(xgrad::cat({empty, empty}).shape(), Shape{0});
  EXPECT_EQ(message_of<ShapeError>([&] {
              xgrad::cat({matrix, x(0, 2)});
            }),
            "cat: parts must agree in every axis but 0, got part 0 (2, 3) and part 1 (0, 2)");
}

TEST(ShapesTest, ScalarsHaveOneAxisForThoseThatAskForOne) {
  const Variable<float> scalar = x();
  for (const int dim : {0, -1}) {
    EXPECT_EQ(transpose(scalar, dim, 0).shape(), Shape{});
    EXPECT_EQ(flatten(scalar, dim, dim).shape(), Shape{1});
    EXPECT_EQ(squeeze(scalar, dim).shape(), Shape{});
  }
  for (const int dim : {1, -2}) {
    EXPECT_NE(message_of<IndexError>([&] { transpose(scalar, 0, dim); }), "no exception");
    EXPECT_NE(message_of<IndexError>([&] { flatten(scalar, dim, 0); }), "no exception");
    EXPECT_NE(message_of<IndexError>([&] { flatten(scalar, 0, dim); }), "no exception");
    EXPECT_NE(message_of<IndexError>([&] { squeeze(scalar, dim); }), "no exception");
  }
}

TEST(ShapesTest, SplitsHaveTheLengthsThatWereAskedFor) {
  const auto lengths = [](const std::vector<Variable<float>>& parts) {
    std::vector<std::size_t> result;
    for (const Variable<float>& part : parts) result.push_back(part.shape(0));
    return result;
  };
  EXPECT_EQ(lengths(split(x(7, 2), 3)), (std::vector<std::size_t>{3, 3, 1}));
  EXPECT_EQ(lengths(split(x(6, 2), 3)), (std::vector<std::size_t>{3, 3}));
  EXPECT_EQ(lengths(split(x(2, 2), 3)), (std::vector<std::size_t>{2}));
  EXPECT_EQ(lengths(split(x(0, 2), 3)), (std::vector<std::size_t>{0}));
  EXPECT_EQ(lengths(split(x(4), {0, 4, 0})), (std::vector<std::size_t>{0, 4, 0}));
}

/// Another shape of as many elements: an axis more, or two neighbours made one.
void draw_reshape(Drawing& d) {
  const Name x = d.numbers();
  Shape shape = d.shape(x);
  if (shape.size() < 2 || d.chance(0.3)) {
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(d.below(shape.size() + 1)), 1);
  } else {
    const std::size_t axis = d.below(shape.size() - 1);
    shape[axis] *= shape[axis + 1];
    shape = naive::without(shape, axis + 1);
  }
  std::vector<std::ptrdiff_t> lengths = listed(shape);
  if (d.value(x).size() > 0 && d.chance(0.5)) lengths[d.below(lengths.size())] = -1;
  d.call("reshape", {x}, {{"shape", lengths}});
}

void draw_flatten(Drawing& d) {
  const Name x = d.numbers();
  const std::size_t axes = std::max<std::size_t>(d.rank(x), 1), last = d.below(axes);
  d.call("flatten", {x},
         {{"start_dim", static_cast<std::ptrdiff_t>(d.below(last + 1))},
          {"end_dim", static_cast<std::ptrdiff_t>(last) - static_cast<std::ptrdiff_t>(axes)}});
}

void draw_unsqueeze(Drawing& d) {
  const Name x = d.numbers();
  const auto axes = static_cast<std::ptrdiff_t>(d.rank(x)) + 1;
  d.call("unsqueeze", {x}, {{"dim", static_cast<std::ptrdiff_t>(d.below(2 * d.rank(x) + 2)) - axes}});
}

void draw_squeeze(Drawing& d) {
  const Name x = d.numbers();
  d.call("squeeze", {x}, {{"dim", d.chance(0.3) ? Attr::Value(nullptr) : d.axis(x)}});
}

void draw_expand(Drawing& d) {
  const Name x = d.numbers();
  std::vector<std::ptrdiff_t> lengths = listed(d.shape(x));
  for (std::ptrdiff_t& length : lengths) {
    if (length == 1 && d.chance(0.8))
      length = static_cast<std::ptrdiff_t>(d.length());
    else if (d.chance(0.5))
      length = -1;
  }
  if (d.chance(0.4)) lengths.insert(lengths.begin(), static_cast<std::ptrdiff_t>(1 + d.below(3)));
  d.call("expand", {x}, {{"shape", lengths}});
}

void draw_transpose(Drawing& d) {
  const Name x = d.numbers();
  d.call("transpose", {x}, {{"dim0", d.axis(x)}, {"dim1", d.axis(x)}});
}

void draw_permute(Drawing& d) {
  const Name x = d.numbers();
  d.call("permute", {x}, {{"dims", d.order(d.rank(x))}});
}

void draw_cat(Drawing& d) {
  const Name first = d.numbers(1);
  const std::ptrdiff_t dim = d.axis(first);
  Shape shape = d.shape(first);
  std::vector<Name> parts{first};
  for (std::size_t more = d.below(3); more > 0; --more) {
    if (d.chance(0.5)) shape[static_cast<std::size_t>(dim < 0 ? dim + std::ssize(shape) : dim)] = d.length();
    parts.push_back(d.numbers(shape));
  }
  d.call("cat", parts, {{"dim", dim}});
}

void draw_stack(Drawing& d) {
  const Name first = d.numbers();
  std::vector<Name> parts{first};
  for (std::size_t more = d.below(3); more > 0; --more) parts.push_back(d.numbers(d.shape(first)));
  const auto axes = static_cast<std::ptrdiff_t>(d.rank(first)) + 1;
  d.call("stack", parts, {{"dim", static_cast<std::ptrdiff_t>(d.below(2 * d.rank(first) + 2)) - axes}});
}

void draw_split(Drawing& d) {
  const auto [x, dim, length] = d.cut();
  std::size_t rest = length;
  std::vector<std::ptrdiff_t> sizes;
  for (; rest > 0 && sizes.size() < 2; rest -= static_cast<std::size_t>(sizes.back()))
    sizes.push_back(static_cast<std::ptrdiff_t>(d.below(rest + 1)));
  sizes.push_back(static_cast<std::ptrdiff_t>(rest));
  d.call("split", {x}, {{"sizes", sizes}, {"dim", dim}}, sizes.size());
}

const Draws draws{{"reshape", draw_reshape},
                  {"flatten", draw_flatten},
                  {"unsqueeze", draw_unsqueeze},
                  {"squeeze", draw_squeeze},
                  {"expand", draw_expand},
                  {"transpose", draw_transpose},
                  {"mT", [](Drawing& d) { d.call("mT", {d.numbers(2)}); }},
                  {"permute", draw_permute},
                  {"cat", draw_cat},
                  {"stack", draw_stack},
                  {"split", draw_split}};

}  // namespace xgrad_tests::shapes_rows
