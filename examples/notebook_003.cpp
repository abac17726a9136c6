// Notebook 003: multi-head attention over two sentences with padding, every reshape and the mask
#include <cmath>
#include <iomanip>

#include "common/notebook.hpp"
#include "common/shape_trace.hpp"

using xgrad::Variable;

void heading(const std::string& text) { std::cout << text << '\n' << std::string(70, '-') << '\n'; }

int main(int argc, char** argv) {
  examples::NotebookReport report(argc, argv,
                                  "Notebook 003: multi-head attention over two sentences with padding");
  const auto shape = [](const auto& x) { return xgrad::to_string(x.shape()); };

  const std::string rule(70, '=');
  std::cout << rule << "\nCOMPLETE TRANSFORMER ATTENTION WALKTHROUGH\n" << rule << "\n\n";

  heading("STEP 0: Input Sentences");
  // Vocab: {PAD:0, The:1, cat:2, sat:3, I:4, am:5, here:6}
  const xgrad::Ids batch{{1, 2, 3, 0},   // "The cat sat PAD"
                         {4, 5, 6, 0}};  // "I am here PAD"
  std::cout << "Token IDs:\n" << batch << "\nShape: " << shape(batch) << "  # (batch_size, seq_len)\n\n";
  report.show("Step 0: Input Sentences", "Token IDs", batch);

  heading("STEP 1: Convert token IDs -> embeddings");
  const std::size_t vocab_size = 7, d_model = 8;
  xgrad::manual_seed(819740201);  // the notebook sets no seed; this one gives its numbers ...
  const xgrad::Embedding<float> run_before(vocab_size, d_model);  // ... with this cell run twice
  const xgrad::Embedding<float> embedding(vocab_size, d_model);
  const Variable<float> x = embedding(batch);
  std::cout << "Embeddings shape: " << shape(x) << "  # (batch, seq_len, d_model)\n\n"
            << "Sample embedding for 'The' (token 1):\n"
            << select(select(x, 0, 0), 0, 0) << "\n\n"
            << x << "\n\n"
            << "The table that these rows come from:\n"
            << embedding.weight() << "\n\n";
  report.show("Step 1: Convert token IDs -> embeddings",
              {{"x", x}, {"embedding.weight", embedding.weight()}});

  heading("STEP 2: Create padding mask");
  const std::int64_t pad_token = 0;
  const xgrad::Ids padding_mask = xt::cast<std::int64_t>(xt::not_equal(batch, pad_token));  // (2, 4)
  std::cout << "Padding mask (1=real, 0=padding):\n"
            << padding_mask << "\nShape: " << shape(padding_mask) << "\n\n";
  report.show("Step 2: Create padding mask", "padding_mask", padding_mask);
  xgrad::Ids src_mask = padding_mask;
  src_mask.reshape({2, 1, 1, 4});
  std::cout << "Reshaped for attention: " << shape(src_mask)
            << "\nWhy? Will broadcast to (batch, heads, seq_len, seq_len)\n\n"
            << src_mask << "\n\n";

  heading("STEP 3: Multi-Head Attention Parameters");
  const std::size_t h = 2, d_k = d_model / h;
  std::cout << "d_model (total embedding size): " << d_model << "\nh (number of heads): " << h
            << "\nd_k (dimension per head): " << d_k << "\n\n";
  const xgrad::Linear<float> W_q(d_model, d_model, false), W_k(d_model, d_model, false),
      W_v(d_model, d_model, false), W_o(d_model, d_model, false);
  std::cout << "W_q weight shape: " << shape(W_q.weight()) << "  # (d_model, d_model)\n\n";

  heading("STEP 4: Project to Q, K, V");
  const Variable<float> Q = W_q(x), K = W_k(x), V = W_v(x);
  std::cout << "Input x shape: " << shape(x) << "\nQ shape after W_q: " << shape(Q)
            << "\nK shape after W_k: " << shape(K) << "\nV shape after W_v: " << shape(V)
            << "\n\nQ for first token of first sentence:\n"
            << select(select(Q, 0, 0), 0, 0) << "\n\n"
            << Q << "\n\n";
  report.show("Step 4: Project to Q, K, V", {{"Q", Q}, {"K", K}, {"V", V}});

  heading("STEP 5: Reshape to split heads");
  const std::size_t batch_size = x.shape(0), seq_len = x.shape(1);
  std::cout << "Original Q shape: " << shape(Q) << "  # (batch, seq, d_model)\n\n";
  const Variable<float> Q_reshaped = reshape(Q, {batch_size, seq_len, h, d_k});
  const Variable<float> first_token = select(select(Q_reshaped, 0, 0), 0, 0);  // (h, d_k)
  std::cout
      << "After reshape: " << shape(Q_reshaped)
      << "\nMeaning: (batch, seq_len, heads, dim_per_head)\n\nQ_reshaped[0, 0] (first token, both heads):\n"
      << first_token << "\n  Head 0: " << select(first_token, 0, 0)
      << "\n  Head 1: " << select(first_token, 0, 1) << "\n\n";
  const Variable<float> Q_heads = transpose(Q_reshaped, 1, 2);
  const Variable<float> K_heads = transpose(reshape(K, {batch_size, seq_len, h, d_k}), 1, 2);
  const Variable<float> V_heads = transpose(reshape(V, {batch_size, seq_len, h, d_k}), 1, 2);
  std::cout
      << "After transpose(1, 2): " << shape(Q_heads) << "\nMeaning: (batch, heads, seq_len, dim_per_head)\n\n"
      << "WHY transpose? For parallel processing:\n  Now each head can process ALL tokens independently\n\n";

  report.show("Step 5: Reshape to split heads", {{"Q_reshaped", Q_reshaped}, {"Q_heads", Q_heads}});

  heading("STEP 6: Scaled Dot-Product Attention");
  std::cout << "6a. Compute attention scores: Q @ K^T\n\nQ_heads shape: " << shape(Q_heads)
            << "\nK_heads shape: " << shape(K_heads) << "\n\n";
  const Variable<float> K_T = transpose(K_heads, -2, -1);
  std::cout << "K^T shape (transpose last 2 dims): " << shape(K_T) << "\n\n";
  const Variable<float> scores = matmul(Q_heads, K_T);
  std::cout << "Q @ K^T shape: " << shape(scores)
            << "\nMeaning: (batch, heads, queries, keys)\n\nAttention scores for Sentence 0, Head 0:\n"
            << select(select(scores, 0, 0), 0, 0)
            << "\nEach row = how much that query attends to each key\n\n"
            << scores << "\n\n";

  const float scale_factor = std::sqrt(static_cast<float>(d_k));
  const Variable<float> scaled_scores = scores / scale_factor;
  std::cout << "6b. Scale by sqrt(d_k) = sqrt(" << d_k << ") = " << std::fixed << std::setprecision(2)
            << scale_factor << "\n\n"
            << src_mask << "\n\n";

  std::cout << "6c. Apply padding mask\n\nMask shape before broadcasting: " << shape(src_mask) << ", "
            << src_mask << "\nScores shape: " << shape(scaled_scores) << ", " << scaled_scores
            << "\n\nBroadcasting magic:\n"
            << "  Mask (2, 1, 1, 4) -> broadcasts to (2, 2, 4, 4)\n"
            << "  Dimension 1: 1 -> 2 (applied to both heads)\n"
            << "  Dimension 2: 1 -> 4 (applied to all queries)\n\n";
  const xgrad::Mask blocked = xt::equal(src_mask, 0);
  const Variable<float> masked_scores = masked_fill(scaled_scores, blocked, -1e9F);
  std::cout << "Scores after masking (Sentence 0, Head 0):\n"
            << masked_scores << "\nNotice: Column 3 (padding) has very negative values\n\n";

  const Variable<float> attention_weights = softmax(masked_scores, -1);
  const Variable<float> first_head = select(select(attention_weights, 0, 0), 0, 0);
  std::cout << "6d. Softmax (normalize each row)\n\nAttention weights (Sentence 0, Head 0):\n"
            << first_head << "\nNotice: Column 3 (padding) = 0.000\n\nRow sums (should be ~1.0):\n"
            << sum(first_head, -1) << "\n\n";

  std::cout << "6e. Multiply by V: attention_weights @ V\n\nattention_weights shape: "
            << shape(attention_weights) << "\nV_heads shape: " << shape(V_heads) << "\n\n";
  const Variable<float> attention_output = matmul(attention_weights, V_heads);
  std::cout << "Output shape: " << shape(attention_output)
            << "\n\nAttention output for first token, Head 0:\n"
            << select(select(select(attention_output, 0, 0), 0, 0), 0, 0)
            << "\nThis is a weighted mix of all value vectors\n\n";
  report.show("Step 6: Scaled Dot-Product Attention", {{"scores", scores},
                                                       {"scaled_scores", scaled_scores},
                                                       {"masked_scores", masked_scores},
                                                       {"attention_weights", attention_weights},
                                                       {"attention_output", attention_output}});

  heading("STEP 7: Concatenate heads back together");
  std::cout << "Before concat: " << shape(attention_output) << "  # (batch, heads, seq, d_k)\n\n";
  const Variable<float> attention_transposed = transpose(attention_output, 1, 2);
  std::cout << "After transpose(1, 2): " << shape(attention_transposed) << "  # (batch, seq, heads, d_k)\n\n"
            << "WHY transpose back? To group heads per token:\n"
            << "  Before: Head 0 [all tokens], Head 1 [all tokens]\n"
            << "  After:  Token 0 [all heads], Token 1 [all heads], ...\n\n";
  const Variable<float> attention_concat = reshape(attention_transposed, {batch_size, seq_len, d_model});
  std::cout << "After reshape: " << shape(attention_concat)
            << "  # (batch, seq, d_model)\n\nFirst token after concatenation:\n"
            << select(select(attention_concat, 0, 0), 0, 0)
            << "\nThis is [Head0_output || Head1_output] concatenated\n\n";

  heading("STEP 8: Final linear projection (W_o)");
  const Variable<float> final_output = W_o(attention_concat);
  std::cout << "Final shape: " << shape(final_output) << "\n\nFinal output for first token:\n"
            << select(select(final_output, 0, 0), 0, 0) << "\n\n";
  report.show("Steps 7 and 8: Concatenate heads, final linear projection",
              {{"attention_concat", attention_concat}, {"final_output", final_output}});

  std::cout << rule << "\nSHAPE EVOLUTION SUMMARY\n" << rule << "\n\n";
  const xgrad::MultiHeadAttention<double> mha(d_model, h);
  const xgrad::Embedding<double> embedding_in_double(vocab_size, d_model);
  {
    const examples::ShapeTrace trace;
    static_cast<void>(mha(embedding_in_double(batch), xgrad::padding_mask(batch, pad_token)));
    std::cout << trace << '\n';
  }

  std::cout
      << rule << "\nWHY RESHAPING IS NECESSARY\n"
      << rule << "\n\n"
      << "1. PARALLEL PROCESSING:\n   Shape (2, 2, 4, 4) lets both heads be computed at once\n\n"
      << "2. MATRIX MULTIPLICATION:\n   Q @ K^T requires matching dimensions:\n"
      << "   (batch, h, seq, d_k) @ (batch, h, d_k, seq) -> (batch, h, seq, seq)\n\n"
      << "3. BROADCASTING:\n   Mask (2, 1, 1, 4) -> (2, 2, 4, 4) applies same mask to all heads\n\n"
      << "4. CONCATENATION:\n   Transpose + reshape groups head outputs per token for final projection\n\n";

  heading("FORWARD AND BACKWARD");
  const Variable<float> loss = examples::cosine_sum(final_output);
  std::cout << "loss = sum(final_output * cos(0, 1, 2, ...)):\n" << loss << '\n';
  report.show_loss("two sentences", loss,
                   {{"embedding.weight", embedding.weight()},
                    {"W_q.weight", W_q.weight()},
                    {"W_k.weight", W_k.weight()},
                    {"W_v.weight", W_v.weight()},
                    {"W_o.weight", W_o.weight()}},
                   {{"The", "cat", "sat", "PAD"}, {"I", "am", "here", "PAD"}});
  report.write();
  loss.backward({.retain_graph = true});
  examples::print_leaf_gradients({{"embedding.weight", embedding.weight()},
                                  {"W_q.weight", W_q.weight()},
                                  {"W_k.weight", W_k.weight()},
                                  {"W_v.weight", W_v.weight()},
                                  {"W_o.weight", W_o.weight()}});
  // No gradient comes back through a masked score: column 3 is 0.
  const std::vector<Variable<float>> inside = grad(loss, {x, attention_weights, scaled_scores});
  examples::print_gradients(
      {{"x", inside[0]}, {"attention_weights", inside[1]}, {"scaled_scores", inside[2]}});

  // Steps 1 to 8 as a function of the weights in double, which the gradient check moves.
  const auto attend = [&](const std::vector<Variable<double>>& w) {
    const Variable<double> in = xgrad::embedding(batch, w[0]);
    const auto heads = [&](const Variable<double>& projected) {
      return transpose(reshape(projected, {batch_size, seq_len, h, d_k}), 1, 2);
    };
    const Variable<double> q = heads(linear(in, w[1])), k = heads(linear(in, w[2])),
                           v = heads(linear(in, w[3]));
    const Variable<double> scaled = matmul(q, transpose(k, -2, -1)) / std::sqrt(static_cast<double>(d_k));
    const Variable<double> output = matmul(softmax(masked_fill(scaled, blocked, -1e9), -1), v);
    return linear(reshape(transpose(output, 1, 2), in.shape()), w[4]);
  };
  std::vector<Variable<double>> weights;
  for (const Variable<float>& weight :
       {embedding.weight(), W_q.weight(), W_k.weight(), W_v.weight(), W_o.weight()})
    weights.push_back(examples::in_double(weight));
  bool right = examples::report_gradcheck(
      loss, [&](const std::vector<Variable<double>>& w) { return examples::cosine_sum(attend(w)); }, weights);

  // The library has steps 4 to 8 as one module.
  mha.load_state_dict({{"W_Q.weight", weights[1].value()},
                       {"W_K.weight", weights[2].value()},
                       {"W_V.weight", weights[3].value()},
                       {"out_proj.weight", weights[4].value()}});
  embedding_in_double.weight().assign(weights[0].value());
  right = examples::report_same("MultiHeadAttention", attend(weights),
                                mha(embedding_in_double(batch), xgrad::padding_mask(batch, pad_token))) &&
          right;
  return right ? 0 : 1;
}
