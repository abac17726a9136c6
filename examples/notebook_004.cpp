// Notebook 004: a self-attention module that says which axes are rows and columns, and its steps by hand
#include <cmath>

#include "common/notebook.hpp"

using xgrad::Array, xgrad::Variable;

int main(int argc, char** argv) {
  examples::NotebookReport report(argc, argv, "Notebook 004: self-attention as a module, and by hand");
  std::cout << "# Coding Self-Attention\n\n## Implementing the SelfAttention class\n\n"
            << "xgrad::SelfAttention: W_q, W_k, W_v without biases; row_dim and col_dim name the axes of "
               "tokens and of features\n\n";

  std::cout << "## Sample token encodings (toy example)\n\n";
  const Variable<float> encodings_matrix(Array<float>{{1.16, 0.23}, {0.57, 1.36}, {4.41, -2.16}}, true);
  std::cout << "encodings_matrix:\n" << encodings_matrix.detach() << "\n\n";

  std::cout << "## Seeding and instantiation\n\n";
  xgrad::manual_seed(42);
  const int row_dim = 0, col_dim = 1;
  const xgrad::SelfAttention<float> self_attention(2, row_dim, col_dim);
  const Variable<float> original_output = self_attention(encodings_matrix);
  std::cout << "original_output = self_attention(encodings_matrix):\n" << original_output << "\n\n";

  const std::vector<std::string> words{"token 0", "token 1", "token 2"};
  report.show("Seeding and instantiation", {{"original_output", original_output.detach()}}, words);

  std::cout << "### Validate Weights and Manual Calculations\n\n";
  const std::vector<xgrad::NamedParameter<float>> weights = self_attention.named_parameters();
  const Variable<float> W_q = weights[0].second, W_k = weights[1].second, W_v = weights[2].second;
  std::cout << "W_q.weight, transposed:\n" << transpose(W_q, 0, 1) << "\n\n";
  std::cout << "W_k.weight, transposed:\n" << transpose(W_k, 0, 1) << "\n\n";
  std::cout << "W_v.weight, transposed:\n" << transpose(W_v, 0, 1) << "\n\n";
  report.show("Validate Weights and Manual Calculations", {{"W_q.weight, transposed", transpose(W_q, 0, 1)},
                                                           {"W_k.weight, transposed", transpose(W_k, 0, 1)},
                                                           {"W_v.weight, transposed", transpose(W_v, 0, 1)}});

  std::cout << "## Shapes and intermediate tensors\n\n";
  const Variable<float> q = linear(encodings_matrix, W_q), k = linear(encodings_matrix, W_k),
                        v = linear(encodings_matrix, W_v);  // (3, 2)
  std::cout << "q:\n" << q << "\n\nk:\n" << k << "\n\nv:\n" << v << "\n\n";
  const Variable<float> sims = matmul(q, transpose(k, row_dim, col_dim));  // (3, 3)
  std::cout << "sims:\n" << sims << "\n\n";
  const Variable<float> scaled_sims = sims / std::sqrt(static_cast<float>(k.shape(col_dim)));
  std::cout << "scaled_sims:\n" << scaled_sims << "\n\n";
  const Variable<float> attention_percents = softmax(scaled_sims, col_dim);  // rows sum to 1
  std::cout << "attention_percents:\n" << attention_percents << "\n\n";
  const Variable<float> final_output = matmul(attention_percents, v);  // (3, 2)
  std::cout << "final_output:\n" << final_output << "\n\n";
  report.show("Shapes and intermediate tensors",
              {{"encodings_matrix", encodings_matrix},
               {"q", q},
               {"k", k},
               {"v", v},
               {"sims", sims},
               {"scaled_sims", scaled_sims},
               {"attention_percents", attention_percents},
               {"final_output", final_output}},
              words);

  // The module runs one fused kernel, so that last bits may differ.
  const xgrad::Mask equal = xt::isclose(final_output.value(), original_output.value());
  std::cout << "final_output is close to original_output:\n" << equal << "\n\n";

  std::cout << "## Forward and backward\n\n";
  const Variable<float> output = self_attention(encodings_matrix);
  const Variable<float> loss = examples::cosine_sum(output);
  std::cout << "output:\n" << output << "\n\nloss = sum(output * cos(0, 1, 2, ...)):\n" << loss << '\n';
  report.show_loss("the loss of what was computed by hand", examples::cosine_sum(final_output),
                   {{"W_q.weight", W_q}, {"W_k.weight", W_k}, {"W_v.weight", W_v}}, {words});
  report.write();
  loss.backward();
  examples::print_leaf_gradients({{"encodings_matrix", encodings_matrix},
                                  {"W_q.weight", W_q},
                                  {"W_k.weight", W_k},
                                  {"W_v.weight", W_v}});

  // The same module in double: the gradient check moves its weights and its input.
  const xgrad::SelfAttention<double> attention_in_double(2, row_dim, col_dim);
  examples::load_in_double(attention_in_double, self_attention.state_dict());
  std::vector<Variable<double>> leaves = attention_in_double.parameters();
  leaves.push_back(examples::in_double(encodings_matrix));
  const auto loss_in_double = [&](const std::vector<Variable<double>>& inputs) {
    return examples::cosine_sum(attention_in_double(inputs.back()));
  };
  return examples::report_gradcheck(loss, loss_in_double, leaves) ? 0 : 1;
}
