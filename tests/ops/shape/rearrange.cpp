// What there is to test of the ops that put elements at other places.
#include <xgrad/ops/shape/rearrange.hpp>

#include <limits>
#include <optional>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::rearrange_rows {

using xgrad::Padding;

Case flip_case(const Shape& shape, const Dims& dims, std::vector<std::size_t> axes) {
  return make_case(
      {shape}, [dims](const auto& x) { return xgrad::flip(x[0], dims); },
      naive::taken(shape, [shape, axes](Shape at) {
        for (const std::size_t axis : axes) at[axis] = shape[axis] - 1 - at[axis];
        return at;
      }));
}

Op flip_op() {
  Op op{"rearrange.flip"};
  op.cases = {flip_case({5}, 0, {0}),
              flip_case({2, 3}, -1, {1}),
              flip_case({2, 3}, {0, 1}, {0, 1}),
              flip_case({2, 3, 4}, {2, 0}, {0, 2}),
              flip_case({2, 3, 4}, 1, {1}),
              flip_case({3, 1}, {0, 1}, {0}),
              flip_case({0, 3}, {0, 1}, {}),
              flip_case({}, -1, {}),
              flip_case({2, 3}, Shape{}, {})};
  op.large = {flip_case(plane, 0, {0}),       flip_case(plane, 1, {1}),  flip_case(plane, {0, 1}, {0, 1}),
              flip_case(long_vector, 0, {0}), flip_case(tall, {1}, {1}), flip_case({5, 129, 331}, 1, {1}),
              flip_case(wide, {0, 1}, {0, 1})};
  op.errors = {
      error<IndexError>("flip: axis 2 is out of range for x (2, 3)", [] { xgrad::flip(x(2, 3), 2); }),
      error<ValueError>("flip: dims must name an axis once, got (1, -1) for x (2, 3)", [] {
        xgrad::flip(x(2, 3), {1, -1});
      })};
  return op;
}

/// By shifts from 0 on, each smaller than its axis.
Case roll_case(const Shape& shape, const Dims& shifts, const Dims& dims,
               std::vector<std::pair<std::size_t, std::size_t>> axes) {
  return make_case(
      {shape}, [=](const auto& x) { return xgrad::roll(x[0], shifts, dims); },
      naive::taken(shape, [shape, axes](Shape at) {
        for (const auto& [axis, shift] : axes) at[axis] = (at[axis] + shape[axis] - shift) % shape[axis];
        return at;
      }));
}

Op roll_op() {
  Op op{"rearrange.roll"};
  op.cases = {roll_case({5}, 2, 0, {{0, 2}}),
              roll_case({5}, -1, -1, {{0, 4}}),
              roll_case({5}, 12, 0, {{0, 2}}),
              roll_case({2, 3}, 1, 1, {{1, 1}}),
              roll_case({2, 3, 4}, {1, -1}, {0, 2}, {{0, 1}, {2, 3}}),
              roll_case({2, 3, 4}, -7, 1, {{1, 2}}),
              roll_case({3, 2}, {1, 1}, {0, 0}, {{0, 2}}),
              roll_case({0, 3}, 1, 0, {}),
              roll_case({0, 3}, 1, 1, {{1, 1}})};
  for (const auto& [shape, shift, offset] : {std::tuple(Shape{2, 3}, -2, std::size_t{4}), {Shape{}, 1, 0}}) {
    op.cases.push_back(make_case(
        {shape}, [by = shift](const auto& x) { return xgrad::roll(x[0], by); },
        [by = offset](const naive::Arguments& x) {
          naive::Numbers y = x[0];
          for (std::size_t i = 0; i < y.size(); ++i) y.data()[(i + by) % y.size()] = x[0].data()[i];
          return y;
        }));
  }
  op.large = {roll_case(plane, 100, 0, {{0, 100}}), roll_case(plane, 3, 1, {{1, 3}}),
              roll_case(long_vector, 70001, 0, {{0, 70001}}), roll_case({5, 129, 331}, 5, 1, {{1, 5}})};
  op.errors = {
      error<IndexError>("roll: axis 2 is out of range for x (2, 3)", [] { xgrad::roll(x(2, 3), 1, 2); }),
      error<ValueError>("roll: there must be a shift for each axis, got shifts (1, 2) and dims (0)", [] {
        xgrad::roll(x(2, 3), {1, 2}, 0);
      })};
  return op;
}

Case repeat_case(const Shape& shape, const Dims& repeats) {
  const std::size_t added = repeats.size() - shape.size();
  Shape result(repeats.begin(), repeats.end());
  for (std::size_t axis = 0; axis < shape.size(); ++axis) result[added + axis] *= shape[axis];
  return make_case(
      {shape}, [repeats](const auto& x) { return xgrad::repeat(x[0], repeats); },
      naive::taken(result, [shape, added](const Shape& at) {
        Shape from(at.begin() + static_cast<std::ptrdiff_t>(added), at.end());
        for (std::size_t axis = 0; axis < from.size(); ++axis) from[axis] %= shape[axis];
        return from;
      }));
}

Op repeat_op() {
  Op op{"rearrange.repeat"};
  op.cases = {repeat_case({3}, 2),         repeat_case({3}, {2, 2}),    repeat_case({2, 3}, {1, 3}),
              repeat_case({2, 3}, {2, 1}), repeat_case({2, 3}, {3, 2}), repeat_case({2, 3}, {2, 1, 2}),
              repeat_case({}, 3),          repeat_case({2, 3}, {0, 2}), repeat_case({0, 3}, {2, 2}),
              repeat_case({2, 1}, {1, 5})};
  op.large = {repeat_case({517, 103}, {1, 4}), repeat_case({517, 103}, {3, 1}),
              repeat_case({3, 70001}, {2, 1, 1})};
  const std::string rule = "repeat: repeats must be at least 0, and at least one for each axis, got ";
  op.errors = {error<ShapeError>(rule + "(2) for x (2, 3)", [] { xgrad::repeat(x(2, 3), 2); }),
               error<ShapeError>(rule + "(2, -1) for x (2, 3)", [] {
                 xgrad::repeat(x(2, 3), {2, -1});
               })};
  return op;
}

/// Where element `at` of an axis of length n with so many more in front comes from.
std::optional<std::size_t> source(Padding mode, std::ptrdiff_t n, std::ptrdiff_t before, std::ptrdiff_t after,
                                  std::size_t at) {
  std::ptrdiff_t from = static_cast<std::ptrdiff_t>(at) - before;
  if (mode == Padding::constant && (from < 0 || from >= n)) return std::nullopt;
  if (mode == Padding::replicate) from = from < 0 ? 0 : from >= n ? n - 1 : from;
  if (mode == Padding::circular) {  // of what negative sides leave
    const std::ptrdiff_t first = before < 0 ? -before : 0, end = after < 0 ? n + after : n;
    from = from < first ? from + (end - first) : from >= end ? from - (end - first) : from;
  }
  if (mode == Padding::reflect) from = from < 0 ? -from : from >= n ? n - 1 - (from - (n - 1)) : from;
  return static_cast<std::size_t>(from);
}

Case pad_case(const Shape& shape, const Dims& pad, Padding mode = Padding::constant, double value = 0) {
  std::vector<std::ptrdiff_t> before(shape.size(), 0), after(shape.size(), 0);
  Shape result = shape;
  for (std::size_t k = 0; k < pad.size() / 2; ++k) {
    const std::size_t axis = shape.size() - 1 - k;
    before[axis] = pad[2 * k];
    after[axis] = pad[2 * k + 1];
    result[axis] =
        static_cast<std::size_t>(static_cast<std::ptrdiff_t>(shape[axis]) + pad[2 * k] + pad[2 * k + 1]);
  }
  return make_case(
      {shape},
      [=](const auto& x) {
        using T = typename std::decay_t<decltype(x[0])>::value_type;
        return xgrad::pad(x[0], pad, mode, static_cast<T>(value));
      },
      [=](const naive::Arguments& x) {
        return naive::generated(result, [&](Shape at) {
          for (std::size_t axis = 0; axis < at.size(); ++axis) {
            const auto from =
                source(mode, static_cast<std::ptrdiff_t>(shape[axis]), before[axis], after[axis], at[axis]);
            if (!from) return value;
            at[axis] = *from;
          }
          return naive::at(x[0], at);
        });
      });
}

Op pad_op() {
  Op op{"rearrange.pad"};
  op.cases = {pad_case({3}, {1, 2}),
              pad_case({2, 3}, {1, 0}, Padding::constant, 2.5),
              pad_case({2, 3}, {1, 2, 3, 0}, Padding::constant, -1),
              pad_case({2, 3, 1}, {1, 1, 0, 1, 2, 0}),
              pad_case({5}, {-1, 2}, Padding::constant, 3),
              pad_case({5, 4}, {-1, -2, -2, 1}),
              pad_case({5}, {-2, -3}),
              pad_case({3}, {-4, 3}),
              pad_case({3, 1}, {0, 0, 1, 1}),
              pad_case({0, 2}, {0, 1, 2, 0}, Padding::constant, 7),
              pad_case({2, 3}, Shape{}),
              pad_case({}, Shape{})};
  for (const Padding mode : {Padding::reflect, Padding::replicate, Padding::circular}) {
    for (const Case& one :
         {pad_case({4}, {3, 2}, mode), pad_case({2, 4}, {0, 1}, mode), pad_case({3, 4}, {1, 2, 2, 1}, mode),
          pad_case({2, 3, 4, 2}, {1, 0, 3, 3}, mode), pad_case({5}, {-1, 2}, mode),
          pad_case({5}, {2, -1}, mode), pad_case({5}, {-2, -1}, mode)})
      op.cases.push_back(one);
    op.large.push_back(pad_case({300, 401}, {7, 100, 3, 0}, mode));
  }
  op.cases.push_back(pad_case({2, 1}, {4, 3}, Padding::replicate));
  op.cases.push_back(pad_case({2}, {2, 2}, Padding::circular));
  for (const auto& [shape, pad] : {std::pair<Shape, Dims>{plane, {3, 5, 1, 1}},
                                   {plane, {0, 0, 2, 3}},
                                   {{5, 129, 331}, {1, 1, 2, 2}},
                                   {long_vector, {1, 1}},
                                   {wide, {-5, 1, 1, 0}},
                                   {{70001, 3, 1}, {0, 0, 1, 0}}})
    op.large.push_back(pad_case(shape, pad, Padding::constant, 0.5));
  const auto too_short = [](const char* mode, const char* pad, Dims amounts, Padding how) {
    return error<ValueError>(
        std::string("pad: axis 0 is too short for mode ") + mode + ", got x (3) and pad " + pad,
        [=] { xgrad::pad(x(3), amounts, how); });
  };
  op.errors = {
      error<ValueError>("pad: pad must have two numbers for each of the last axes of x, got (1) for x (3)",
                        [] { xgrad::pad(x(3), 1); }),
      error<ValueError>(
          "pad: pad must have two numbers for each of the last axes of x, got (1, 1, 1, 1) for x (3)",
          [] {
            xgrad::pad(x(3), {1, 1, 1, 1});
          }),
      error<ShapeError>(
          "pad: the padded length of axis 1 must be in [0, 2^63), got x (2, 3) and pad (-2, -2)",
          [] {
            xgrad::pad(x(2, 3), {-2, -2});
          }),
      too_short("reflect", "(0, 3)", {0, 3}, Padding::reflect),
      too_short("circular", "(4, 0)", {4, 0}, Padding::circular),
      too_short("circular", "(3, -1)", {3, -1}, Padding::circular),
      error<ValueError>("pad: axis 0 is too short for mode replicate, got x (0) and pad (1, 0)", [] {
        xgrad::pad(x(0), {1, 0}, Padding::replicate);
      })};
  return op;
}

const Rows rows([] { return std::vector<Op>{flip_op(), roll_op(), repeat_op(), pad_op()}; });

template <class C>
Padding padding(const C& c) {
  const std::string mode = c.text("mode");
  if (mode == "reflect") return Padding::reflect;
  if (mode == "replicate") return Padding::replicate;
  if (mode == "circular") return Padding::circular;
  if (mode != "constant") throw ValueError("pad: there is no mode '" + mode + "'");
  return Padding::constant;
}

const Conformance conformance{{"flip", [](const auto& c) { return flip(c.x(), c.dims("dims")); }},
                              {"roll",
                               [](const auto& c) {
                                 if (!c.has_attr("dims")) return roll(c.x(), c.integer("shifts"));
                                 return roll(c.x(), c.dims("shifts"), c.dims("dims"));
                               }},
                              {"repeat", [](const auto& c) { return repeat(c.x(), c.dims("repeats")); }},
                              {"pad", [](const auto& c) {
                                 using T = typename std::decay_t<decltype(c.x())>::value_type;
                                 return pad(c.x(), c.dims("pad"), padding(c),
                                            static_cast<T>(c.number("value", 0)));
                               }}};

void draw_flip(Drawing& d) {
  const Name x = d.numbers();
  std::vector<std::ptrdiff_t> dims = d.order(d.rank(x));
  dims.resize(d.below(dims.size() + 1));
  d.call("flip", {x}, {{"dims", dims}});
}

void draw_roll(Drawing& d) {
  const Name x = d.numbers();
  const auto shift = [&] { return static_cast<std::ptrdiff_t>(d.below(20)) - 10; };
  if (d.chance(0.3)) {
    d.call("roll", {x}, {{"shifts", shift()}, {"dims", nullptr}});
  } else if (d.rank(x) > 0) {
    d.call("roll", {x},
           {{"shifts", std::vector{shift(), shift()}}, {"dims", std::vector{d.axis(x), d.axis(x)}}});
  }
}

void draw_repeat(Drawing& d) {
  const Name x = d.numbers();
  std::vector<std::ptrdiff_t> repeats(d.rank(x) + d.below(2));
  for (std::ptrdiff_t& n : repeats) n = d.one_of<std::ptrdiff_t>({1, 1, 1, 2, 3, 0});
  d.call("repeat", {x}, {{"repeats", repeats}});
}

/// PyTorch has some modes for some numbers of axes alone.
void draw_pad(Drawing& d) {
  const Name x = d.numbers();
  const Shape shape = d.shape(x);
  std::string mode = d.one_of<std::string>({"constant", "reflect", "replicate", "circular"});
  const bool few_axes = mode != "circular" && shape.size() == 2;
  if (d.value(x).size() == 0) return;  // PyTorch takes no results without elements
  if (!few_axes && shape.size() != 3) mode = "constant";
  std::vector<std::ptrdiff_t> pad;
  for (std::size_t k = 0; k < (mode == "constant" ? d.below(shape.size() + 1) : 1); ++k) {
    const std::size_t length = shape[shape.size() - 1 - k];
    for (int side = 0; side < 2; ++side) {
      const std::size_t most = mode == "reflect" ? length : std::min<std::size_t>(length + 1, 4);
      pad.push_back(static_cast<std::ptrdiff_t>(d.below(std::min<std::size_t>(most, 4))));
      if (mode == "constant" && length > 2 && d.chance(0.2)) pad.back() = -1;
    }
  }
  d.call("pad", {x},
         {{"pad", pad}, {"mode", mode}, {"value", mode == "constant" ? d.one_of({0.0, 1.5}) : 0.0}});
}

const Draws draws{{"flip", draw_flip}, {"roll", draw_roll}, {"repeat", draw_repeat}, {"pad", draw_pad}};

TEST(RearrangeTest, AnInfiniteBorderHasNoNanBesideIt) {
  const Variable<float> x(Array<float>{1, -2}, true);
  const Variable<float> y = pad(x, {1, 1}, Padding::constant, -inf);
  EXPECT_EQ(y.value(), (Array<float>{-inf, 1, -2, -inf}));
  y.backward(Variable<float>(Array<float>{nan, 3, 5, inf}));
  EXPECT_EQ(x.grad().value(), (Array<float>{3, 5}));
}

TEST(RearrangeTest, MoreElementsThanMemoryHoldsAreRefused) {
  constexpr std::ptrdiff_t huge = std::numeric_limits<std::ptrdiff_t>::max() / 2 + 1;
  EXPECT_THROW(repeat(x(3), {huge, huge}), ShapeError);
  EXPECT_THROW(pad(x(3), {huge, 0}), ShapeError);
  EXPECT_THROW(pad(x(3), {std::numeric_limits<std::ptrdiff_t>::max(), 0}), ShapeError);
}

}  // namespace xgrad_tests::rearrange_rows
