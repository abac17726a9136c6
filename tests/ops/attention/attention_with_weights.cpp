// What there is to test of attention_with_weights.
#include <xgrad/ops/attention/attention_with_weights.hpp>

#include <gtest/gtest.h>

#include <xgrad/ops/reduce/reductions.hpp>

#include "../common/attention.hpp"
#include "../common/expect_near.hpp"

namespace xgrad_tests::attention_with_weights_rows {

/// The rows of one of the two results.
template <class Select>
Op weights_op(const char* name, const Select& select, Reference (*reference)(Attention)) {
  const auto attend = [select](const auto& q, const auto& k, const auto& v, const auto& mask, auto options) {
    return select(xgrad::attention_with_weights(q, k, v, mask, options));
  };
  Op op = attention_op(name, attend, reference);
  op.large = attention_cases({{{7, 40, 12}, {7, 41, 12}, {7, 41, 9}, {.heads = 3}}}, attend, reference);
  return op;
}

const Rows rows([] {
  return std::vector<Op>{
      weights_op(
          "attention_with_weights", [](const auto& result) { return result.output; }, naive_attention),
      weights_op(
          "attention_with_weights.weights", [](const auto& result) { return result.weights; },
          naive_attention_weights)};
});

const Conformance conformance{{"attention_with_weights", []<class T>(const Call<T>& c) {
                                 const auto [output, weights] = attention_with_weights(
                                     c.x(), c.x(1), c.x(2), attention_mask(c, 3), attention_options(c));
                                 return Results<T>{output, weights};
                               }}};

void draw_attention_with_weights(Drawing& d) {
  const DrawnAttention call = draw_attention_operands(d);
  d.call("attention_with_weights", call.inputs, call.attrs, 2);
}

const Draws draws{{"attention_with_weights", draw_attention_with_weights}};

TEST(AttentionTest, WeightsSumToOneAndDropoutIsAppliedToThem) {
  const Variable<float> q(Array<float>{{1, 2}, {0, 1}}), k(Array<float>{{1, 0}, {0, 1}}),
      v(Array<float>{{1, 1}, {1, 1}});
  const auto result = attention_with_weights(q, k, v);
  expect_near(sum(result.weights, -1).value(), Array<float>{1, 1}, 1e-6, "weights");
  const auto dropped = attention_with_weights(q, k, v, {}, {.dropout_p = 1});
  EXPECT_EQ(dropped.output.value(), (Array<float>{{0, 0}, {0, 0}}));
  EXPECT_EQ(
      message_of<xgrad::ValueError>([&] { scaled_dot_product_attention(q, k, v, {}, {.dropout_p = 2}); }),
      "scaled_dot_product_attention: dropout_p must be in [0, 1], got 2");
}

}  // namespace xgrad_tests::attention_with_weights_rows
