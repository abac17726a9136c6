// The notebook programs print every heading and every tensor of their notebook, in its order, and their
// gradients.

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "notebook.hpp"
#include "program.hpp"

namespace notebook_programs_test {

using xgrad_tests::Notebook;

/// A number that was printed, and half a unit of its last decimal; whole numbers are exact.
struct Number {
  double value;
  double half_unit;
};

/// The numbers of the "tensor(...)" at `at`, which is moved behind them.
std::vector<Number> read_tensor(const std::string& text, std::size_t& at) {
  std::vector<Number> numbers;
  int depth = 0;
  do {
    const char c = text[at];
    depth += (c == '[') - (c == ']');
    if (std::isdigit(static_cast<unsigned char>(c)) == 0 && c != '-') {
      ++at;
      continue;
    }
    char* end = nullptr;
    const double value = std::strtod(text.c_str() + at, &end);
    const std::string digits(text.c_str() + at, static_cast<const char*>(end));
    const std::size_t exponent = digits.find('e'), point = std::min(digits.find('.'), digits.size() - 1);
    const auto decimals = static_cast<double>(std::min(exponent, digits.size()) - point - 1);
    const double power = exponent == std::string::npos ? 0 : std::stod(digits.substr(exponent + 1));
    numbers.push_back({value, decimals > 0 ? 0.5 * std::pow(10, power - decimals) : 0});
    at += digits.size();
  } while (depth > 0 && at < text.size());
  return numbers;
}

/// A line, and what is printed after it: a tensor of the notebook's file, if it has a name, whole or row by
/// row.
struct Shown {
  std::string line;
  std::string tensor = {};
};

struct Program {
  const char* notebook;
  std::vector<Shown> shown;  // in order
  std::vector<std::string> not_printed = {};
};

const Program programs[] = {
    {"000_walkthrough",
     {{"## 1) Tokenization"},
      {"Tokens  : ['time', 'flies', 'fast']"},
      {"Token IDs:", "printed_ids"},
      {"## 2) Token embeddings + positional embeddings"},
      {"Token embeddings:", "printed_tok_vectors"},
      {"Positional embeddings:", "printed_pos_vectors"},
      {"Input embeddings X (token + position):", "printed_x"},
      {"Shape X: (5, 4)"},
      {"## 3) Q, K, V (Single Head)"},
      {"Q:", "printed_Q"},
      {"K:", "printed_K"},
      {"V:", "printed_V"},
      {"## 4) Attention Scores"},
      {"Attention scores (scaled):", "printed_scores"},
      {"Attention weights (softmax rows):", "printed_weights"},
      {"Context vectors Z (single head):", "printed_Z_single"},
      {"## 5) (Optional) Multi-Head Attention"},
      {"Concatenated heads Z (shape): (5, 4)"},
      {"Z (multi-head) projected back to emb_dim:", "printed_Z_multi"},
      {"## 6) Interpretability Notes"},
      {"## Forward and backward"},
      {"loss = sum(Z_multi * cos(0, 1, 2, ...)):", "loss"},
      {"gradient of tok_emb.weight:", "grad_tok_emb.weight"},
      {"gradient of pos_emb.weight:", "grad_pos_emb.weight"},
      {"gradient of Q_layers.0.weight:", "grad_Q_layers.0.weight"},
      {"gradient of K_layers.0.weight:", "grad_K_layers.0.weight"},
      {"gradient of V_layers.0.weight:", "grad_V_layers.0.weight"},
      {"gradient of Q_layers.1.weight:", "grad_Q_layers.1.weight"},
      {"gradient of K_layers.1.weight:", "grad_K_layers.1.weight"},
      {"gradient of V_layers.1.weight:", "grad_V_layers.1.weight"},
      {"gradient of out_proj.weight:", "grad_out_proj.weight"},
      {"gradient of x:", "grad_x"},
      {"loss = sum(Z_single * cos(0, 1, 2, ...)):", "single_loss"},
      {"gradient of tok_emb.weight:", "single_grad_tok_emb.weight"},
      {"gradient of pos_emb.weight:", "single_grad_pos_emb.weight"},
      {"gradient of W_Q.weight:", "single_grad_W_Q.weight"},
      {"gradient of W_K.weight:", "single_grad_W_K.weight"},
      {"gradient of W_V.weight:", "single_grad_W_V.weight"},
      {"gradient of x:", "single_grad_x"},
      {"the same loss in double:", "loss"},
      {"gradient check of 120 numbers in double: passed"},
      {"the same loss in double:", "single_loss"},
      {"gradient check of 80 numbers in double: passed"},
      {"the library's scaled_dot_product_attention gives the same output"}}},
    {"001_multihead",
     {{"Tokenized sentence: ['The', 'quick', 'brown', 'fox', 'jumps', 'over', 'the', 'lazy', 'dog']"},
      {"Number of tokens: 9"},
      {"Word embeddings (4-dimensional):", "printed_embeddings"},
      {"Positional embeddings", "printed_positional_embeddings"},
      {"Input embeddings (word + positional):", "printed_input_embeddings"},
      {"W_q (Query weights) shape: (2, 4, 2)", "printed_W_q"},
      {"W_k (Key weights) shape: (2, 4, 2)", "printed_W_k"},
      {"W_v (Value weights) shape: (2, 4, 2)", "printed_W_v"},
      {"W_o (Output projection weights) shape: (4, 4)", "printed_W_o"},
      {"=== HEAD 1 ==="},
      {"Q_h = input_embeddings @ W_q[0]  ->  shape: (9, 2)"},
      {"=== HEAD 2 ==="},
      {"=== HEAD 1 ==="},
      {"Attention scores (Q_h @ K_h.T) scaled by sqrt(d_k): (9, 9)"},
      {"=== HEAD 2 ==="},
      {"Concatenated output from all heads: (9, 4)"},
      {"Final output after output projection (concatenated_output @ W_o): (9, 4)", "printed_final_output"},
      {"=== Forward and backward ==="},
      {"loss = sum(final_output * cos(0, 1, 2, ...)):", "loss"},
      {"gradient of input_embeddings:", "grad_input_embeddings"},
      {"gradient of W_q:", "grad_W_q"},
      {"gradient of W_k:", "grad_W_k"},
      {"gradient of W_v:", "grad_W_v"},
      {"gradient of W_o:", "grad_W_o"},
      {"the same loss in double:", "loss"},
      {"gradient check of 100 numbers in double: passed"}}},
    {"002_encoder_block",
     {{"# Sentence Embedding"},
      {"Tokens: ['my', 'shoes', 'are', 'small', 'my', 'feet', 'are', 'big.']"},
      {"Vocab: {'my': 0, 'shoes': 1, 'are': 2, 'small': 3, 'feet': 4, 'big.': 5}"},
      {"Token IDs (no batch):", "printed_token_ids"},
      {"Token IDs with batch dimension:", "printed_token_ids"},
      {"Embedded Tokens with batch size = 1:", "printed_embedded_tokens"},
      {"# Positional Encoding"},
      {"Positional Embeddings added to the input embedding:", "printed_x_with_pe"},
      {"# Single Self-Attention Head"},
      {"## Define Q/K/V Projections"},
      {"Q ", "printed_single_Q"},
      {"## Compute Self-Attention for a Single Token: \"shoes\""},
      {"shoes_query", "printed_shoes_query"},
      {"Attention Scores (shoes):", "printed_shoes_scores"},
      {"Attention Weights (shoes):", "printed_shoes_weights"},
      {"## Context Vector for \"shoes\""},
      {"Context vector for 'shoes':", "printed_shoes_context"},
      {"# Multi-Head Attention"},
      {"MHA Output:", "printed_mha_out"},
      {"Attention Weights per head:", "printed_attn_weights_per_head"},
      {"# Add & Norm"},
      {"Normalized output:", "printed_normed_1"},
      {"# Feed Forward Network", "printed_ffn_out"},
      {"over the last 2 features of residual_2:", "extra_ln2_out"},
      {"# Add & Norm (again)"},
      {"Final encoder output:", "printed_encoder_out"},
      {"# Forward and backward"},
      {"loss = sum(encoder_out * cos(0, 1, 2, ...)):", "loss"},
      {"gradient of embed.weight:", "grad_embed.weight"},
      {"gradient of pos_embedding.weight:", "grad_pos_embedding.weight"},
      {"gradient of mha.W_Q.weight:", "grad_mha.W_Q"},
      {"gradient of mha.W_K.weight:", "grad_mha.W_K"},
      {"gradient of mha.W_V.weight:", "grad_mha.W_V"},
      {"gradient of mha.out_proj.weight:", "grad_mha.out_proj"},
      {"gradient of ln1.weight:", "grad_ln1.weight"},
      {"gradient of ln1.bias:", "grad_ln1.bias"},
      {"gradient of ffn.linear1.weight:", "grad_ffn.linear1.weight"},
      {"gradient of ffn.linear1.bias:", "grad_ffn.linear1.bias"},
      {"gradient of ffn.linear2.weight:", "grad_ffn.linear2.weight"},
      {"gradient of ffn.linear2.bias:", "grad_ffn.linear2.bias"},
      {"gradient of ln2.weight:", "grad_ln2.weight"},
      {"gradient of ln2.bias:", "grad_ln2.bias"},
      {"gradient of x:", "grad_x_with_pe"},
      {"gradient of mha_out:", "grad_mha_out"},
      {"gradient of normed_1:", "grad_normed_1"},
      {"gradient of ffn_out:", "grad_ffn_out"},
      {"loss = sum(shoes_context * cos(0, 1, 2, ...)):", "single_loss"},
      {"gradient of embed.weight:", "single_grad_embed.weight"},
      {"gradient of pos_embedding.weight:", "single_grad_pos_embedding.weight"},
      {"gradient of W_Q.weight:", "single_grad_single.W_Q"},
      {"gradient of W_K.weight:", "single_grad_single.W_K"},
      {"gradient of W_V.weight:", "single_grad_single.W_V"},
      {"gradient of x:", "single_grad_x_with_pe"},
      {"the same loss in double:", "loss"},
      {"gradient check of 220 numbers in double: passed"},
      {"the same loss in double:", "single_loss"},
      {"gradient check of 112 numbers in double: passed"},
      {"the library's TransformerEncoderLayer gives the same output"}},
     {"printed_encoder_out_cell69"}},  // of tensors that the notebook's text does not have
    {"003_padding_mask",
     {{"COMPLETE TRANSFORMER ATTENTION WALKTHROUGH"},
      {"STEP 0: Input Sentences"},
      {"Token IDs:", "printed_batch"},
      {"STEP 1: Convert token IDs"},
      {"Sample embedding for 'The' (token 1):", "printed_x_0_0"},
      {"\n", "printed_x"},
      {"The table that these rows come from:", "printed_embedding_table"},
      {"STEP 2: Create padding mask"},
      {"Padding mask (1=real, 0=padding):", "printed_padding_mask"},
      {"Reshaped for attention: (2, 1, 1, 4)", "printed_src_mask"},
      {"STEP 3: Multi-Head Attention Parameters"},
      {"STEP 4: Project to Q, K, V"},
      {"Q for first token of first sentence:", "printed_Q_0_0"},
      {"\n", "printed_Q"},
      {"STEP 5: Reshape to split heads"},
      {"Q_reshaped[0, 0] (first token, both heads):", "printed_Q_reshaped_0_0"},
      {"  Head 0:"},
      {"  Head 1:"},
      {"STEP 6: Scaled Dot-Product Attention"},
      {"6a. Compute attention scores: Q @ K^T"},
      {"Attention scores for Sentence 0, Head 0:", "printed_scores_0_0"},
      {"Each row", "printed_scores"},
      {"6b. Scale by sqrt(d_k) = sqrt(4) = 2.00", "printed_src_mask"},
      {"6c. Apply padding mask", "printed_src_mask"},
      {"Scores shape: (2, 2, 4, 4)", "printed_scaled_scores"},
      {"Scores after masking", "masked_scores"},
      {"6d. Softmax (normalize each row)"},
      {"Attention weights (Sentence 0, Head 0):", "printed_attention_weights_0_0"},
      {"Row sums (should be ~1.0):", "printed_row_sums_0_0"},
      {"6e. Multiply by V"},
      {"Attention output for first token, Head 0:", "printed_attention_output_0_0_0"},
      {"STEP 7: Concatenate heads back together"},
      {"First token after concatenation:", "printed_attention_concat_0_0"},
      {"STEP 8: Final linear projection (W_o)"},
      {"Final output for first token:", "printed_final_output_0_0"},
      {"SHAPE EVOLUTION SUMMARY"},
      {"WHY RESHAPING IS NECESSARY"},
      {"FORWARD AND BACKWARD"},
      {"loss = sum(final_output * cos(0, 1, 2, ...)):", "loss"},
      {"gradient of embedding.weight:", "grad_embedding.weight"},
      {"gradient of W_q.weight:", "grad_W_q"},
      {"gradient of W_k.weight:", "grad_W_k"},
      {"gradient of W_v.weight:", "grad_W_v"},
      {"gradient of W_o.weight:", "grad_W_o"},
      {"gradient of x:", "grad_x"},
      {"gradient of attention_weights:", "grad_attention_weights"},
      {"gradient of scaled_scores:", "grad_scaled_scores"},
      {"the same loss in double:", "loss"},
      {"gradient check of 312 numbers in double: passed"},
      {"the library's MultiHeadAttention gives the same output"}}},
    {"004_self_attention",
     {{"## Implementing the SelfAttention class"},
      {"## Sample token encodings (toy example)"},
      {"encodings_matrix:", "encodings_matrix"},
      {"## Seeding and instantiation"},
      {"original_output", "printed_original_output"},
      {"### Validate Weights and Manual Calculations"},
      {"W_q.weight, transposed:", "printed_W_q_T"},
      {"W_k.weight, transposed:", "printed_W_k_T"},
      {"W_v.weight, transposed:", "printed_W_v_T"},
      {"q:", "printed_q"},
      {"k:", "printed_k"},
      {"v:", "printed_v"},
      {"sims:", "printed_sims"},
      {"scaled_sims:", "printed_scaled_sims"},
      {"attention_percents:", "printed_attention_percents"},
      {"final_output:", "printed_output"},
      {"final_output is close to original_output:\ntensor([[True, True],\n        [True, True],\n        "
       "[True, True]])"},
      {"## Forward and backward"},
      {"output:", "printed_output"},
      {"loss = sum(output * cos(0, 1, 2, ...)):", "loss"},
      {"gradient of encodings_matrix:", "grad_encodings_matrix"},
      {"gradient of W_q.weight:", "grad_W_q"},
      {"gradient of W_k.weight:", "grad_W_k"},
      {"gradient of W_v.weight:", "grad_W_v"},
      {"the same loss in double:", "loss"},
      {"gradient check of 18 numbers in double: passed"}}}};

void PrintTo(const Program& program, std::ostream* out) { *out << program.notebook; }

class NotebookProgramTest : public testing::TestWithParam<Program> {
 protected:
  /// Reads the array of that name from the next tensors of the text behind `at`, and moves it behind them.
  void expect_tensor(const std::string& name, const std::string& text, std::size_t& at) const {
    const xgrad::Array<double> expected = notebook.array<double>(name);
    const double tolerance = notebook.tolerance(name);
    const bool rounded = name.rfind("printed_", 0) == 0;
    std::size_t compared = 0;
    while (compared < expected.size()) {
      at = text.find("tensor(", at);
      ASSERT_NE(at, std::string::npos) << name << " is not printed";
      at += 7;
      for (const Number& number : read_tensor(text, at)) {
        if (compared == expected.size()) {
          ASSERT_TRUE(notebook.cut_off(name)) << name << " is part of a larger tensor";
          break;
        }
        ASSERT_NEAR(number.value, expected.data()[compared], tolerance + (rounded ? 0 : number.half_unit))
            << name << " " << compared;
        ++compared;
      }
    }
  }

  const Notebook notebook{GetParam().notebook};
};

TEST_P(NotebookProgramTest, PrintsWhatTheNotebookPrintsAndTheGradients) {
  const std::string text = xgrad_tests::output_of("notebook_" + std::string(GetParam().notebook, 3));
  std::size_t at = 0;
  for (const auto& [line, tensor] : GetParam().shown) {
    const std::size_t found = text.find(line, at);
    ASSERT_NE(found, std::string::npos) << line << " is not printed, or not in this order";
    at = found + line.size();
    if (!tensor.empty()) {
      ASSERT_NO_FATAL_FAILURE(expect_tensor(tensor, text, at)) << line;
    }
  }
}

TEST_P(NotebookProgramTest, NoTensorOfTheNotebookIsForgotten) {
  std::vector<std::string> shown = GetParam().not_printed;
  for (const auto& [line, tensor] : GetParam().shown) shown.push_back(tensor);
  for (const char* role : {"printed", "loss", "grad"}) {
    EXPECT_FALSE(notebook.names(role).empty());
    for (const std::string& name : notebook.names(role))
      EXPECT_NE(std::find(shown.begin(), shown.end(), name), shown.end()) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Notebooks, NotebookProgramTest, testing::ValuesIn(programs),
                         [](const auto& info) { return "notebook_" + std::string(info.param.notebook, 3); });

}  // namespace notebook_programs_test
