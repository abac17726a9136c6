#include <xgrad/base/creation.hpp>

#include <cstdint>

#include <gtest/gtest.h>

#include <xgrad/ops/shape/shapes.hpp>

#include "expect_error.hpp"

namespace creation_test {

using xgrad::Array, xgrad::Ids, xgrad::Mask, xgrad::Shape;
using xgrad_tests::message_of;

template <class T, class V>
concept Fills = requires(V value) {
  xgrad::full<T>(Shape{2}, value);
};

template <class T, class V>
concept Counts = requires(V value) {
  xgrad::arange<T>(Shape{2}, value);
};

TEST(CreationTest, ArraysHaveTheShapeThatIsGiven) {
  EXPECT_EQ(xgrad::zeros<std::int64_t>({2, 3}), (Ids{{0, 0, 0}, {0, 0, 0}}));
  EXPECT_EQ(xgrad::ones<float>({3}), (Array<float>{1, 1, 1}));
  EXPECT_EQ(xgrad::full<bool>({1, 2}, true), (Mask{{true, true}}));
  EXPECT_EQ(xgrad::full<double>({2}, 1), (Array<double>{1, 1}));
  EXPECT_EQ(xgrad::zeros<float>({}).dimension(), 0u);
  EXPECT_EQ(xgrad::zeros<float>({0, 3}).size(), 0u);
  EXPECT_EQ(message_of<xgrad::ShapeError>([] {
              xgrad::zeros<float>({std::size_t{1} << 40, std::size_t{1} << 40});
            }),
            "zeros: shape (1099511627776, 1099511627776) has too many elements");
}

TEST(CreationTest, IntegersAreNotFilledWithFractions) {
  static_assert(Fills<std::int64_t, int> && Fills<float, double> && Fills<bool, bool>);
  static_assert(!Fills<std::int64_t, double> && !Fills<bool, float> && !Fills<std::int64_t, bool>);
  static_assert(!Counts<std::int64_t, double> && Counts<std::int64_t, std::size_t> && Counts<float, double>);
}

TEST(CreationTest, ArangeCountsInRowMajorOrder) {
  EXPECT_EQ(xgrad::arange<std::int64_t>({2, 3}), (Ids{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(xgrad::arange<std::int64_t>({3}, 5, -2), (Ids{5, 3, 1}));
  EXPECT_EQ(xgrad::arange<std::int64_t>({0}).size(), 0u);
  EXPECT_EQ(xgrad::arange<std::int64_t>({2, 0}).size(), 0u);
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ShapeError>([] {
              xgrad::arange<float>({0, 10});
            }),
            "arange: the first of several axes must not be empty, got (0, 10), a shape, not a range: "
            "arange<T>({n}, start, step)");
  EXPECT_EQ(xgrad::arange<float>({3}, 0.5, 0.25), (Array<float>{0.5f, 0.75f, 1.0f}));
  EXPECT_EQ(xgrad::arange<float>({1000001}, 0, 0.1)(1000000), 100000.0f);
}

TEST(CreationTest, ArraysThatAreNoVariablesAreReshaped) {
  EXPECT_EQ(xgrad::reshape(Ids{1, 2, 3, 4}, {2, -1}), (Ids{{1, 2}, {3, 4}}));
  EXPECT_EQ(xgrad::reshape(Mask{{true, false}}, -1), (Mask{true, false}));
  EXPECT_EQ(message_of<xgrad::ShapeError>([] {
              xgrad::reshape(Ids{1, 2, 3}, {2, 2});
            }),
            "reshape: the number of elements must not change, got x (3) and shape (2, 2)");
  EXPECT_EQ(xgrad::reshape(Ids{1, 2} + 1, {2, 1}).shape(), (Shape{2, 1}));
  EXPECT_EQ(xgrad::reshape(xt::xarray<float>{1, 2} > 1, -1), (Mask{false, true}));
}

#ifdef XTENSOR_ENABLE_ASSERT
TEST(CreationTest, AnIndexPastTheEndIsAnErrorInADebugBuild) {
  const Ids ids({2, 3});  // two values
  EXPECT_EQ(ids(1), 3);
  EXPECT_THROW(ids(2), std::exception);
  EXPECT_THROW(ids(1, 2), std::exception);
}
#endif

}  // namespace creation_test
