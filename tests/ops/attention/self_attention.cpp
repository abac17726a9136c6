// What there is to test of self_attention.
#include <xgrad/ops/attention/self_attention.hpp>

#include <gtest/gtest.h>

#include <xgrad/ops/reduce/reductions.hpp>

#include "../common/attention.hpp"

namespace xgrad_tests::self_attention_rows {

Op self_attention_op() {
  struct Sample {
    Shape x;
    std::size_t out, v_out;
    bool biases;
    Attention how = {};
    Shape bias = {};  // of the numbers added to the scores, if it has axes
  };
  const Mask some = mask_of({3, 3}, {1, 0, 1, 0, 0, 0, 1, 1, 0});
  const std::vector<Sample> samples = {
      {{3, 2}, 2, 2, false},
      {{3, 2}, 4, 5, true},
      {{2, 3, 2}, 4, 6, true, {.heads = 2}},
      {{2, 3, 4}, 4, 4, false, {.heads = 2, .allowed = mask_of({2, 1, 1, 3}, {1, 1, 0, 0, 0, 0})}},
      {{2, 2, 3, 4}, 4, 4, true, {.heads = 4, .causal = true, .scale = 0.3}},
      {{3, 2}, 2, 3, true, {.allowed = some}},
      {{3, 3, 2}, 4, 4, true, {.heads = 2}, {2, 1, 3}},
      {{0, 3, 2}, 2, 2, true},
      {{2, 0, 2}, 2, 2, true},
      {{17, 6}, 10, 6, true, {.heads = 2}},
      {{2, 5, 3}, 8, 6, true, {.heads = 4, .kv_heads = 2, .left = 1, .right = 2}}};
  const std::vector<Sample> large = {{{7, 41, 5}, 12, 9, true, {.heads = 3, .causal = true}}};
  const auto make = [](const Sample& sample) {
    const std::size_t in = sample.x.back();
    const std::size_t k_out = sample.out / sample.how.q_parts() * sample.how.kv_parts();
    std::vector<Input> inputs{sample.x};
    for (const std::size_t width : {sample.out, k_out, sample.v_out}) inputs.push_back(Shape{width, in});
    if (sample.biases) {
      for (const std::size_t width : {sample.out, k_out, sample.v_out}) inputs.push_back(Shape{width});
    }
    const std::size_t projections = inputs.size();
    if (!sample.bias.empty()) inputs.push_back(sample.bias);
    const auto call = [how = sample.how, biases = sample.biases, projections](const auto& x) {
      using V = typename std::decay_t<decltype(x)>::value_type;
      xgrad::AttentionMask<typename V::value_type> mask;
      if (how.allowed) mask = *how.allowed;
      if (x.size() > projections) mask = x.back();
      const auto bias = [&](std::size_t part) { return biases ? x[4 + part] : V(); };
      return xgrad::self_attention(x[0], {x[1], bias(0)}, {x[2], bias(1)}, {x[3], bias(2)}, mask,
                                   how.options());
    };
    const Reference reference = [how = sample.how, biases = sample.biases, projections](const auto& x) {
      std::decay_t<decltype(x)> attended;
      for (std::size_t part = 0; part < 3; ++part) {
        std::decay_t<decltype(x)> operands{x[0], x[1 + part]};
        if (biases) operands.push_back(x[4 + part]);
        attended.push_back(naive::linear()(operands));
      }
      if (x.size() > projections) attended.push_back(x.back());
      return naive_attention(how)(attended);
    };
    return make_case(inputs, call, reference);
  };
  Op op{"self_attention"};
  for (const Sample& sample : samples) op.cases.push_back(make(sample));
  for (const Sample& sample : large) op.large.push_back(make(sample));
  op.errors = {
      error<ShapeError>(
          "self_attention: x must be (..., L, in) and the weight of k (out, in), got x (3, 2) and "
          "weight (2, 3)",
          [] {
            xgrad::self_attention(x(3, 2), {x(2, 2), {}}, {x(2, 3), {}}, {x(2, 2), {}});
          }),
      error<ShapeError>("self_attention: the bias of v must be (2), got (3)",
                        [] {
                          xgrad::self_attention(x(3, 2), {x(2, 2), {}}, {x(2, 2), {}}, {x(2, 2), x(3)});
                        }),
      error<ShapeError>(
          "self_attention: the last axes of q and v must be divisible by num_heads "
          "2, got q (3, 3) and v (3, 2)",
          [] {
            xgrad::self_attention(x(3, 2), {x(3, 2), {}}, {x(3, 2), {}}, {x(2, 2), {}}, {}, {.num_heads = 2});
          }),
      error<ShapeError>(
          "self_attention: the last axes of q and v must be divisible by num_heads "
          "2, got q (3, 2) and v (3, 3)",
          [] {
            xgrad::self_attention(x(3, 2), {x(2, 2), {}}, {x(2, 2), {}}, {x(3, 2), {}}, {}, {.num_heads = 2});
          })};
  return op;
}

const Rows rows([] { return std::vector<Op>{self_attention_op()}; });

const Conformance conformance{{"self_attention", [](const auto& c) {
                                 return self_attention(c.x(), {c.x(1), c.optional(2)},
                                                       {c.x(3), c.optional(4)}, {c.x(5), c.optional(6)},
                                                       attention_mask(c, 7), attention_options(c));
                               }}};

void draw_self_attention(Drawing& d) {
  const Name x = d.numbers(2);
  const Shape& shape = d.shape(x);
  const std::size_t heads = d.below(3), in = shape.back(), length = shape[shape.size() - 2];
  const std::size_t parts = std::max<std::size_t>(heads, 1);
  const std::size_t kv_parts = heads == 2 && d.chance(0.4) ? 1 : parts;
  const std::size_t head_dim = 1 + d.below(3), v_dim = 1 + d.below(3);
  std::vector<Name> inputs{x};
  for (const std::size_t width : {parts * head_dim, kv_parts * head_dim, kv_parts * v_dim}) {
    inputs.push_back(d.numbers(Shape{width, in}));
    inputs.push_back(d.chance(0.7) ? d.numbers(Shape{width}) : Name());
  }
  const Shape batch(shape.begin(), shape.end() - 2);
  inputs.push_back(draw_attention_mask(d, batch, heads, length, length));
  d.call("self_attention", inputs, draw_attention_attrs(d, heads, kv_parts == parts ? 0 : kv_parts));
}

const Draws draws{{"self_attention", draw_self_attention}};

TEST(SelfAttentionTest, ProjectionBiasesMayChangeBeforeBackward) {
  const Variable<double> x(Array<double>{{1, 2}, {3, 4}}, true), w(Array<double>{{1, 0}, {0, 1}}, true),
      bias(Array<double>{0.5, 1}, true);
  const auto attend = [&] {
    return sum(self_attention(x, {w, bias}, {w, bias}, {w, bias}, {}, {.num_heads = 1}));
  };
  const auto expected = grad(attend(), {x, w, bias});
  const Variable<double> y = attend();
  bias.assign(Array<double>{2, 3});
  const auto found = grad(y, {x, w, bias}, {.retain_graph = true});
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(found[i].value(), expected[i].value());
  EXPECT_NE(message_of<xgrad::GraphError>([&] {
              grad(y, {x}, {.create_graph = true});
            }).find("was changed in place"),
            std::string::npos);
}

}  // namespace xgrad_tests::self_attention_rows
