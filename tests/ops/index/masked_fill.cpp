// What there is to test of masked_fill.
#include <xgrad/ops/index/masked_fill.hpp>

#include <gtest/gtest.h>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::masked_fill_rows {

Op masked_fill_op() {
  Op op{"masked_fill"};
  const std::vector<std::pair<Shape, Mask>> samples = {
      {{2, 3}, mask_of({2, 3}, {0, 1, 0, 1, 1, 1})},
      {{2, 3}, mask_of({3}, {0, 1, 0})},
      {{2, 3}, mask_of({2, 1}, {1, 0})},
      {{3}, mask_of({2, 3}, {0, 1, 0, 0, 0, 1})},
      {{2, 1}, mask_of({1, 3}, {1, 0, 1})},
      {{2, 3}, mask_of({}, {1})},
      {{}, mask_of({}, {0})},
      {{0, 3}, mask_of({3}, {0, 1, 0})},
      {{17}, mask_of({17}, {1, 1, 0, 0, 1, 0, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1})}};
  for (const auto& [shape, mask] : samples)
    op.cases.push_back(make_case(
        {shape}, [mask = mask](const auto& x) { return xgrad::masked_fill(x[0], mask, -7.5); },
        naive::masked_fill(mask, -7.5)));
  for (const auto& [shape, mask] : {std::pair<Shape, Shape>{plane, plane},
                                    {plane, {403}},
                                    {plane, {517, 1}},
                                    {wide, {2, 1}},
                                    {long_vector, long_vector},
                                    {{140001}, wide},
                                    {{}, long_vector}}) {
    op.large.push_back(late_case({shape}, [mask = mask] {
      const Mask hidden = scattered_mask(mask);
      return make_case(
          {}, [hidden](const auto& x) { return xgrad::masked_fill(x[0], hidden, -7.5); },
          naive::masked_fill(hidden, -7.5));
    }));
  }
  op.errors = {error<ShapeError>("masked_fill: shapes must broadcast, got x (2, 3) and mask (4)", [] {
    xgrad::masked_fill(x(2, 3), mask_of({4}, {0, 0, 0, 0}), 0);
  })};
  return op;
}

const Rows rows([] { return std::vector<Op>{masked_fill_op()}; });

const Conformance conformance{
    {"masked_fill", [](const auto& c) { return masked_fill(c.x(), c.mask(1), c.scalar("value")); }}};

void draw_masked_fill(Drawing& d) {
  const Name x = d.numbers();
  Shape shape = d.narrowed(d.shape(x));
  if (d.chance(0.2)) {  // larger than x
    shape = d.shape(x);
    shape.insert(shape.begin(), d.length());
  }
  d.call("masked_fill", {x, d.mask(shape)}, {{"value", d.one_of({0.0, -7.5, 2.0})}});
}

const Draws draws{{"masked_fill", draw_masked_fill}};

TEST(MaskedFillTest, NanAndItsGradientAreRemoved) {
  const Variable<float> x(Array<float>{1, nan, -1}, true);
  const Mask mask{false, true, true};
  const Variable<float> y = masked_fill(x, mask, 0);
  EXPECT_EQ(y.value(), (Array<float>{1, 0, 0}));
  y.backward(Variable<float>(Array<float>{2, nan, inf}));
  EXPECT_EQ(x.grad().value(), (Array<float>{2, 0, 0}));
}

}  // namespace xgrad_tests::masked_fill_rows
