#include "../../examples/common/shape_trace.hpp"

#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include <xgrad/xgrad.hpp>

namespace shape_trace_test {

constexpr xgrad::Op attends_op("attends", {"x"});

using xgrad::Array, xgrad::Ids, xgrad::Variable;

const xgrad::ToyEncoderConfig config{.vocab_size = 7,
                                     .max_len = 5,
                                     .classes = 3,
                                     .encoder = {.d_model = 4, .heads = 2, .d_ff = 8, .layers = 2},
                                     .pad_id = 0};
const Ids sentences{{1, 2, 3, 0}, {4, 5, 6, 1}};

/// The table of the shapes that f goes through.
template <class F>
std::string shapes_of(const F& f) {
  const examples::ShapeTrace trace;
  f();
  std::ostringstream table;
  table << trace;
  return table.str();
}

TEST(ShapeTraceTest, IsTheTableOfTheNotebook) {
  const xgrad::Embedding<float> embedding(7, 8);
  const xgrad::MultiHeadAttention<float> attention(8, 2);
  const Ids batch{{1, 2, 3, 0}, {4, 5, 6, 0}};
  EXPECT_EQ(shapes_of([&] { attention(embedding(batch), xgrad::padding_mask(batch, 0)); }),
            "Input:      (2, 4)        batch, seq\n"
            "↓ Embedding\n"
            "Embedded:   (2, 4, 8)     batch, seq, d_model\n"
            "↓ Linear Q/K/V\n"
            "Q, K, V:    (2, 4, 8)     batch, seq, d_model\n"
            "↓ Reshape\n"
            "Q_reshaped: (2, 4, 2, 4)  batch, seq, heads, d_k\n"
            "↓ Transpose\n"
            "Q_heads:    (2, 2, 4, 4)  batch, heads, seq, d_k\n"
            "↓ Q @ K^T\n"
            "Scores:     (2, 2, 4, 4)  batch, heads, queries, keys\n"
            "↓ Softmax\n"
            "Weights:    (2, 2, 4, 4)  batch, heads, queries, keys\n"
            "↓ @ V\n"
            "Output:     (2, 2, 4, 4)  batch, heads, seq, d_k\n"
            "↓ Transpose\n"
            "Output_T:   (2, 4, 2, 4)  batch, seq, heads, d_k\n"
            "↓ Flatten\n"
            "Concat:     (2, 4, 8)     batch, seq, d_model\n"
            "↓ out_proj\n"
            "Final:      (2, 4, 8)     batch, seq, d_model\n");
}

TEST(ShapeTraceTest, FollowsAModelToItsHead) {
  const xgrad::ToyEncoder<float> model(config);
  const examples::ShapeTrace trace;
  const Array<float> logits = model.class_logits(sentences).value();
  std::string names;
  for (const examples::ShapeTrace::Row& row : trace.rows()) names += row.name + " ";
  const std::string layer = "Q, K, V Q_reshaped Q_heads Scores Weights Output Output_T Concat Final Encoded ";
  EXPECT_EQ(names, "Input Embedded " + layer + layer + "Pooled Class logits ");
}

TEST(ShapeTraceTest, FollowsAModelToItsTokens) {
  const xgrad::ToyEncoder<float> model(config);
  const examples::ShapeTrace trace;
  const Variable<float> encoded = model(sentences);
  const std::size_t before = trace.rows().size();
  model.class_logits(encoded, sentences);
  model.token_logits(encoded);
  std::string rows;
  for (std::size_t i = before; i < trace.rows().size(); ++i) {
    const examples::ShapeTrace::Row& row = trace.rows()[i];
    rows += row.step + ": " + row.name + " " + xgrad::to_string(row.shape) + " " + row.axes + "\n";
  }
  EXPECT_EQ(rows,
            "Pool: Pooled (2, 4) batch, d_model\n"
            "class_head: Class logits (2, 3) batch, classes\n"
            "token_head: Token logits (2, 4, 7) batch, seq, vocab\n");
}

TEST(ShapeTraceTest, OtherKeysGiveScoresOfTheirNumber) {
  const xgrad::MultiHeadAttention<float> attention(8, 2);
  const Variable<float> q(Array<float>({1, 3, 8}, 0.5f)), k(Array<float>({1, 5, 8}, 0.5f));
  const std::string table =
      "↓ Linear Q/K/V\n"
      "Q, K, V:    (1, 3, 8)     batch, seq, d_model\n"
      "↓ Reshape\n"
      "Q_reshaped: (1, 3, 2, 4)  batch, seq, heads, d_k\n"
      "↓ Transpose\n"
      "Q_heads:    (1, 2, 3, 4)  batch, heads, seq, d_k\n"
      "↓ Q @ K^T\n"
      "Scores:     (1, 2, 3, 5)  batch, heads, queries, keys\n"
      "↓ Softmax\n"
      "Weights:    (1, 2, 3, 5)  batch, heads, queries, keys\n"
      "↓ @ V\n"
      "Output:     (1, 2, 3, 4)  batch, heads, seq, d_k\n"
      "↓ Transpose\n"
      "Output_T:   (1, 3, 2, 4)  batch, seq, heads, d_k\n"
      "↓ Flatten\n"
      "Concat:     (1, 3, 8)     batch, seq, d_model\n"
      "↓ out_proj\n"
      "Final:      (1, 3, 8)     batch, seq, d_model\n";
  EXPECT_EQ(shapes_of([&] { attention(q, k, k); }), table);
  EXPECT_EQ(shapes_of([&] { attention.with_weights(q, k, k); }), table);
}

TEST(ShapeTraceTest, WhatABackwardComputesAndWhatFailsIsLeftOut) {
  const xgrad::TransformerEncoderLayer<double> layer({.d_model = 4, .heads = 2, .d_ff = 8});
  const Variable<double> x(Array<double>({2, 3, 4}, 0.5), true), wide(Array<double>({2, 3, 6}, 0.5));
  const examples::ShapeTrace trace;
  const Variable<double> y = layer(x);
  const std::size_t forward = trace.rows().size();
  EXPECT_EQ(trace.rows().back().name, "Encoded");
  EXPECT_EQ(xgrad::to_string(trace.rows().back().shape), "(2, 3, 4)");
  grad(sum(y), {x}, {.create_graph = true});
  EXPECT_EQ(trace.rows().size(), forward);
  EXPECT_THROW(layer(wide), xgrad::ShapeError);
  EXPECT_EQ(trace.rows().size(), forward);
  const xgrad::Embedding<double> embedding(7, 4);
  embedding(Ids{1, 2});
  EXPECT_EQ(trace.rows().size(), forward) << "ids without a batch";
  const auto attends =
      xgrad::record<double>(attends_op, x * 1, xgrad::Inputs(x), xgrad::Saved(),
                            [](const Variable<double>& dy, xgrad::Needs) -> xgrad::Grads<double, 1> {
                              return {scaled_dot_product_attention(dy, dy, dy)};
                            });
  sum(attends).backward();
  EXPECT_EQ(trace.rows().size(), forward);
}

TEST(ShapeTraceTest, AllThatLiveCollect) {
  const xgrad::Embedding<float> embedding(7, 8);
  const examples::ShapeTrace outer;
  {
    const examples::ShapeTrace inner;
    embedding(sentences);
    EXPECT_EQ(inner.rows().size(), 2u);
  }
  embedding(sentences);
  EXPECT_EQ(outer.rows().size(), 4u);
}

TEST(ShapeTraceTest, OneHeadGoesThroughTheSameShapesWithItsWeights) {
  const xgrad::SelfAttention<float> attention(2);
  const Variable<float> x(Array<float>({3, 2}, 0.5f));
  const std::string fused = shapes_of([&] { attention(x); });
  EXPECT_EQ(fused,
            "↓ Q @ K^T\n"
            "Scores:  (3, 3)  batch, heads, queries, keys\n"
            "↓ Softmax\n"
            "Weights: (3, 3)  batch, heads, queries, keys\n"
            "↓ @ V\n"
            "Output:  (3, 2)  batch, heads, seq, d_k\n");
  EXPECT_EQ(shapes_of([&] { attention.with_weights(x); }), fused);
}

TEST(ShapeTraceTest, AttentionWithItsWeightsGoesThroughTheSameShapes) {
  const xgrad::MultiHeadAttention<double> attention(8, 2);
  const Variable<double> x(Array<double>({3, 5, 8}, 0.5));
  EXPECT_EQ(shapes_of([&] { attention.with_weights(x); }), shapes_of([&] { attention(x); }));
}

}  // namespace shape_trace_test
