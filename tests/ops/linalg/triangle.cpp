// What there is to test of tril and triu.
#include <xgrad/ops/linalg/triangle.hpp>

#include <limits>
#include <optional>

#include <gtest/gtest.h>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::triangle_rows {

template <class F>
Op triangle_op(const char* name, const F& f, bool lower) {
  Op op{std::string("triangle.") + name};
  constexpr std::ptrdiff_t huge = std::numeric_limits<std::ptrdiff_t>::max();
  const auto triangles = [&](const Shape& shape, std::ptrdiff_t diagonal) {
    const auto kept = [=](const Shape& at) -> std::optional<Shape> {
      const auto column = static_cast<std::ptrdiff_t>(at.back()),
                 row = static_cast<std::ptrdiff_t>(at[at.size() - 2]);
      const bool keep = lower ? column - row <= diagonal : column - row >= diagonal;
      return keep ? std::optional<Shape>(at) : std::nullopt;
    };
    return make_case(
        {shape}, [=](const auto& x) { return f(x[0], diagonal); }, naive::taken(shape, kept));
  };
  for (const Shape& shape :
       {Shape{3, 3}, Shape{2, 5}, Shape{4, 2}, Shape{2, 3, 4}, Shape{0, 3}, Shape{2, 0}}) {
    for (const std::ptrdiff_t diagonal :
         {std::ptrdiff_t{0}, std::ptrdiff_t{1}, std::ptrdiff_t{-2}, huge, -huge})
      op.cases.push_back(triangles(shape, diagonal));
  }
  op.large = {triangles(plane, -20)};
  op.errors = {
      error<ShapeError>(std::string(name) + ": x must have at least two axes, got (3)", [f] { f(x(3), 0); })};
  return op;
}

const Rows rows([] {
  return std::vector<Op>{
      triangle_op(
          "tril", [](const auto& x, std::ptrdiff_t diagonal) { return xgrad::tril(x, diagonal); }, true),
      triangle_op(
          "triu", [](const auto& x, std::ptrdiff_t diagonal) { return xgrad::triu(x, diagonal); }, false)};
});

const Conformance conformance{{"tril", [](const auto& c) { return tril(c.x(), c.integer("diagonal")); }},
                              {"triu", [](const auto& c) { return triu(c.x(), c.integer("diagonal")); }}};

TEST(TriangleTest, TheDiagonalIsTheMainOneUnlessGivenAndBelongsToBoth) {
  const Variable<float> x(Array<float>{{1, 2}, {3, 4}});
  EXPECT_EQ(tril(x).value(), (Array<float>{{1, 0}, {3, 4}}));
  EXPECT_EQ(triu(x).value(), (Array<float>{{1, 2}, {0, 4}}));
}

TEST(TriangleTest, WhatIsLeftOutMayBeNan) {
  const Variable<float> x(Array<float>{{1, nan}, {inf, 4}});
  EXPECT_EQ(tril(x, -1).value(), (Array<float>{{0, 0}, {inf, 0}}));
  EXPECT_EQ(triu(x, 2).value(), (Array<float>{{0, 0}, {0, 0}}));
}

Draw triangle_draw(const char* op) {
  return {op, [op](Drawing& d) {
            d.call(op, {d.numbers(2)}, {{"diagonal", static_cast<std::ptrdiff_t>(d.below(6)) - 3}});
          }};
}

const Draws draws{triangle_draw("tril"), triangle_draw("triu")};

}  // namespace xgrad_tests::triangle_rows
