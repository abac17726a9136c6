#include <memory>

#include <gtest/gtest.h>

#include <xgrad/xgrad.hpp>

#include "expect_error.hpp"

namespace weight_test {

using xgrad::Array, xgrad::DType, xgrad::Variable, xgrad::Weight, xgrad::ValueError;
using Access = xgrad::detail::WeightAccess<float>;
using xgrad_tests::message_of;

TEST(WeightTest, GivesItsNumbersInItsOwnTypeAlone) {
  const Array<float> numbers{{127, -1}, {0, 254}};
  const Variable<float> parameter(numbers, true);
  const Weight<float> floats = parameter, integers = Weight<float>::int8(numbers),
                      halves = Weight<float>::bfloat16(numbers);
  EXPECT_FALSE(Weight<float>().defined());
  EXPECT_THROW(static_cast<void>(Weight<float>().shape()), xgrad::GraphError);
  for (const Weight<float>& one : {floats, integers, halves}) {
    EXPECT_TRUE(one.defined());
    EXPECT_EQ(one.shape(), (xgrad::Shape{2, 2}));
    EXPECT_EQ(one.values(), numbers);
    EXPECT_EQ(one.is_trainable(), one.dtype() == DType::F32);
  }
  EXPECT_EQ(Weight<double>(Variable<double>(1.0)).dtype(), DType::F64);
  floats.variable().assign(Array<float>{{1, 2}, {3, 4}});
  EXPECT_EQ(parameter.value()(1, 1), 4) << "a handle";
  EXPECT_EQ(integers.integers(), (std::vector<std::int8_t>{127, -1, 0, 127}));
  EXPECT_EQ(integers.scales(), (std::vector<float>{1, 2}));
  EXPECT_EQ(message_of<ValueError>([&] { static_cast<void>(integers.variable()); }),
            "Weight: dtype must be float32, got int8");
  EXPECT_EQ(message_of<ValueError>([&] { static_cast<void>(floats.bits()); }),
            "Weight: dtype must be bfloat16, got float32");
  EXPECT_EQ(message_of<ValueError>([&] { static_cast<void>(halves.scales()); }),
            "Weight: dtype must be int8, got bfloat16");
}

TEST(WeightTest, KeepsAPackedFormUntilTheNumbersChange) {
  const xgrad::Linear<float> layer(3, 2);
  const xgrad::Linear<float> copy = layer;
  const auto form = std::make_shared<const int>(1);
  const auto kept = [](const xgrad::Linear<float>& one) { return Access::packed(one.stored_weight()); };
  EXPECT_EQ(kept(layer), nullptr);
  Access::keep_packed(layer.stored_weight(), form);
  EXPECT_EQ(kept(copy), form);
  layer.weight().assign(Array<float>(xgrad::zeros<float>({2, 3})));
  EXPECT_EQ(kept(copy), nullptr);
  EXPECT_EQ(form.use_count(), 1) << "dropped";
  Access::keep_packed(copy.stored_weight(), form);
  xgrad::SGD<float> optimizer(layer.parameters(), {.lr = 0.1});
  sum(layer(Variable<float>(Array<float>{{1, 2, 3}}))).backward();
  EXPECT_EQ(kept(layer), form);
  optimizer.step();
  EXPECT_EQ(kept(layer), nullptr);
}

}  // namespace weight_test
