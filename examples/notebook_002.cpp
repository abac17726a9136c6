// Notebook 002: an encoder block from scratch, from a sentence to its encoding
#include <algorithm>
#include <cmath>

#include "common/notebook.hpp"

using xgrad::Variable;

/// softmax(Q K^T / sqrt(head_dim)) V in each of the heads, joined and projected: the notebook's module.
/// x (batch, seq, d_model).
template <class T>
class MultiHeadSelfAttention : public xgrad::Module<T> {
 public:
  MultiHeadSelfAttention(std::size_t d_model, std::size_t num_heads)
      : xgrad::Module<T>("MultiHeadSelfAttention"),
        num_heads_(num_heads),
        W_Q_(this->child("W_Q", xgrad::Linear<T>(d_model, d_model, false))),
        W_K_(this->child("W_K", xgrad::Linear<T>(d_model, d_model, false))),
        W_V_(this->child("W_V", xgrad::Linear<T>(d_model, d_model, false))),
        out_proj_(this->child("out_proj", xgrad::Linear<T>(d_model, d_model, false))) {}

  /// The output (batch, seq, d_model) and the attention weights (batch, num_heads, seq, seq).
  xgrad::AttentionResult<T> operator()(const Variable<T>& x) const {
    const auto scope = this->scope();
    const Variable<T> q = split_heads(W_Q_(x)), k = split_heads(W_K_(x)), v = split_heads(W_V_(x));
    const Variable<T> scores = matmul(q, transpose(k, -1, -2)) / std::sqrt(static_cast<T>(q.shape(-1)));
    const Variable<T> attn_weights = softmax(scores, -1);
    const Variable<T> context = reshape(transpose(matmul(attn_weights, v), 1, 2), x.shape());
    return {out_proj_(context), attn_weights};
  }

 private:
  /// (batch, seq, d_model) to (batch, num_heads, seq, head_dim)
  Variable<T> split_heads(const Variable<T>& x) const {
    return transpose(reshape(x, {x.shape(0), x.shape(1), num_heads_, x.shape(2) / num_heads_}), 1, 2);
  }

  std::size_t num_heads_;
  xgrad::Linear<T> W_Q_, W_K_, W_V_, out_proj_;
};

/// The notebook seeds before it makes a module.
template <class Module, class... Arguments>
Module seeded(Arguments... arguments) {
  xgrad::manual_seed(123);
  return Module(arguments...);
}

int main(int argc, char** argv) {
  examples::NotebookReport report(argc, argv, "Notebook 002: an encoder block from scratch");
  std::cout << "# Sentence Embedding\n\n";
  std::string sentence = "my shoes are small, my feet are big.";
  std::erase(sentence, ',');
  const std::vector<std::string> tokens = xgrad::whitespace_tokens(sentence);
  std::vector<std::string> vocab;  // a word's id is its place
  xgrad::Ids token_ids = xgrad::zeros<std::int64_t>({tokens.size()});
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto found = std::find(vocab.begin(), vocab.end(), tokens[i]);
    token_ids(i) = found - vocab.begin();
    if (found == vocab.end()) vocab.push_back(tokens[i]);
  }
  std::cout << "Tokens: " << examples::quoted(tokens) << "\nVocab: {";
  for (std::size_t id = 0; id < vocab.size(); ++id)
    std::cout << (id > 0 ? ", '" : "'") << vocab[id] << "': " << id;
  std::cout << "}\nToken IDs (no batch): " << token_ids << "\nShape: " << xgrad::to_string(token_ids.shape())
            << "\n\n";

  token_ids.reshape({std::size_t{1}, tokens.size()});
  std::cout << "Token IDs with batch dimension: " << token_ids
            << "\nShape: " << xgrad::to_string(token_ids.shape()) << "\n\n";
  const std::size_t d_model = 4;
  const auto embed = seeded<xgrad::Embedding<float>>(vocab.size(), d_model);
  const Variable<float> embedded_tokens = embed(token_ids);
  std::cout << "Embedded Tokens with batch size = 1:\n"
            << embedded_tokens << "\nShape: " << xgrad::to_string(embedded_tokens.shape()) << "\n\n";
  report.show("Sentence Embedding", "Token IDs", token_ids);
  report.show("Sentence Embedding", {{"Embedded Tokens", embedded_tokens}}, tokens);

  std::cout << "# Positional Encoding\n\n";
  const std::size_t max_len = 10;
  const auto learned_pe = seeded<xgrad::LearnedPositionalEncoding<float>>(max_len, d_model);
  const Variable<float> x = learned_pe(embedded_tokens);
  std::cout << "Input shape: " << xgrad::to_string(embedded_tokens.shape())
            << "\nOutput shape: " << xgrad::to_string(x.shape())
            << "\nPositional Embeddings added to the input embedding: " << x << "\n\n";
  report.show("Positional Encoding", {{"x", x}}, tokens);

  std::cout << "# Single Self-Attention Head\n\n## Define Q/K/V Projections\n\n";
  xgrad::manual_seed(123);
  const xgrad::Linear<float> W_Q(d_model, d_model, false), W_K(d_model, d_model, false),
      W_V(d_model, d_model, false);
  const Variable<float> Q = W_Q(x), K = W_K(x), V = W_V(x);  // (1, 8, 4)
  std::cout << "W_Q " << W_Q.type() << " " << xgrad::to_string(W_Q.weight().shape()) << "\nQ " << Q << "\n\n";

  std::cout << "## Compute Self-Attention for a Single Token: \"shoes\"\n\n";
  const Variable<float> shoes_query = slice(select(Q, 0, 0), 0, 1, 2);             // (1, 4): token 1
  const Variable<float> all_keys = select(K, 0, 0), all_values = select(V, 0, 0);  // (8, 4)
  std::cout << "shoes_query " << shoes_query << "\n\n";
  const Variable<float> attn_scores =
      matmul(shoes_query, transpose(all_keys, 0, 1)) / std::sqrt(static_cast<float>(d_model));
  const Variable<float> attn_weights = softmax(attn_scores, -1);  // (1, 8)
  std::cout << "Attention Scores (shoes): " << attn_scores << "\nAttention Weights (shoes): " << attn_weights
            << "\n\n";
  std::cout << "## Context Vector for \"shoes\"\n\n";
  const Variable<float> shoes_context = matmul(attn_weights, all_values);
  std::cout << "Context vector for 'shoes': " << shoes_context
            << "\nShape: " << xgrad::to_string(shoes_context.shape()) << "\n\n";
  report.show("Single Self-Attention Head",
              {{"Q", Q},
               {"shoes_query", shoes_query},
               {"Attention Scores (shoes)", attn_scores},
               {"Attention Weights (shoes)", attn_weights},
               {"shoes_context", shoes_context}},
              tokens);

  std::cout << "# Multi-Head Attention\n\n";
  const auto mha = seeded<MultiHeadSelfAttention<float>>(d_model, std::size_t{2});
  const auto [mha_out, attn_weights_per_head] = mha(x);
  std::cout << "MHA Output shape: " << xgrad::to_string(mha_out.shape()) << "\nMHA Output: " << mha_out
            << "\nAttention Weights per head: " << attn_weights_per_head << "\n\n";
  report.show("Multi-Head Attention",
              {{"mha_out", mha_out}, {"Attention Weights per head", attn_weights_per_head}}, tokens);

  std::cout << "# Add & Norm\n\n";
  const Variable<float> residual_1 = x + mha_out;
  const xgrad::LayerNorm<float> layer_norm_1(d_model);
  const Variable<float> normed_1 = layer_norm_1(residual_1);
  std::cout << "After Add & Norm:\nResidual shape: " << xgrad::to_string(residual_1.shape())
            << "\nNormalized output shape: " << xgrad::to_string(normed_1.shape())
            << "\nNormalized output: " << normed_1 << "\n\n";

  std::cout << "# Feed Forward Network\n\n";
  const std::size_t hidden_dim = 8;
  // The notebook ran this cell twice: its draws count.
  const xgrad::FeedForward<float> run_before(d_model, hidden_dim);
  const xgrad::FeedForward<float> ffn(d_model, hidden_dim);
  const Variable<float> ffn_out = ffn(normed_1);
  std::cout << ffn_out << "\n\n";

  const Variable<float> residual_2 = normed_1 + ffn_out;
  std::cout << "The notebook shows here a LayerNorm over 2 features of tensors that its text does not have; "
               "this is one over the last 2 features of residual_2:\n"
            << xgrad::LayerNorm<float>(2)(slice(residual_2, -1, 2)) << "\n\n";

  std::cout << "# Add & Norm (again)\n\n";
  const xgrad::LayerNorm<float> layer_norm_2(d_model);
  const Variable<float> encoder_out = layer_norm_2(residual_2);
  std::cout << "-- After Feed-Forward --\nFFN output shape: " << xgrad::to_string(ffn_out.shape())
            << "\nFinal encoder output shape: " << xgrad::to_string(encoder_out.shape())
            << "\nFinal encoder output: " << encoder_out << "\n\n";
  report.show("Add & Norm, Feed Forward Network, Add & Norm",
              {{"residual_1", residual_1},
               {"normed_1", normed_1},
               {"ffn_out", ffn_out},
               {"residual_2", residual_2},
               {"encoder_out", encoder_out}},
              tokens);

  std::cout << "# Forward and backward\n\n";
  const Variable<float> loss = examples::cosine_sum(encoder_out);
  std::cout << "loss = sum(encoder_out * cos(0, 1, 2, ...)):\n" << loss << '\n';
  const auto named = [](const std::vector<std::pair<std::string, xgrad::Module<float>>>& modules) {
    std::vector<xgrad::NamedParameter<float>> all;
    for (const auto& [prefix, module] : modules) {
      for (const auto& [name, weight] : module.named_parameters()) all.emplace_back(prefix + name, weight);
    }
    return all;
  };
  report.show_loss("the block", loss,
                   named({{"embed.", embed},
                          {"", learned_pe},
                          {"mha.", mha},
                          {"ln1.", layer_norm_1},
                          {"ffn.", ffn},
                          {"ln2.", layer_norm_2}}),
                   {tokens});
  loss.backward({.retain_graph = true});  // the single-head loss below goes through x, too
  const auto print_module = [](const std::string& prefix, const xgrad::Module<float>& module) {
    for (const auto& [name, weight] : module.named_parameters())
      examples::print_leaf_gradients({{prefix + name, weight}});
  };
  print_module("embed.", embed);
  print_module("", learned_pe);
  print_module("mha.", mha);
  print_module("ln1.", layer_norm_1);
  print_module("ffn.", ffn);
  print_module("ln2.", layer_norm_2);
  const std::vector<Variable<float>> inside =
      grad(loss, {x, mha_out, normed_1, ffn_out}, {.retain_graph = true});
  examples::print_gradients(
      {{"x", inside[0]}, {"mha_out", inside[1]}, {"normed_1", inside[2]}, {"ffn_out", inside[3]}});

  embed.zero_grad();  // else backward() would add to what is there
  learned_pe.zero_grad();
  const Variable<float> single_loss = examples::cosine_sum(shoes_context);
  std::cout << "\nsingle head, loss = sum(shoes_context * cos(0, 1, 2, ...)):\n" << single_loss << '\n';
  report.show_loss("a single head", single_loss,
                   named({{"embed.", embed}, {"", learned_pe}, {"W_Q.", W_Q}, {"W_K.", W_K}, {"W_V.", W_V}}),
                   {});
  report.write();
  single_loss.backward({.retain_graph = true});
  print_module("embed.", embed);
  print_module("", learned_pe);
  print_module("W_Q.", W_Q);
  print_module("W_K.", W_K);
  print_module("W_V.", W_V);
  examples::print_gradients({{"x", grad(single_loss, {x})[0]}});

  // The same modules in double, with the same weights, for the gradient checks.
  const xgrad::Embedding<double> embed_64(vocab.size(), d_model);
  const xgrad::LearnedPositionalEncoding<double> pe_64(max_len, d_model);
  const MultiHeadSelfAttention<double> mha_64(d_model, 2);
  const xgrad::LayerNorm<double> ln1_64(d_model), ln2_64(d_model);
  const xgrad::FeedForward<double> ffn_64(d_model, hidden_dim);
  const xgrad::Linear<double> W_Q_64(d_model, d_model, false), W_K_64(d_model, d_model, false),
      W_V_64(d_model, d_model, false);
  using Modules = std::vector<std::pair<xgrad::Module<double>, xgrad::Module<float>>>;
  const auto load = [](const Modules& modules) {
    std::vector<Variable<double>> weights;
    for (const auto& [in_double, in_float] : modules) {
      examples::load_in_double(in_double, in_float.state_dict());
      for (const Variable<double>& weight : in_double.parameters()) weights.push_back(weight);
    }
    return weights;
  };
  const auto encode = [&] {
    const Variable<double> x = pe_64(embed_64(token_ids)), normed = ln1_64(x + mha_64(x).output);
    return ln2_64(normed + ffn_64(normed));
  };
  const auto attend_to_shoes = [&] {
    const Variable<double> x = select(pe_64(embed_64(token_ids)), 0, 0);
    const Variable<double> scores = matmul(slice(W_Q_64(x), 0, 1, 2), transpose(W_K_64(x), 0, 1)) / 2.0;
    return matmul(softmax(scores, -1), W_V_64(x));
  };
  const Modules block{{embed_64, embed},      {pe_64, learned_pe}, {mha_64, mha},
                      {ln1_64, layer_norm_1}, {ffn_64, ffn},       {ln2_64, layer_norm_2}};
  bool right = examples::report_gradcheck(
      loss, [&](const std::vector<Variable<double>>&) { return examples::cosine_sum(encode()); },
      load(block));
  const Modules single_head{
      {embed_64, embed}, {pe_64, learned_pe}, {W_Q_64, W_Q}, {W_K_64, W_K}, {W_V_64, W_V}};
  right = examples::report_gradcheck(
              single_loss,
              [&](const std::vector<Variable<double>>&) { return examples::cosine_sum(attend_to_shoes()); },
              load(single_head)) &&
          right;

  // The library has this block as one module; its parts are named as in PyTorch.
  const xgrad::TransformerEncoderLayer<double> layer({.d_model = d_model, .heads = 2, .d_ff = hidden_dim});
  const std::vector<std::pair<std::string, xgrad::Module<double>>> parts{
      {"self_attn.", mha_64}, {"norm1.", ln1_64}, {"feed_forward.", ffn_64}, {"norm2.", ln2_64}};
  xgrad::StateDict<double> state;
  for (const auto& [prefix, module] : parts) {
    for (const auto& [name, array] : module.state_dict()) state[prefix + name] = array;
  }
  layer.load_state_dict(state);
  right =
      examples::report_same("TransformerEncoderLayer", encode(), layer(pe_64(embed_64(token_ids)))) && right;
  return right ? 0 : 1;
}
