// Arrays without elements, because one axis has length 0, whose results would have more than memory holds.

#include <functional>

#include <gtest/gtest.h>

#include <xgrad/xgrad.hpp>

#include "expect_error.hpp"

namespace {

using xgrad::Array, xgrad::Shape, xgrad::ShapeError, xgrad::Variable;
using xgrad_tests::message_of;

constexpr std::size_t huge = std::size_t{1} << (4 * sizeof(std::size_t));  // its square is 0
const std::string huge_text = std::to_string(huge), half_text = std::to_string(huge >> 1);

Variable<float> none(const Shape& shape) { return Variable<float>(Array<float>::from_shape(shape), true); }

std::string refused(const std::function<void()>& call) { return message_of<ShapeError>(call); }

TEST(OverflowTest, ProductsAreRefused) {
  const Variable<float> a = none({huge, 0}), b = none({0, huge});
  const std::string matrix = ": shape (" + huge_text + ", " + huge_text + ") has too many elements",
                    batch = ": shape (1, " + huge_text + ", " + huge_text + ") has too many elements";
  EXPECT_EQ(refused([&] { matmul(a, b); }), "matmul" + matrix);
  EXPECT_EQ(refused([&] { linear(a, a); }), "linear" + matrix);
  EXPECT_EQ(refused([&] { linear(a, a, Variable<float>(Array<float>(Shape{1}, 0.0f))); }),
            "linear: bias must have shape (" + huge_text + ") to fit weight (" + huge_text + ", 0), got (1)");
  EXPECT_EQ(refused([&] { gemm(a, b); }), "matmul" + matrix);
  EXPECT_EQ(refused([&] { xgrad::einsum<float>("ik,kj->ij", {a, b}); }), "matmul" + batch);
  EXPECT_EQ(refused([&] { bmm(none({1, huge, 0}), none({1, 0, huge})); }), "matmul" + batch);
  EXPECT_EQ(refused([&] {
              bmm(none({huge, huge >> 1, 0}), none({huge, 0, 2}));
            }),
            "Variable: shape (" + huge_text + ", " + half_text + ", 0) has too many elements");
}

TEST(OverflowTest, AttentionIsRefused) {
  const Variable<float> x = none({1, huge, 0});
  EXPECT_EQ(refused([&] { scaled_dot_product_attention(x, x, x); }),
            "scaled_dot_product_attention: shape (1, 1, " + huge_text + ", " + huge_text +
                ") has too many elements");
  EXPECT_EQ(refused([&] { attention_with_weights(x, x, x); }),
            "matmul: shape (1, " + huge_text + ", " + huge_text + ") has too many elements");
  const Variable<float> many = none({huge, 1, 0});  // their heads have no columns
  EXPECT_EQ(refused([&] { scaled_dot_product_attention(many, many, many, {}, {.num_heads = huge}); }),
            "scaled_dot_product_attention: shape (" + huge_text + ", " + huge_text +
                ", 1, 1) has too many elements");
}

TEST(OverflowTest, LeavesAndStretchedOnesAreRefused) {
  const Array<float> array = Array<float>::from_shape({huge, huge, 0});  // xtensor's strides do not overflow
  EXPECT_EQ(refused([&] { Variable<float> x(array); }),
            "Variable: shape (" + huge_text + ", " + huge_text + ", 0) has too many elements");
  EXPECT_EQ(refused([&] {
              broadcast_to(none({0, 1, huge}), Shape{0, huge, huge});
            }),
            "broadcast_to: shape (0, " + huge_text + ", " + huge_text + ") has too many elements");
}

TEST(OverflowTest, BroadcastingIsRefused) {
  const Variable<float> a = none({huge, 1, 0}), b = none({1, huge, 0});
  const std::string text = ": shape (" + huge_text + ", " + huge_text + ", 0) has too many elements";
  EXPECT_EQ(refused([&] { a* b; }), "mul" + text);
  EXPECT_EQ(refused([&] { maximum(a, b); }), "maximum" + text);
  const xgrad::Mask mask = xgrad::Mask::from_shape({huge, 1, 0});
  EXPECT_EQ(refused([&] { masked_fill(b, mask, 0); }), "masked_fill" + text);
  EXPECT_EQ(refused([&] { xgrad::where<float>(mask, a, b); }), "where" + text);
}

TEST(OverflowTest, LookingUpNothingIsRefused) {
  EXPECT_EQ(refused([&] { embedding(xgrad::Ids::from_shape({0, huge}), none({huge, 0})); }), "no exception");
  EXPECT_EQ(refused([&] {
              embedding(xgrad::Ids::from_shape({0, huge >> 1, huge >> 1}), none({huge, 0}));
            }),
            "embedding: shape (0, " + half_text + ", " + half_text + ", 0) has too many elements");
}

}  // namespace
