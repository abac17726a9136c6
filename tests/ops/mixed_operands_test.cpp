// Calls that mix Variables with xtensor's types, from a place where both libraries' functions of a name are
// found.

#include <gtest/gtest.h>

#include <xgrad/xgrad.hpp>

namespace mixed_operands_test {

using namespace xgrad;

class CallsTest : public testing::Test {
 protected:
  Array<float> array{{1, 5}, {3, -2}};
  Variable<float> x{Array<float>{{4, 2}, {-1, 7}}, true};
  Variable<float> y{Array<float>{{10, 20}, {30, 40}}, true};
  Mask mask{{true, false}, {false, true}};
};

TEST_F(CallsTest, WhereTakesAnyMaskAndConstants) {
  const Array<float> mixed{{4, 20}, {30, 7}};
  const Mask fixed = mask;
  const Variable<float> fixed_x = x;
  EXPECT_EQ(where(mask, x, y).value(), mixed);
  EXPECT_EQ(where(fixed, fixed_x, y).value(), mixed);
  EXPECT_EQ(where(fixed, fixed_x, fixed_x).value(), x.value());
  EXPECT_EQ(where(Mask(mask), x, y * 1).value(), mixed);
  EXPECT_EQ(where(!mask, y, x).value(), mixed);
  EXPECT_EQ(where(x.value() > 3.0f, x, y).value(), mixed);
  EXPECT_EQ(where(mask, x, 0).value(), (Array<float>{{4, 0}, {0, 7}}));
  EXPECT_EQ(where(mask, 0.5, x).value(), (Array<float>{{0.5f, 2}, {-1, 0.5f}}));
  EXPECT_EQ(where(mask, array, x).value(), (Array<float>{{1, 2}, {-1, -2}}));
  EXPECT_EQ(where(mask, x, array + 1.0f).value(), (Array<float>{{4, 6}, {4, 7}}));
  EXPECT_EQ(xgrad::grad(sum(where(mask, x, 0)), {x})[0].value(), (Array<float>{{1, 0}, {0, 1}}));
}

TEST_F(CallsTest, MaximumMinimumAndPowTakeConstants) {
  const Array<float> larger{{4, 5}, {3, 7}}, smaller{{1, 2}, {-1, -2}}, positive{{4, 2}, {0, 7}};
  EXPECT_EQ(maximum(x, array).value(), larger);
  EXPECT_EQ(maximum(array, x).value(), larger);
  EXPECT_EQ(minimum(x, array).value(), smaller);
  EXPECT_EQ(minimum(array + 0.0f, x * 1).value(), smaller);
  EXPECT_EQ(maximum(x, 0).value(), positive);
  EXPECT_EQ(maximum(0.0, x).value(), positive);
  EXPECT_EQ(minimum(x, 2.0f).value(), (Array<float>{{2, 2}, {-1, 2}}));
  EXPECT_EQ(xgrad::grad(sum(maximum(x, 0)), {x})[0].value(), (Array<float>{{1, 1}, {0, 1}}));
  Array<float> powers{{2, 3}, {2, 0}};
  EXPECT_EQ(pow(x, powers).value(), (Array<float>{{16, 8}, {1, 1}}));
  EXPECT_EQ(pow(powers, x).value()(0, 0), 16);
  EXPECT_EQ(pow(x, 2).value()(1, 1), 49);
}

TEST_F(CallsTest, MatmulAndMseLossTakeArrays) {
  const Array<float> product{{4 * 1 + 2 * 3, 4 * 5 - 2 * 2}, {-1 * 1 + 7 * 3, -1 * 5 - 7 * 2}};
  EXPECT_EQ(matmul(x, array).value(), product);
  EXPECT_EQ(matmul(Variable<float>(x.value()), array * 1.0f).value(), product);
  EXPECT_EQ(matmul(array, Array<float>{{1, 0}, {0, 1}} * x).value().shape(), (Shape{2, 2}));
  EXPECT_EQ(mse_loss(x, array).item(), (9.0f + 9 + 16 + 81) / 4);
}

TEST_F(CallsTest, ReductionsTakeShapes) {
  Shape axes{1};
  const Shape fixed{1};
  const Variable<float> fixed_x = x;
  const Array<float> sums{6, 6};
  EXPECT_EQ(sum(x, axes).value(), sums);
  EXPECT_EQ(sum(fixed_x, fixed).value(), sums);
  EXPECT_EQ(sum(x * 1, Shape{1}).value(), sums);
  EXPECT_EQ(sum(x, axes, {.keepdim = true}).shape(), (Shape{2, 1}));
  EXPECT_EQ(sum(x, {0, 1}).item(), 12);
  EXPECT_EQ(mean(x, axes).value(), (Array<float>{3, 3}));
  EXPECT_EQ(amax(x, axes).value(), (Array<float>{4, 7}));
  EXPECT_EQ(amin(x, axes).value(), (Array<float>{2, -1}));
  EXPECT_EQ(logsumexp(x, axes).shape(), (Shape{2}));
  EXPECT_EQ(var(x, axes).value(), (Array<float>{2, 32}));
}

}  // namespace mixed_operands_test
