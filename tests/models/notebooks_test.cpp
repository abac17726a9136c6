// The five notebooks, forward and backward, and their weights from their seeds.

#include <cmath>

#include <xgrad/base/random.hpp>
#include <xgrad/models/attention/positional_encoding.hpp>
#include <xgrad/models/attention/self_attention.hpp>
#include <xgrad/models/layers/embedding.hpp>
#include <xgrad/models/transformer/encoder.hpp>
#include <xgrad/models/transformer/encoder_layer.hpp>
#include <xgrad/ops/index/indexing.hpp>
#include <xgrad/ops/index/masked_fill.hpp>
#include <xgrad/ops/norm/layer_norm.hpp>
#include <xgrad/ops/norm/softmax.hpp>
#include <xgrad/ops/pointwise/elementwise.hpp>
#include <xgrad/ops/product/linear.hpp>
#include <xgrad/ops/product/matmul.hpp>
#include <xgrad/ops/reduce/reductions.hpp>
#include <xgrad/ops/shape/shapes.hpp>

#include "notebook.hpp"

namespace notebooks_test {

using xgrad::Array, xgrad::Ids, xgrad::Variable;
using xgrad_tests::Notebook;

template <class T>
using Arrays = std::map<std::string, Array<T>>;
template <class T>
using Variables = std::map<std::string, Variable<T>>;

const std::vector<std::string> everything{"intermediate", "output",   "loss", "grad",
                                          "printed",      "constant", "input"};

/// 1, cos(1), cos(2), ...: what the losses multiply the elements of the output with.
template <class T>
Array<T> cosines(const xgrad::Shape& shape) {
  Array<T> weights = Array<T>::from_shape(shape);
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights.data()[i] = static_cast<T>(std::cos(static_cast<double>(i)));
  return weights;
}

/// The loss that everything is differentiated from, and its weights.
template <class T>
void add_loss(const std::string& prefix, const Variable<T>& output, Variables<T>& v) {
  v[prefix + "loss_coef"] = Variable<T>(cosines<T>(output.shape()));
  v[prefix + "loss"] = sum(output * v[prefix + "loss_coef"]);
}

template <class T>
Variable<T> as_variable(const Ids& ids) {
  return Variable<T>(xt::cast<T>(ids));
}

template <class T>
Variable<T> parameter(const xgrad::Module<T>& module, const std::string& name) {
  for (const auto& [found, variable] : module.named_parameters()) {
    if (found == name) return variable;
  }
  throw std::out_of_range(name);
}

template <class T>
void add_values(const Variables<T>& variables, Arrays<T>& arrays) {
  for (const auto& [name, variable] : variables) arrays[name] = variable.value();
}

/// The gradients of loss, under the notebooks' names.
template <class T>
void add_gradients(const std::string& prefix, const Variable<T>& loss, const Variables<T>& of,
                   Arrays<T>& arrays) {
  std::vector<Variable<T>> inputs;
  for (const auto& [name, variable] : of) inputs.push_back(variable);
  std::size_t next = 0;
  const std::vector<Variable<T>> gradients = grad(loss, inputs, {.retain_graph = true});
  for (const auto& [name, variable] : of) arrays[prefix + name] = gradients[next++].value();
}

template <class T>
Variable<T> split_heads(const Variable<T>& x) {
  return transpose(reshape(x, {x.shape(0), x.shape(1), std::size_t{2}, x.shape(2) / 2}), 1, 2);
}

template <class T>
Variable<T> scaled(const Variable<T>& q, const Variable<T>& k) {
  return matmul(q, transpose(k, -2, -1)) / static_cast<T>(std::sqrt(static_cast<double>(q.shape(-1))));
}

/// The modules of notebook 002; made from its seed, they draw as the notebook does.
template <class T>
struct EncoderBlock {
  template <class Make>
  static auto seeded(Make make) {
    xgrad::manual_seed(123);
    return make();
  }

  xgrad::Embedding<T> embed = seeded([] { return xgrad::Embedding<T>(6, 4); });
  xgrad::LearnedPositionalEncoding<T> positions =
      seeded([] { return xgrad::LearnedPositionalEncoding<T>(10, 4); });
  xgrad::SelfAttention<T> single = seeded([] { return xgrad::SelfAttention<T>(4, 1, 2); });
  xgrad::MultiHeadAttention<T> mha = seeded([] { return xgrad::MultiHeadAttention<T>(4, 2); });
  xgrad::FeedForward<T> thrown_away{4, 8}, ffn{4, 8};
  xgrad::LayerNorm<T> ln1{4}, ln2{4};

  Variables<T> parameters() const {
    return {{"embed.weight", embed.weight()},
            {"pos_embedding.weight", parameter(positions, "pos_embedding.weight")},
            {"mha.W_Q", parameter(mha, "W_Q.weight")},
            {"mha.W_K", parameter(mha, "W_K.weight")},
            {"mha.W_V", parameter(mha, "W_V.weight")},
            {"mha.out_proj", parameter(mha, "out_proj.weight")},
            {"ffn.linear1.weight", parameter(ffn, "linear1.weight")},
            {"ffn.linear1.bias", parameter(ffn, "linear1.bias")},
            {"ffn.linear2.weight", parameter(ffn, "linear2.weight")},
            {"ffn.linear2.bias", parameter(ffn, "linear2.bias")},
            {"ln1.weight", ln1.weight()},
            {"ln1.bias", ln1.bias()},
            {"ln2.weight", ln2.weight()},
            {"ln2.bias", ln2.bias()}};
  }

  Variables<T> single_parameters() const {
    return {{"embed.weight", embed.weight()},
            {"pos_embedding.weight", parameter(positions, "pos_embedding.weight")},
            {"single.W_Q", parameter(single, "W_q.weight")},
            {"single.W_K", parameter(single, "W_k.weight")},
            {"single.W_V", parameter(single, "W_v.weight")}};
  }

  void load(const Notebook& notebook) const {
    for (const Variables<T>& group : {parameters(), single_parameters()}) {
      for (const auto& [name, variable] : group) variable.assign(notebook.array<T>(name));
    }
  }
};

template <class T>
class NotebooksTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(NotebooksTest, Types);

/// One head's attention, its steps added under their names with this ending.
template <class T>
Variable<T> add_head(const std::string& ending, const Variable<T>& q, const Variable<T>& k,
                     const Variable<T>& v, const std::string& output, Variables<T>& steps) {
  steps["Q" + ending] = q;
  steps["K" + ending] = k;
  steps["V" + ending] = v;
  steps["scores" + ending] = scaled(q, k);
  steps["weights" + ending] = softmax(steps["scores" + ending]);
  return steps[output + ending] = matmul(steps["weights" + ending], v);
}

TYPED_TEST(NotebooksTest, Walkthrough) {
  using T = TypeParam;
  const Notebook notebook("000_walkthrough");
  const auto leaf = [&](const std::string& name) { return Variable<T>(notebook.array<T>(name), true); };
  Variables<T> wanted, wanted_of_single, v;
  for (const std::string name :
       {"tok_emb.weight", "pos_emb.weight", "Q_layers.0.weight", "K_layers.0.weight", "V_layers.0.weight",
        "Q_layers.1.weight", "K_layers.1.weight", "V_layers.1.weight", "out_proj.weight"}) {
    wanted[name] = leaf(name);
  }
  for (const std::string name : {"W_Q.weight", "W_K.weight", "W_V.weight"})
    wanted_of_single[name] = leaf(name);
  for (const std::string name : {"tok_emb.weight", "pos_emb.weight"}) wanted_of_single[name] = wanted[name];

  const Ids ids = notebook.ids("ids");
  v["ids"] = as_variable<T>(ids);
  v["tok_vectors"] = embedding(ids, wanted["tok_emb.weight"]);
  v["pos_vectors"] = slice(wanted["pos_emb.weight"], 0, 0, 5);
  const Variable<T> x = v["x"] = v["tok_vectors"] + v["pos_vectors"];
  wanted["x"] = wanted_of_single["x"] = x;
  add_head("", linear(x, wanted_of_single["W_Q.weight"]), linear(x, wanted_of_single["W_K.weight"]),
           linear(x, wanted_of_single["W_V.weight"]), "Z_single", v);
  std::vector<Variable<T>> heads;
  for (const std::string h : {"0", "1"}) {
    heads.push_back(add_head("_head" + h, linear(x, wanted["Q_layers." + h + ".weight"]),
                             linear(x, wanted["K_layers." + h + ".weight"]),
                             linear(x, wanted["V_layers." + h + ".weight"]), "Z", v));
  }
  v["Z_cat"] = cat(heads, -1);
  v["Z_multi"] = linear(v["Z_cat"], wanted["out_proj.weight"]);
  add_loss("", v["Z_multi"], v);
  add_loss("single_", v["Z_single"], v);

  Arrays<T> computed;
  add_values(v, computed);
  add_gradients("grad_", v["loss"], wanted, computed);
  add_gradients("single_grad_", v["single_loss"], wanted_of_single, computed);
  notebook.expect_all(computed, everything);
}

TYPED_TEST(NotebooksTest, MultiHead) {
  using T = TypeParam;
  const Notebook notebook("001_multihead");
  Variables<T> wanted, v;
  for (const std::string name : {"W_q", "W_k", "W_v", "W_o"}) {
    v[name] = wanted[name] = Variable<T>(notebook.array<T>(name), true);
  }
  v["embeddings"] = Variable<T>(notebook.array<T>("embeddings"));
  v["positional_embeddings"] = Variable<T>(notebook.array<T>("positional_embeddings"));
  const Variable<T> x((v["embeddings"] + v["positional_embeddings"]).value(), true);
  v["input_embeddings"] = wanted["input_embeddings"] = x;
  std::vector<Variable<T>> heads;
  for (const int head : {0, 1}) {
    heads.push_back(add_head("_head" + std::to_string(head), matmul(x, select(wanted["W_q"], 0, head)),
                             matmul(x, select(wanted["W_k"], 0, head)),
                             matmul(x, select(wanted["W_v"], 0, head)), "output", v));
  }
  v["concatenated_output"] = cat(heads, 1);
  v["final_output"] = matmul(v["concatenated_output"], wanted["W_o"]);
  add_loss("", v["final_output"], v);

  Arrays<T> computed;
  add_values(v, computed);
  add_gradients("grad_", v["loss"], wanted, computed);
  notebook.expect_all(computed, everything);
}

TYPED_TEST(NotebooksTest, EncoderBlock) {
  using T = TypeParam;
  const Notebook notebook("002_encoder_block");
  const EncoderBlock<T> block;
  block.load(notebook);
  Variables<T> v;

  v["embedded_tokens"] = block.embed(notebook.ids("token_ids"));
  const Variable<T> x = v["x_with_pe"] = block.positions(v["embedded_tokens"]);
  const Variable<T> q = linear(x, parameter(block.mha, "W_Q.weight"));
  const Variable<T> k = linear(x, parameter(block.mha, "W_K.weight"));
  const Variable<T> values = linear(x, parameter(block.mha, "W_V.weight"));
  v["mha_scores"] = scaled(split_heads(q), split_heads(k));
  v["mha_context"] = scaled_dot_product_attention(q, k, values, {}, {.num_heads = 2});
  const xgrad::AttentionResult<T> attention = block.mha.with_weights(x);
  v["attn_weights_per_head"] = attention.weights;
  v["mha_out"] = block.mha(x);
  v["residual_1"] = x + v["mha_out"];
  v["normed_1"] = block.ln1(v["residual_1"]);
  v["ffn_hidden"] =
      linear(v["normed_1"], parameter(block.ffn, "linear1.weight"), parameter(block.ffn, "linear1.bias"));
  v["ffn_relu"] = relu(v["ffn_hidden"]);
  v["ffn_out"] = block.ffn(v["normed_1"]);
  v["residual_2"] = v["normed_1"] + v["ffn_out"];
  v["encoder_out"] = block.ln2(v["residual_2"]);
  v["token_ids"] = as_variable<T>(notebook.ids("token_ids"));
  v["extra_ln2_in"] = Variable<T>(notebook.array<T>("extra_ln2_in"));
  v["extra_ln2_out"] = xgrad::LayerNorm<T>(2)(v["extra_ln2_in"]);
  add_loss("", v["encoder_out"], v);

  v["single_Q"] = linear(x, parameter(block.single, "W_q.weight"));
  v["single_K"] = linear(x, parameter(block.single, "W_k.weight"));
  v["single_V"] = linear(x, parameter(block.single, "W_v.weight"));
  v["shoes_query"] = slice(select(v["single_Q"], 0, 0), 0, 1, 2);
  v["shoes_scores"] = scaled(v["shoes_query"], select(v["single_K"], 0, 0));
  v["shoes_weights"] = softmax(v["shoes_scores"]);
  v["shoes_context"] = slice(select(block.single(x), 0, 0), 0, 1, 2);
  add_loss("single_", v["shoes_context"], v);

  Arrays<T> computed;
  add_values(v, computed);
  Variables<T> wanted = block.parameters();
  for (const std::string name : {"x_with_pe", "mha_out", "normed_1", "ffn_out"}) wanted[name] = v[name];
  add_gradients("grad_", v["loss"], wanted, computed);
  Variables<T> wanted_of_single = block.single_parameters();
  wanted_of_single["x_with_pe"] = x;
  add_gradients("single_grad_", v["single_loss"], wanted_of_single, computed);

  notebook.expect_all(computed, everything);
  const Array<T> difference = attention.output.value() - v["mha_out"].value();
  EXPECT_LT(xt::amax(xt::abs(difference))(), T{1e-6});
}

TYPED_TEST(NotebooksTest, EncoderLayerIsTheEncoderBlock) {
  using T = TypeParam;
  const Notebook notebook("002_encoder_block");
  const EncoderBlock<T> block;
  block.load(notebook);
  const xgrad::TransformerEncoderLayer<T> layer({.d_model = 4, .heads = 2, .d_ff = 8});
  xgrad::StateDict<T> state;
  for (const auto& [name, part] : std::map<std::string, xgrad::Module<T>>{{"self_attn.", block.mha},
                                                                          {"feed_forward.", block.ffn},
                                                                          {"norm1.", block.ln1},
                                                                          {"norm2.", block.ln2}}) {
    for (const auto& [entry, array] : part.state_dict()) state[name + entry] = array;
  }
  layer.load_state_dict(state);

  const Variable<T> x(notebook.array<T>("x_with_pe"), true);
  const auto [output, weights] = layer.with_weights(x);
  const Variable<T> plain = layer(x);
  const Variable<T> loss = sum(plain * cosines<T>(plain.shape()));
  notebook.expect(Arrays<T>{{"encoder_out", plain.value()}});
  notebook.expect(Arrays<T>{{"encoder_out", output.value()}, {"attn_weights_per_head", weights.value()}});

  Arrays<T> gradients;
  Variables<T> wanted{{"x_with_pe", x}};
  for (const auto& [ours, theirs] :
       std::map<std::string, std::string>{{"self_attn.W_Q.weight", "mha.W_Q"},
                                          {"self_attn.out_proj.weight", "mha.out_proj"},
                                          {"feed_forward.linear1.weight", "ffn.linear1.weight"},
                                          {"norm1.bias", "ln1.bias"}}) {
    wanted[theirs] = parameter(layer, ours);
  }
  add_gradients("grad_", loss, wanted, gradients);
  notebook.expect(gradients);
}

TYPED_TEST(NotebooksTest, PaddingMask) {
  using T = TypeParam;
  const Notebook notebook("003_padding_mask");
  const Ids batch = notebook.ids("batch");
  const xgrad::Embedding<T> embedding(7, 8);
  const xgrad::MultiHeadAttention<T> mha(8, 2);
  Variables<T> v{{"embedding.weight", embedding.weight()},
                 {"W_q", parameter(mha, "W_Q.weight")},
                 {"W_k", parameter(mha, "W_K.weight")},
                 {"W_v", parameter(mha, "W_V.weight")},
                 {"W_o", parameter(mha, "out_proj.weight")}};
  Variables<T> wanted = v;
  for (const auto& [name, variable] : v) variable.assign(notebook.array<T>(name));

  const xgrad::Mask mask = xgrad::padding_mask(batch, 0);
  const xgrad::Mask blocked = !mask;
  v["src_mask"] = Variable<T>(xt::cast<T>(mask));
  v["padding_mask"] = reshape(v["src_mask"], {2, 4});
  v["x"] = embedding(batch);
  v["Q"] = linear(v["x"], v["W_q"]);
  v["K"] = linear(v["x"], v["W_k"]);
  v["V"] = linear(v["x"], v["W_v"]);
  v["Q_heads"] = split_heads(v["Q"]);
  v["K_heads"] = split_heads(v["K"]);
  v["V_heads"] = split_heads(v["V"]);
  v["scores"] = matmul(v["Q_heads"], transpose(v["K_heads"], -2, -1));
  v["scaled_scores"] = v["scores"] / T{2};
  v["masked_scores"] = masked_fill(v["scaled_scores"], blocked, T{-1e9});
  v["attention_weights"] = softmax(v["masked_scores"]);
  v["attention_output"] = matmul(v["attention_weights"], v["V_heads"]);
  v["attention_concat"] = reshape(transpose(v["attention_output"], 1, 2), {2, 4, 8});
  v["final_output"] = linear(v["attention_concat"], v["W_o"]);
  v["batch"] = as_variable<T>(batch);
  v["printed_row_sums_0_0"] = sum(select(select(v["attention_weights"], 0, 0), 0, 0), -1);
  add_loss("", v["final_output"], v);
  Arrays<T> computed;
  add_values(v, computed);
  for (const std::string name : {"x", "attention_weights", "scaled_scores"}) wanted[name] = v[name];
  add_gradients("grad_", v["loss"], wanted, computed);
  notebook.expect_all(computed, everything);

  // the module in both forms
  const auto [output, weights] = mha.with_weights(embedding(batch), mask);
  notebook.expect(Arrays<T>{{"final_output", output.value()}, {"attention_weights", weights.value()}});
  const Variable<T> x = embedding(batch);
  const Variable<T> fused = mha(x, mask);
  const Variable<T> loss = sum(fused * cosines<T>(fused.shape()));
  for (const char* name : {"attention_weights", "scaled_scores"}) wanted.erase(name);
  wanted["x"] = x;
  computed["final_output"] = fused.value();
  add_gradients("grad_", loss, wanted, computed);
  notebook.expect_all(computed, everything);
}

TYPED_TEST(NotebooksTest, SelfAttention) {
  using T = TypeParam;
  const Notebook notebook("004_self_attention");
  xgrad::manual_seed(42);
  const xgrad::SelfAttention<T> attention(2, 0, 1);
  Variables<T> wanted{{"W_q", parameter(attention, "W_q.weight")},
                      {"W_k", parameter(attention, "W_k.weight")},
                      {"W_v", parameter(attention, "W_v.weight")}};
  Arrays<T> computed;
  if constexpr (std::is_same_v<T, float>) {
    add_values(wanted, computed);
    notebook.expect_all(computed, {"param"});
  }
  for (const auto& [name, variable] : wanted) variable.assign(notebook.array<T>(name));

  const Variable<T> x(notebook.array<T>("encodings_matrix"), true);
  Variables<T> v{
      {"q", linear(x, wanted["W_q"])}, {"k", linear(x, wanted["W_k"])}, {"v", linear(x, wanted["W_v"])}};
  v["sims"] = matmul(v["q"], transpose(v["k"], 0, 1));
  v["scaled_sims"] = scaled(v["q"], v["k"]);
  v["attention_percents"] = attention.with_weights(x).weights;
  v["output"] = attention(x);
  add_loss("", v["output"], v);
  v["encodings_matrix"] = x;
  for (const std::string name : {"W_q", "W_k", "W_v"})
    v["printed_" + name + "_T"] = transpose(wanted[name], 0, 1);
  add_values(v, computed);
  wanted["encodings_matrix"] = x;
  add_gradients("grad_", v["loss"], wanted, computed);
  notebook.expect_all(computed, everything);
}

TEST(NotebookSeedsTest, MultiHeadStartsAsPyTorchsDoes) {
  xgrad::manual_seed(42);
  Arrays<float> drawn;
  for (const char* name : {"W_q", "W_k", "W_v"}) drawn[name] = xgrad::normal<float>({2, 4, 2}) * 0.3F;
  drawn["W_o"] = xgrad::normal<float>({4, 4}) * 0.3F;
  Notebook("001_multihead").expect_all(drawn, {"param"});
}

TEST(NotebookSeedsTest, EncoderBlockStartsAsPyTorchsDoes) {
  const Notebook notebook("002_encoder_block");
  const EncoderBlock<float> block;
  Arrays<float> drawn;
  add_values(block.parameters(), drawn);
  add_values(block.single_parameters(), drawn);
  notebook.expect_all(drawn, {"param"});
}

TEST(NotebookSeedsTest, PaddingMaskStartsAsPyTorchsDoes) {
  const Notebook notebook("003_padding_mask");
  xgrad::manual_seed(819740201);
  const xgrad::Embedding<float> thrown_away(7, 8), embedding(7, 8);
  const xgrad::MultiHeadAttention<float> mha(8, 2);
  notebook.expect_all(Arrays<float>{{"embedding.weight", embedding.weight().value()},
                                    {"W_q", parameter(mha, "W_Q.weight").value()},
                                    {"W_k", parameter(mha, "W_K.weight").value()},
                                    {"W_v", parameter(mha, "W_V.weight").value()},
                                    {"W_o", parameter(mha, "out_proj.weight").value()}},
                      {"param"});
}

}  // namespace notebooks_test
