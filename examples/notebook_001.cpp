// Notebook 001: multi-head attention with a weight for each head, head by head, over a sentence of nine words
#include <cmath>
#include <iomanip>

#include "common/notebook.hpp"

using xgrad::Array, xgrad::Variable;

int main(int argc, char** argv) {
  examples::NotebookReport report(argc, argv, "Notebook 001: multi-head attention over one sentence");
  const std::vector<std::string> sentence =
      xgrad::whitespace_tokens("The quick brown fox jumps over the lazy dog");
  const std::size_t n = sentence.size();
  std::cout << "Tokenized sentence: " << examples::quoted(sentence) << "\nNumber of tokens: " << n << "\n\n";

  // Sample vectors of the words, (n, d_model); a trained model would have learned them.
  const Variable<float> embeddings(Array<float>{{1.0, 0.5, 0.2, 0.8},
                                                {0.3, 1.0, 0.7, 0.1},
                                                {0.6, 0.2, 1.0, 0.4},
                                                {0.9, 0.8, 0.3, 1.0},
                                                {0.4, 0.6, 0.8, 0.2},
                                                {0.7, 0.3, 0.5, 0.9},
                                                {1.0, 0.5, 0.2, 0.8},
                                                {0.2, 0.9, 0.4, 0.6},
                                                {0.8, 0.4, 0.9, 0.3}});
  const auto print_rows = [&](const Variable<float>& rows) {
    for (std::size_t i = 0; i < n; ++i) {
      std::cout << "  " << std::left << std::setw(4) << sentence[i] << ": "
                << select(rows, 0, static_cast<std::ptrdiff_t>(i)).detach() << '\n';
    }
    std::cout << '\n';
  };
  std::cout << "Word embeddings (4-dimensional):\n";
  print_rows(embeddings);

  // Sample vectors of the positions, of the same size.
  const Variable<float> positional_embeddings(Array<float>{{0.0, 1.0, 0.0, 1.0},
                                                           {0.1, 0.9, 0.1, 0.9},
                                                           {0.2, 0.8, 0.2, 0.8},
                                                           {0.3, 0.7, 0.3, 0.7},
                                                           {0.4, 0.6, 0.4, 0.6},
                                                           {0.5, 0.5, 0.5, 0.5},
                                                           {0.6, 0.4, 0.6, 0.4},
                                                           {0.7, 0.3, 0.7, 0.3},
                                                           {0.8, 0.2, 0.8, 0.2}});
  std::cout << "Positional embeddings (Same dimensions as word embeddings):\n";
  for (std::size_t i = 0; i < n; ++i) {
    std::cout << "  Pos " << i << " (" << sentence[i]
              << "): " << select(positional_embeddings, 0, static_cast<std::ptrdiff_t>(i)) << '\n';
  }

  // What goes into attention: the sum of both. It is a leaf, so that backward() gives its gradient, too.
  const Variable<float> input_embeddings((embeddings + positional_embeddings).value(), true);
  std::cout << "\nInput embeddings (word + positional):\n";
  print_rows(input_embeddings);
  report.show("Embeddings",
              {{"Word embeddings", embeddings},
               {"Positional embeddings", positional_embeddings},
               {"Input embeddings", input_embeddings}},
              sentence);

  const std::size_t d_model = 4, num_heads = 2, d_k = d_model / num_heads;
  xgrad::manual_seed(42);
  // (num_heads, d_model, d_k) for Q, K and V; (d_model, d_model) for the projection after the heads are
  // joined.
  const auto random_weights = [](const xgrad::Shape& shape) {
    return Variable<float>(xgrad::normal<float>(shape) * 0.3F, true);
  };
  const Variable<float> W_q = random_weights({num_heads, d_model, d_k}),
                        W_k = random_weights({num_heads, d_model, d_k}),
                        W_v = random_weights({num_heads, d_model, d_k}),
                        W_o = random_weights({d_model, d_model});
  std::cout << "W_q (Query weights) shape: " << xgrad::to_string(W_q.shape()) << '\n'
            << W_q << "\n\nW_k (Key weights) shape: " << xgrad::to_string(W_k.shape()) << '\n'
            << W_k << "\n\nW_v (Value weights) shape: " << xgrad::to_string(W_v.shape()) << '\n'
            << W_v << "\n\nW_o (Output projection weights) shape: " << xgrad::to_string(W_o.shape()) << '\n'
            << W_o << "\n\n";
  const std::vector<xgrad::NamedParameter<float>> weights{
      {"W_q", W_q}, {"W_k", W_k}, {"W_v", W_v}, {"W_o", W_o}};
  report.show("Weights", weights);

  std::vector<Variable<float>> Q, K, V;  // of each head, (n, d_k)
  for (std::size_t head = 0; head < num_heads; ++head) {
    const auto h = static_cast<std::ptrdiff_t>(head);
    Q.push_back(matmul(input_embeddings, select(W_q, 0, h)));
    K.push_back(matmul(input_embeddings, select(W_k, 0, h)));
    V.push_back(matmul(input_embeddings, select(W_v, 0, h)));
    std::cout << "=== HEAD " << head + 1 << " ===\nHead " << head + 1
              << " - Computing Q, K, V using weight matrices:\n"
              << "  Q_h = input_embeddings @ W_q[" << head
              << "]  ->  shape: " << xgrad::to_string(Q[head].shape()) << "\n  K_h = input_embeddings @ W_k["
              << head << "]  ->  shape: " << xgrad::to_string(K[head].shape())
              << "\n  V_h = input_embeddings @ W_v[" << head
              << "]  ->  shape: " << xgrad::to_string(V[head].shape()) << "\n\n";
  }

  std::vector<Variable<float>> head_outputs;  // (n, d_k) each
  for (std::size_t head = 0; head < num_heads; ++head) {
    const Variable<float> attention_scores =
        matmul(Q[head], transpose(K[head], 0, 1)) / std::sqrt(static_cast<float>(d_k));  // (n, n)
    const Variable<float> attention_weights = softmax(attention_scores, -1);             // (n, n)
    head_outputs.push_back(matmul(attention_weights, V[head]));
    std::cout << "=== HEAD " << head + 1 << " ===\nHead " << head + 1
              << " - Attention scores (Q_h @ K_h.T) scaled by sqrt(d_k): "
              << xgrad::to_string(attention_scores.shape()) << "\nHead " << head + 1
              << " - Attention weights after softmax: " << xgrad::to_string(attention_weights.shape())
              << "\nHead " << head + 1
              << " - Output (attention_weights_h @ V_h): " << xgrad::to_string(head_outputs[head].shape())
              << "\n\n";
    report.show("Head " + std::to_string(head + 1),
                {{"Q", Q[head]},
                 {"K", K[head]},
                 {"V", V[head]},
                 {"Attention scores", attention_scores},
                 {"Attention weights", attention_weights},
                 {"Output", head_outputs[head]}},
                sentence);
  }

  const Variable<float> concatenated_output = cat(head_outputs, 1);  // (n, d_model)
  std::cout << "Concatenated output from all heads: " << xgrad::to_string(concatenated_output.shape())
            << "\n\n";
  const Variable<float> final_output = matmul(concatenated_output, W_o);  // (n, d_model)
  std::cout << "Final output after output projection (concatenated_output @ W_o): "
            << xgrad::to_string(final_output.shape()) << "\n\n"
            << final_output << "\n\n";
  report.show("All heads", {{"Concatenated output", concatenated_output}, {"Final output", final_output}},
              sentence);

  std::cout << "=== Forward and backward ===\n\n";
  const Variable<float> loss = examples::cosine_sum(final_output);
  std::cout << "loss = sum(final_output * cos(0, 1, 2, ...)):\n" << loss << '\n';
  report.show_loss("the sentence", loss, weights, {sentence});
  report.write();
  loss.backward();
  const std::vector<xgrad::NamedParameter<float>> leaves{
      {"input_embeddings", input_embeddings}, {"W_q", W_q}, {"W_k", W_k}, {"W_v", W_v}, {"W_o", W_o}};
  examples::print_leaf_gradients(leaves);

  // The steps above as a function of the weights in double, which the gradient check moves.
  const auto multi_head = [&](const std::vector<Variable<double>>& w) {
    std::vector<Variable<double>> heads;
    for (const int head : {0, 1}) {
      const Variable<double> q = matmul(w[0], select(w[1], 0, head)), k = matmul(w[0], select(w[2], 0, head)),
                             v = matmul(w[0], select(w[3], 0, head));
      heads.push_back(matmul(softmax(matmul(q, transpose(k, 0, 1)) / std::sqrt(2.0), -1), v));
    }
    return examples::cosine_sum(matmul(cat(heads, 1), w[4]));
  };
  std::vector<Variable<double>> leaves_in_double;
  leaves_in_double.reserve(leaves.size());
  for (const auto& [name, leaf] : leaves) leaves_in_double.push_back(examples::in_double(leaf));
  return examples::report_gradcheck(loss, multi_head, leaves_in_double) ? 0 : 1;
}
