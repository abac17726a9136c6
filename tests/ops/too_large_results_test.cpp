// Arrays without elements, because one axis has length 0, whose results would have more than memory holds.

#include <functional>

#include <gtest/gtest.h>

#include <xgrad/xgrad.hpp>

#include "expect_error.hpp"

namespace too_large_results_test {

using xgrad::Array, xgrad::Shape, xgrad::ShapeError, xgrad::Variable;
using xgrad_tests::message_of;

constexpr std::size_t huge = std::size_t{1} << (4 * sizeof(std::size_t));  // its square is 0

Variable<float> none(const Shape& shape) { return Variable<float>(Array<float>::from_shape(shape), true); }

std::string refused(const std::function<void()>& call) { return message_of<ShapeError>(call); }

std::string too_many(const std::string& op, const Shape& shape) {
  return op + ": shape " + xgrad::to_string(shape) + " has too many elements";
}

TEST(OverflowTest, ProductsAreRefused) {
  const Variable<float> a = none({huge, 0}), b = none({0, huge});
  const Shape matrix{huge, huge}, batch{1, huge, huge};
  EXPECT_EQ(refused([&] { matmul(a, b); }), too_many("matmul", matrix));
  EXPECT_EQ(refused([&] { linear(a, a); }), too_many("linear", matrix));
  EXPECT_EQ(refused([&] { linear(a, a, Variable<float>(Array<float>(Shape{1}, 0.0f))); }),
            "linear: bias must have shape " + xgrad::to_string(Shape{huge}) + " to fit weight " +
                xgrad::to_string(Shape{huge, 0}) + ", got (1)");
  EXPECT_EQ(refused([&] { gemm(a, b); }), too_many("matmul", matrix));
  EXPECT_EQ(refused([&] { xgrad::einsum<float>("ik,kj->ij", {a, b}); }), too_many("matmul", batch));
  EXPECT_EQ(refused([&] { bmm(none({1, huge, 0}), none({1, 0, huge})); }), too_many("matmul", batch));
  EXPECT_EQ(refused([&] {
              bmm(none({huge, huge >> 1, 0}), none({huge, 0, 2}));
            }),
            too_many("Variable", {huge, huge >> 1, 0}));
}

TEST(OverflowTest, AttentionIsRefused) {
  const Variable<float> x = none({1, huge, 0});
  EXPECT_EQ(refused([&] { scaled_dot_product_attention(x, x, x); }),
            too_many("scaled_dot_product_attention", {1, 1, huge, huge}));
  EXPECT_EQ(refused([&] { attention_with_weights(x, x, x); }), too_many("matmul", {1, huge, huge}));
  const Variable<float> many = none({huge, 1, 0});  // their heads have no columns
  EXPECT_EQ(refused([&] { scaled_dot_product_attention(many, many, many, {}, {.num_heads = huge}); }),
            too_many("scaled_dot_product_attention", {huge, huge, 1, 1}));
}

TEST(OverflowTest, LeavesAndStretchedOnesAreRefused) {
  const Array<float> array = Array<float>::from_shape({huge, huge, 0});  // xtensor's strides do not overflow
  EXPECT_EQ(refused([&] { Variable<float> x(array); }), too_many("Variable", {huge, huge, 0}));
  EXPECT_EQ(refused([&] {
              broadcast_to(none({0, 1, huge}), Shape{0, huge, huge});
            }),
            too_many("broadcast_to", {0, huge, huge}));
}

TEST(OverflowTest, BroadcastingIsRefused) {
  const Variable<float> a = none({huge, 1, 0}), b = none({1, huge, 0});
  const Shape both{huge, huge, 0};
  EXPECT_EQ(refused([&] { a* b; }), too_many("mul", both));
  EXPECT_EQ(refused([&] { maximum(a, b); }), too_many("maximum", both));
  const xgrad::Mask mask = xgrad::Mask::from_shape({huge, 1, 0});
  EXPECT_EQ(refused([&] { masked_fill(b, mask, 0); }), too_many("masked_fill", both));
  EXPECT_EQ(refused([&] { xgrad::where<float>(mask, a, b); }), too_many("where", both));
}

TEST(OverflowTest, LookingUpNothingIsRefused) {
  EXPECT_EQ(refused([&] { embedding(xgrad::Ids::from_shape({0, huge}), none({huge, 0})); }), "no exception");
  EXPECT_EQ(refused([&] {
              embedding(xgrad::Ids::from_shape({0, huge >> 1, huge >> 1}), none({huge, 0}));
            }),
            too_many("embedding", {0, huge >> 1, huge >> 1, 0}));
}

}  // namespace too_large_results_test
