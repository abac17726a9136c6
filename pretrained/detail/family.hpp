#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bodies/body.hpp"
#include "body_options.hpp"
#include "config/fields.hpp"
#include "gguf/gguf_fields.hpp"
#include "weights/stored_as.hpp"

// Not installed: what a family says of itself, in a file of pretrained/families/.
namespace xgrad::pretrained::detail {

/// norm(act(dense(x))), before logits of tokens; both may be null.
struct TransformForm {
  const char *dense, *norm;
  Activation act;
  std::size_t out;
  bool dense_bias = true, norm_bias = true;
  bool logits_bias = true;                 ///< of the logits of tokens
  const char* logits_bias_name = nullptr;  ///< that of the family if null
};

/// What a sequence is classified by.
enum class SequencePool {
  pooler,  ///< tanh(W x_0 + b)
  first,   ///< x_0
  mean,    ///< of all tokens
  late,    ///< the mean of the logits of all tokens
};

/// classifier(drop(norm(act(dense(drop(pooled)))))), of which dense and norm may be absent.
struct SequenceForm {
  SequencePool pool;
  std::optional<TransformForm> transform = {};  ///< its norm may be null
  double drop_before = 0, drop_after = 0;
  const char* classifier = "classifier";
};

/// classifier(drop(x)), or of transformed x.
struct TokenForm {
  std::optional<TransformForm> transform = {};
  double drop = 0;
  const char* classifier = "classifier";
};

/// A family: names, a reader of its config.json, a body, and heads.
struct FamilyInfo {
  Family family;
  const char* model_type;                      ///< "bert"
  const char* class_name;                      ///< "Bert"
  bool is_causal = false;                      ///< a family of decoders
  const char* language_model = "ForCausalLM";  ///< the end of the name of a decoder that predicts tokens
  NamesInFiles files;
  BodyOptions body;
  bool narrow_embeddings = false;               ///< embedding_size is a field of its own
  std::span<const Spelling> other_fields = {};  ///< second names of fields
  std::span<const StoredAs> gguf_names = {};    ///< of tensors in GGUF files; none if these are not read
  bool gguf_has_pairs = false;  ///< GGUF files have queries and keys in the order of StoredAs::in_pairs

  void (*defaults)(Config&) = nullptr;
  /// Names the fields beside those that all families have.
  void (*fields)(Fields&, Config&) = nullptr;
  /// The rule that a config breaks, or empty; may be null.
  std::string (*broken_rule)(const Config&) = nullptr;
  /// Adds to a config.json what a GGUF file says, but for tokens; null if these files are not read.
  void (*gguf_fields)(const GgufFields&, xgrad::detail::JsonTree&) = nullptr;

  /// Makers of a body of its own; null for Body.
  std::shared_ptr<const Body<float>> (*float_body)(const Config&, Weights&) = nullptr;
  std::shared_ptr<const Body<double>> (*double_body)(const Config&, Weights&) = nullptr;

  // Heads; null for those that the family does not have.

  const char* pooler = nullptr;  ///< "pooler.dense"
  bool pooler_alone = true;      ///< a body without a head has the pooler, too
  /// Prediction of tokens: the transform, the bias and, where weights are not tied, the decoder.
  TransformForm (*prediction)(const Config&) = nullptr;
  const char *prediction_bias = nullptr, *decoder = nullptr;
  SequenceForm (*sequences)(const Config&) = nullptr;
  TokenForm (*tokens)(const Config&) = nullptr;
  TokenForm (*answers)(const Config&) = nullptr;

  BlockNames block_names(const Config& config) const {
    return config.gated_mlp && !body.gated_block.empty() ? body.gated_block : body.block;
  }

  template <class T>
  std::shared_ptr<const Body<T>> make_body(const Config& config, Weights& weights) const {
    const auto make = [this] {
      if constexpr (std::is_same_v<T, float>)
        return float_body;
      else
        return double_body;
    }();
    return make != nullptr ? make(config, weights) : std::make_shared<const Body<T>>(config, weights);
  }
};

/// What only one family has in its config; a family derives its own.
struct FamilyOptions {
  virtual ~FamilyOptions() = default;
};

/// The options of a config, which `defaults` or `fields` have put there; the default ones without any.
template <class O>
const O& options_of(const Config& config) {
  static const O otherwise;
  const auto* const own = dynamic_cast<const O*>(config.own.get());
  return own != nullptr ? *own : otherwise;
}

/// The options, to be changed: a copy of those that are there, or the default ones.
template <class O>
O& changed_options(Config& config) {
  auto copy = std::make_shared<O>(options_of<O>(config));
  O& options = *copy;
  config.own = std::move(copy);
  return options;
}

const FamilyInfo& info_of(Family family);
/// The position of the first token.
std::size_t first_position(const Config& config);

/// All families, and the activation functions by name.
const std::vector<const FamilyInfo*>& all_families();
const Names<Activation>& activation_names();

// The families

extern const FamilyInfo albert, bert, camembert, deberta, deberta_v2, distilbert, electra, eurobert, gpt2,
    gte, gte_new, jina_embeddings_v3, llama, mistral, modernbert, mpnet, nomic_bert, qwen2, qwen3, roberta,
    t5, xlm_roberta;

// Shared by BERT and those that keep its layout

/// hidden_size and the other sizes, dropouts of the layers and the function by BERT's names.
void block_fields(Fields& fields, Config& config);
/// block_fields and the dropout of classifiers.
void bert_fields(Fields& fields, Config& config);
/// Refuses positions other than learned ones.
void absolute_positions(Fields& fields);
/// The pooler: BERT's head of sequences.
SequenceForm pooled_sequences(const Config& config);
/// x_0 through a layer of its own: RoBERTa's head of sequences.
SequenceForm dense_sequences(const Config& config, Activation act);
/// norm(gelu(dense(x))): RoBERTa's head of words.
TransformForm dense_prediction(const Config& config);
TokenForm plain_tokens(const Config& config);
TokenForm plain_answers(const Config& config);

// Shared by Llama and its relatives

/// Buffers in older files, and the frequencies of a GGUF file, which its config has.
inline constexpr const char* llama_buffers[]{"rotary_emb.inv_freq", "rope_freqs.weight"};
inline constexpr NamesInFiles llama_files{.prefix = "model.", .buffers = llama_buffers};

/// Tensors in GGUF files.
inline constexpr StoredAs llama_in_gguf[]{
    {"token_embd", {"embed_tokens"}},
    {"output_norm", {"norm"}},
    {"output", {"lm_head"}},
    {"blk.*.attn_norm", {"layers.*.input_layernorm"}},
    {.tensor = "blk.*.attn_q", .parameters = {"layers.*.self_attn.q_proj"}, .in_pairs = true},
    {.tensor = "blk.*.attn_k", .parameters = {"layers.*.self_attn.k_proj"}, .in_pairs = true},
    {"blk.*.attn_v", {"layers.*.self_attn.v_proj"}},
    {"blk.*.attn_output", {"layers.*.self_attn.o_proj"}},
    {"blk.*.ffn_norm", {"layers.*.post_attention_layernorm"}},
    {"blk.*.ffn_gate", {"layers.*.mlp.gate_proj"}},
    {"blk.*.ffn_up", {"layers.*.mlp.up_proj"}},
    {"blk.*.ffn_down", {"layers.*.mlp.down_proj"}}};

/// What the models have, and the sizes of the first.
void llama_defaults(Config& config);
/// The sizes, the function, eps, dropout and rotary positions by Llama's names.
void llama_fields(Fields& fields, Config& config);
/// The same of a GGUF file.
void llama_gguf_fields(const GgufFields& file, xgrad::detail::JsonTree& config);
/// What Qwen's models have beside that, and the sizes of the first.
void qwen_defaults(Config& config);
/// use_sliding_window, sliding_window, max_window_layers and layer_types, as Qwen has them.
void qwen_window_fields(Fields& fields, Config& config);

}  // namespace xgrad::pretrained::detail
