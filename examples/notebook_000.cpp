// Notebook 000: self-attention step by step, with one head and with two, from written weights
#include <cmath>
#include <cstdint>
#include <map>

#include "common/notebook.hpp"

using xgrad::Variable;

int main(int argc, char** argv) {
  examples::NotebookReport report(argc, argv,
                                  "Notebook 000: self-attention step by step, with one head and with two");
  xgrad::set_print_options({.precision = 4, .sci_mode = false});
  xgrad::manual_seed(0);

  std::cout << "## 1) Tokenization -> Token IDs\n\n";
  const std::map<std::string, std::int64_t> vocab{{"<pad>", 0}, {"<bos>", 1}, {"<eos>", 2},
                                                  {"time", 3},  {"flies", 4}, {"fast", 5}};
  const std::string sentence = "Time flies fast";
  const std::vector<std::string> tokens = xgrad::whitespace_tokens(xgrad::to_ascii_lowercase(sentence));

  xgrad::Ids ids = xgrad::zeros<std::int64_t>({tokens.size() + 2});
  ids(0) = vocab.at("<bos>");
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto known = vocab.find(tokens[i]);
    ids(i + 1) = known != vocab.end() ? known->second : vocab.at("<pad>");
  }
  ids(tokens.size() + 1) = vocab.at("<eos>");
  std::cout << "Sentence: " << sentence << "\nTokens  : " << examples::quoted(tokens)
            << "\nToken IDs: " << ids << "\n\n";
  report.show("1) Tokenization", "Token IDs", ids);
  std::vector<std::string> words{"<bos>"};
  words.insert(words.end(), tokens.begin(), tokens.end());
  words.emplace_back("<eos>");

  std::cout << "## 2) Token embeddings + positional embeddings\n\n";
  const std::size_t emb_dim = 4, context_len = 8;  // a longer context than is needed here
  const xgrad::Embedding<float> tok_emb(vocab.size(), emb_dim), pos_emb(context_len, emb_dim);
  tok_emb.weight().assign({{0.00, 0.00, 0.00, 0.00},     // <pad>
                           {0.10, 0.20, 0.30, 0.40},     // <bos>
                           {0.20, 0.10, -0.10, 0.00},    // <eos>
                           {0.50, 0.10, 0.00, -0.20},    // time
                           {0.30, -0.10, 0.40, 0.10},    // flies
                           {0.05, 0.60, -0.20, 0.10}});  // fast
  pos_emb.weight().assign({{0.00, 0.00, 0.00, 0.00},
                           {0.01, 0.02, 0.03, 0.04},
                           {0.02, 0.01, -0.01, 0.00},
                           {0.03, 0.00, 0.01, -0.02},
                           {0.04, -0.01, 0.02, -0.01},
                           {0.05, 0.02, 0.00, 0.01},
                           {0.06, 0.03, -0.02, 0.02},
                           {0.07, 0.01, 0.01, 0.03}});

  const xgrad::Ids positions = xt::arange<std::int64_t>(0, static_cast<std::int64_t>(ids.size()));
  const Variable<float> tok_vectors = tok_emb(ids);        // (seq_len, emb_dim)
  const Variable<float> pos_vectors = pos_emb(positions);  // (seq_len, emb_dim)
  const Variable<float> x = tok_vectors + pos_vectors;
  std::cout << "Token embeddings:\n"
            << tok_vectors << "\n\nPositional embeddings:\n"
            << pos_vectors << "\n\nInput embeddings X (token + position):\n"
            << x << "\n\nShape X: " << xgrad::to_string(x.shape()) << "\n\n";
  report.show(
      "2) Token embeddings + positional embeddings",
      {{"Token embeddings", tok_vectors}, {"Positional embeddings", pos_vectors}, {"Input embeddings X", x}},
      words);

  std::cout << "## 3) Q, K, V (Single Head)\n\n";
  const std::size_t head_dim = 2;
  const xgrad::Linear<float> W_Q(emb_dim, head_dim, false), W_K(emb_dim, head_dim, false),
      W_V(emb_dim, head_dim, false);
  W_Q.weight().assign({{0.5, 0.0, 0.5, 0.0}, {0.0, 0.5, 0.0, -0.5}});
  W_K.weight().assign({{0.4, -0.1, 0.3, 0.0}, {-0.2, 0.6, 0.1, 0.2}});
  W_V.weight().assign({{0.3, 0.1, -0.2, 0.2}, {0.1, -0.3, 0.4, 0.0}});

  const Variable<float> Q = W_Q(x), K = W_K(x), V = W_V(x);  // (seq_len, head_dim)
  std::cout << "Q:\n" << Q << "\n\nK:\n" << K << "\n\nV:\n" << V << "\n\n";
  report.show("3) Q, K, V", {{"Q", Q}, {"K", K}, {"V", V}}, words);

  std::cout << "## 4) Attention Scores -> Weights -> Context\n\n";
  const float scale = std::sqrt(static_cast<float>(head_dim));
  const Variable<float> scores = matmul(Q, transpose(K, 0, 1)) / scale;  // (seq_len, seq_len)
  const Variable<float> weights = softmax(scores, -1);                   // a distribution for each query
  const Variable<float> Z_single = matmul(weights, V);                   // (seq_len, head_dim)
  std::cout << "Attention scores (scaled):\n"
            << scores << "\n\nAttention weights (softmax rows):\n"
            << weights << "\n\nContext vectors Z (single head):\n"
            << Z_single << "\n\n";
  report.show("4) Attention",
              {{"Attention scores", scores}, {"Attention weights", weights}, {"Z_single", Z_single}}, words);

  std::cout << "## 5) (Optional) Multi-Head Attention\n\n";
  const std::size_t num_heads = 2, d_out = num_heads * head_dim;
  std::vector<xgrad::Linear<float>> Q_layers, K_layers, V_layers;
  for (std::vector<xgrad::Linear<float>>* layers : {&Q_layers, &K_layers, &V_layers}) {
    for (std::size_t h = 0; h < num_heads; ++h) layers->emplace_back(emb_dim, head_dim, false);
  }
  Q_layers[0].weight().assign(W_Q.weight().value());  // head 0 as before
  K_layers[0].weight().assign(W_K.weight().value());
  V_layers[0].weight().assign(W_V.weight().value());
  Q_layers[1].weight().assign({{0.2, 0.2, 0.4, 0.0}, {0.1, 0.3, -0.1, 0.3}});
  K_layers[1].weight().assign({{0.1, 0.3, 0.2, -0.1}, {0.2, 0.1, -0.2, 0.2}});
  V_layers[1].weight().assign({{0.2, -0.1, 0.1, 0.3}, {-0.1, 0.2, 0.0, 0.1}});

  std::vector<Variable<float>> head_outputs;
  for (std::size_t h = 0; h < num_heads; ++h) {
    const Variable<float> Qh = Q_layers[h](x), Kh = K_layers[h](x), Vh = V_layers[h](x);
    const Variable<float> scores_h = matmul(Qh, transpose(Kh, 0, 1)) / scale;
    head_outputs.push_back(matmul(softmax(scores_h, -1), Vh));
  }
  const Variable<float> Z_cat = cat(head_outputs, -1);  // (seq_len, d_out)
  const xgrad::Linear<float> out_proj(d_out, emb_dim, false);
  out_proj.weight().assign(
      {{0.5, 0.0, 0.3, 0.0}, {0.0, 0.4, 0.0, 0.6}, {0.2, -0.1, 0.5, 0.0}, {0.1, 0.0, 0.0, 0.3}});
  const Variable<float> Z_multi = out_proj(Z_cat);  // (seq_len, emb_dim)
  std::cout << "Concatenated heads Z (shape): " << xgrad::to_string(Z_cat.shape())
            << "\nZ (multi-head) projected back to emb_dim:\n"
            << Z_multi << "\n\n";
  report.show("5) Multi-Head Attention", {{"Z_cat", Z_cat}, {"Z_multi", Z_multi}}, words);

  std::cout
      << "## 6) Interpretability Notes\n\n"
      << "A row of the attention weights tells how much a query token listens to each token; its context "
         "vector is\n"
      << "the mixture of all value vectors with these weights. Several heads can see several patterns.\n\n";

  std::cout << "## Forward and backward\n\n";
  xgrad::set_print_options({});  // the gradients are small: let them be shown in scientific notation
  const std::vector<xgrad::NamedParameter<float>> parameters{
      {"tok_emb.weight", tok_emb.weight()},        {"pos_emb.weight", pos_emb.weight()},
      {"Q_layers.0.weight", Q_layers[0].weight()}, {"K_layers.0.weight", K_layers[0].weight()},
      {"V_layers.0.weight", V_layers[0].weight()}, {"Q_layers.1.weight", Q_layers[1].weight()},
      {"K_layers.1.weight", K_layers[1].weight()}, {"V_layers.1.weight", V_layers[1].weight()},
      {"out_proj.weight", out_proj.weight()}};
  const Variable<float> loss = examples::cosine_sum(Z_multi);
  std::cout << "two heads, loss = sum(Z_multi * cos(0, 1, 2, ...)):\n" << loss << '\n';
  report.show_loss("two heads", loss, parameters, {words});
  loss.backward({.retain_graph = true});  // the one-head loss below goes through x, too
  examples::print_leaf_gradients(parameters);
  examples::print_gradients({{"x", grad(loss, {x}, {.retain_graph = true})[0]}});

  tok_emb.zero_grad();  // else backward() would add to what is there
  pos_emb.zero_grad();
  const Variable<float> single_loss = examples::cosine_sum(Z_single);
  std::cout << "\none head, loss = sum(Z_single * cos(0, 1, 2, ...)):\n" << single_loss << '\n';
  const std::vector<xgrad::NamedParameter<float>> single_parameters{{"tok_emb.weight", tok_emb.weight()},
                                                                    {"pos_emb.weight", pos_emb.weight()},
                                                                    {"W_Q.weight", W_Q.weight()},
                                                                    {"W_K.weight", W_K.weight()},
                                                                    {"W_V.weight", W_V.weight()}};
  report.show_loss("one head", single_loss, single_parameters, {words});
  report.write();
  single_loss.backward({.retain_graph = true});
  examples::print_leaf_gradients(single_parameters);
  examples::print_gradients({{"x", grad(single_loss, {x})[0]}});

  // The steps above as functions of the weights in double, which the gradient check moves.
  using Weights = std::vector<Variable<double>>;
  const auto attend = [&](const Weights& w, std::size_t first) {
    const Variable<double> x = embedding(ids, w[0]) + embedding(positions, w[1]);
    const Variable<double> Q = linear(x, w[first]), K = linear(x, w[first + 1]), V = linear(x, w[first + 2]);
    return matmul(softmax(matmul(Q, transpose(K, 0, 1)) / std::sqrt(2.0), -1), V);
  };
  const auto two_heads = [&](const Weights& w) {
    return examples::cosine_sum(linear(xgrad::cat<double>({attend(w, 2), attend(w, 5)}, -1), w[8]));
  };
  const auto one_head = [&](const Weights& w) { return examples::cosine_sum(attend(w, 2)); };
  Weights of_two, of_one;
  for (const auto& [name, weight] : parameters) of_two.push_back(examples::in_double(weight));
  for (const auto& [name, weight] : single_parameters) of_one.push_back(examples::in_double(weight));
  bool right = examples::report_gradcheck(loss, two_heads, of_two);
  right = examples::report_gradcheck(single_loss, one_head, of_one) && right;

  const Variable<double> in = embedding(ids, of_one[0]) + embedding(positions, of_one[1]);
  right = examples::report_same("scaled_dot_product_attention", attend(of_one, 2),
                                scaled_dot_product_attention(linear(in, of_one[2]), linear(in, of_one[3]),
                                                             linear(in, of_one[4]))) &&
          right;
  return right ? 0 : 1;
}
