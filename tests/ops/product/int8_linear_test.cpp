#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/ops/attention/detail/int8_after_attention.hpp>
#include <xgrad/ops/attention/detail/packed_self_attention.hpp>
#include <xgrad/xgrad.hpp>

#include "../../difference.hpp"
#include "expect_error.hpp"
#include "keep_num_threads.hpp"

namespace int8_linear_test {

using xgrad::Array, xgrad::Linear, xgrad::Shape, xgrad::ShapeError, xgrad::ValueError, xgrad::Variable;
using Weight = xgrad::Weight<float>;
using xgrad_tests::largest_difference, xgrad_tests::message_of;

Array<float> drawn(const Shape& shape) { return xgrad::normal<float>(shape); }

TEST(Int8LinearTest, IsNearLinear) {
  xgrad::manual_seed(0);
  for (const Shape& shape : {Shape{70}, Shape{5, 70}, Shape{2, 3, 70}, Shape{0, 70}}) {
    const Variable<float> x(drawn(shape)), bias(drawn({33}));
    const Array<float> float_weight = drawn({33, 70});
    const Weight weight = Weight::int8(float_weight);
    EXPECT_LE(largest_difference(weight.values(), float_weight), 0.02F);
    const Variable<float> y = xgrad::linear(x, weight, bias);
    EXPECT_LE(largest_difference(y.value(), xgrad::linear(x, Variable<float>(weight.values()), bias).value()),
              0.3F);
    EXPECT_LE(largest_difference(Array<float>(xgrad::linear(x, weight).value() + bias.value()), y.value()),
              1e-5F);
  }
}

TEST(Int8LinearTest, ErrorsNameShapes) {
  const Weight weight = Weight::int8(drawn({4, 3}));
  EXPECT_EQ(message_of<ShapeError>([&] {
              xgrad::linear(Variable<float>(drawn({2, 4})), weight);
            }),
            "int8_linear: the last axis of x must be weight's last, got x (2, 4) and weight (4, 3)");
  EXPECT_EQ(message_of<ShapeError>([&] {
              xgrad::linear(Variable<float>(drawn({2, 3})), weight, Variable<float>(drawn({3})));
            }),
            "int8_linear: bias must have shape (4) to fit weight (4, 3), got (3)");
  EXPECT_EQ(message_of<ShapeError>([] { Weight::int8(drawn({3})); }),
            "Weight: int8 numbers must be (out, in) with in of at most 65536, got (3)");
  EXPECT_EQ(message_of<ShapeError>([] {
              Weight::int8(drawn({1, 65537}));
            }),
            "Weight: int8 numbers must be (out, in) with in of at most 65536, got (1, 65537)");
  EXPECT_EQ(message_of<ShapeError>([] {
              Weight::int8(std::vector<std::int8_t>(6), std::vector<float>(3), {2, 3});
            }),
            "Weight: integers and scales must fit the shape (2, 3), got 6 and 3");
  Array<float> broken = drawn({3, 2});
  broken(1, 0) = std::nanf("");
  EXPECT_EQ(message_of<ValueError>([&] { Weight::int8(broken); }),
            "Weight: all numbers must be finite for int8, got another in row 1");
}

TEST(Int8LinearTest, GradientsAreRefused) {
  const Weight weight = Weight::int8(drawn({4, 3}));
  const Variable<float> x(drawn({2, 3}), true), constant(drawn({2, 3})), bias(drawn({4}), true);
  const std::string error =
      "int8_linear: 8-bit weights have no gradient: freeze all parameters in front of them, or compute with "
      "NoGrad";
  EXPECT_EQ(message_of<ValueError>([&] { xgrad::linear(x, weight); }), error);
  EXPECT_EQ(message_of<ValueError>([&] { xgrad::linear(constant, weight, bias); }), error);
  EXPECT_FALSE(xgrad::linear(constant, weight).requires_grad());
  const xgrad::NoGrad guard;
  EXPECT_EQ(xgrad::linear(x, weight, bias).shape(), (Shape{2, 4}));
}

TEST(Int8LinearTest, NanStaysInItsRow) {
  Array<float> x = drawn({3, 5});
  x(1, 2) = std::nanf("");
  const Array<float> y = xgrad::linear(Variable<float>(x), Weight::int8(drawn({4, 5}))).value();
  for (std::size_t j = 0; j < 4; ++j) {
    EXPECT_TRUE(std::isfinite(y(0, j)) && std::isnan(y(1, j)) && std::isfinite(y(2, j)));
  }
}

TEST(Int8LinearTest, SelfAttentionProjectsSo) {
  const Weight q = Weight::int8(drawn({8, 6})), k = Weight::int8(drawn({8, 6})),
               v = Weight::int8(drawn({8, 6}));
  const Variable<float> x(drawn({2, 5, 6})), bias(drawn({8}));
  const xgrad::AttentionOptions options{.num_heads = 2};
  using By = xgrad::Projection<float>;
  const Variable<float> together = xgrad::self_attention(x, By{q, bias}, By{k}, By{v}, {}, options);
  const Variable<float> apart = xgrad::scaled_dot_product_attention(
      xgrad::linear(x, q, bias), xgrad::linear(x, k), xgrad::linear(x, v), {}, options);
  EXPECT_LE(largest_difference(together.value(), apart.value()), 1e-5F);
  // one of them may be of float numbers
  const Variable<float> weight(k.values());
  const Variable<float> mixed = xgrad::self_attention(x, By{q, bias}, By{weight}, By{v}, {}, options);
  EXPECT_LE(largest_difference(mixed.value(), apart.value()), 0.1F);
  const Variable<float> leaf(drawn({2, 5, 6}), true);
  EXPECT_EQ(message_of<ValueError>([&] {
              xgrad::self_attention(leaf, By{q, bias}, By{k}, By{v}, {}, options);
            }),
            "int8_self_attention: 8-bit weights have no gradient: freeze all parameters in front of them, or "
            "compute with NoGrad");
}

/// Some rows of a table.
Variable<float> some_rows(const Array<float>& table, std::size_t begin, std::size_t end) {
  return Variable<float>(Array<float>(xt::view(table, xt::range(begin, end))));
}

TEST(Int8LinearTest, PackedTextsHaveTheBitsOfOne) {
  using By = xgrad::Projection<float>;
  const xgrad_tests::KeepNumThreads keep;
  const Weight q = Weight::int8(drawn({8, 6})), k = Weight::int8(drawn({8, 6})),
               v = Weight::int8(drawn({8, 6}));
  const Variable<float> bias(drawn({8}));
  const std::vector<std::size_t> lengths{3, 60, 17, 1, 30, 0, 25, 9, 90, 5};
  const Array<float> x = drawn({240, 6});
  const auto attend = [&](const Variable<float>& rows, const std::vector<std::size_t>& of) {
    return xgrad::detail::packed_self_attention<float>(rows, By{q, bias}, By{k}, By{v}, of, {.num_heads = 2})
        .value();
  };
  xgrad::set_num_threads(1);
  const Array<float> all = attend(Variable<float>(x), lengths);
  std::size_t row = 0;
  for (const std::size_t length : lengths) {
    if (length == 0) continue;
    const Array<float> alone = attend(some_rows(x, row, row + length), {length});
    EXPECT_EQ(alone, some_rows(all, row, row + length).value()) << row;
    row += length;
  }
  for (const std::size_t threads : {2, 3, 9}) {
    xgrad::set_num_threads(threads);
    EXPECT_EQ(attend(Variable<float>(x), lengths), all) << threads << " threads";
  }
}

/// Layers behind attention.
struct AfterAttention {
  Weight out = Weight::int8(drawn({12, 8})), up = Weight::int8(drawn({40, 12})),
         down = Weight::int8(drawn({12, 40}));
  Variable<float> out_bias{drawn({12})}, up_bias{drawn({40})}, down_bias{drawn({12})};
  Variable<float> weight1{drawn({12})}, bias1{drawn({12})}, weight2{drawn({12})}, bias2{drawn({12})};

  xgrad::detail::AfterAttentionLayers layers() const {
    return {
        {out, out_bias}, {weight1, bias1, 1e-5}, {up, up_bias}, {down, down_bias}, {weight2, bias2, 1e-3}};
  }
};

TEST(Int8LinearTest, AfterAttentionIsNearTheSingleOps) {
  const AfterAttention block;
  const Variable<float> context(drawn({2, 7, 8})), x(drawn({2, 7, 12}));
  const Variable<float> y = xgrad::add_layer_norm(xgrad::linear(context, block.out, block.out_bias), x, {12},
                                                  block.weight1, block.bias1, 1e-5);
  const Variable<float> inner = xgrad::gelu(xgrad::linear(y, block.up, block.up_bias));
  const Variable<float> apart = xgrad::add_layer_norm(xgrad::linear(inner, block.down, block.down_bias), y,
                                                      {12}, block.weight2, block.bias2, 1e-3);
  const Variable<float> z = xgrad::detail::int8_after_attention(context, x, block.layers());
  EXPECT_LE(largest_difference(z.value(), apart.value()), 0.02F);  // where one rounds to the next integer
}

TEST(Int8LinearTest, RowsAfterAttentionDependNeitherOnOthersNorOnThreads) {
  const xgrad_tests::KeepNumThreads keep;
  const AfterAttention block;
  const Array<float> context = drawn({200, 8}), x = drawn({200, 12});
  const auto after = [&](std::size_t begin, std::size_t end) {
    return xgrad::detail::int8_after_attention(some_rows(context, begin, end), some_rows(x, begin, end),
                                               block.layers())
        .value();
  };
  xgrad::set_num_threads(1);
  const Array<float> all = after(0, 200);
  for (const std::size_t end : {11, 47, 48, 95, 96, 97})
    EXPECT_EQ(after(10, end), some_rows(all, 10, end).value()) << end;
  for (const std::size_t threads : {2, 3, 9}) {
    xgrad::set_num_threads(threads);
    EXPECT_EQ(after(0, 200), all) << threads << " threads";
  }
  EXPECT_EQ(after(0, 0).size(), 0U);
}

TEST(Int8LinearTest, AfterAttentionRefusesOtherShapesAndGradients) {
  const AfterAttention block;
  const auto after = [&](const Shape& context, const Shape& x, bool is_leaf = false) {
    xgrad::detail::int8_after_attention(Variable<float>(drawn(context), is_leaf), Variable<float>(drawn(x)),
                                        block.layers());
  };
  EXPECT_EQ(message_of<ShapeError>([&] {
              after({3, 8}, {4, 12});
            }),
            "int8_after_attention: context (..., in) and x (..., D) must have the same rows, got (3, 8) and "
            "(4, 12)");
  EXPECT_EQ(message_of<ShapeError>([&] {
              after({3, 7}, {3, 12});
            }),
            "int8_after_attention: the weight of out must be (12, 7), got (12, 8)");
  EXPECT_EQ(message_of<ShapeError>([&] {
              after({3, 8}, {3, 13});
            }),
            "int8_after_attention: the weight of out must be (13, 8), got (12, 8)");
  EXPECT_EQ(
      message_of<ValueError>([&] {
        after({3, 8}, {3, 12}, true);
      }),
      "int8_after_attention: 8-bit weights have no gradient: freeze all parameters in front of them, or "
      "compute with NoGrad");
  const Variable<float> context(drawn({3, 8})), x(drawn({3, 12})), narrow(drawn({11}));
  const auto& layers = block.layers();
  EXPECT_EQ(message_of<ShapeError>([&] {
              xgrad::detail::int8_after_attention(
                  context, x, {layers.out, {narrow, narrow, 1e-5}, layers.up, layers.down, layers.norm2});
            }),
            "int8_after_attention: norm1 must be (12), got (11)");
}

class Model : public xgrad::Module<float> {
 public:
  Model()
      : xgrad::Module<float>("Model"),
        first_(this->child("first", Linear<float>(Weight::int8(drawn({4, 3})), drawn({4})))),
        second_(this->child("second", Linear<float>(4, 2))) {}
  Variable<float> operator()(const Variable<float>& x) const { return second_(first_(x)); }

 private:
  Linear<float> first_, second_;
};

TEST(Int8LinearTest, ModulesListWeightsBesideParameters) {
  const Model model;
  std::vector<std::string> names;
  for (const auto& [name, parameter] : model.named_parameters()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"first.bias", "second.weight", "second.bias"}));
  const auto weights = model.named_weights();
  ASSERT_EQ(weights.size(), 4u);
  EXPECT_EQ(weights[0].first, "first.weight");
  EXPECT_EQ(weights[0].second.shape(), (Shape{4, 3}));
  EXPECT_EQ(weights[0].second.dtype(), xgrad::DType::I8);
  EXPECT_EQ(weights[1].second.dtype(), xgrad::DType::F32);
  EXPECT_NE(summary(model).find("weight        (4, 3)        int8"), std::string::npos) << summary(model);
  EXPECT_EQ(message_of<ValueError>([&] { model.state_dict(); }),
            "state_dict: 'first.weight' must be of float numbers, got int8");
  EXPECT_EQ(message_of<ShapeError>([] {
              Linear<float>(Weight::int8(drawn({4, 3})), drawn({3}));
            }),
            "Linear: bias must be (out), got (3) and weight (4, 3)");
}

TEST(Int8LinearTest, LayersBehindItCanBeTrained) {
  const Model model;
  sum(model(Variable<float>(drawn({2, 3})))).backward();
  for (const auto& [name, parameter] : model.named_parameters())
    EXPECT_EQ(parameter.has_grad(), name != "first.bias") << name;
}

}  // namespace int8_linear_test
