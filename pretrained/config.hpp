#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../models/attention/rotary_tables.hpp"
#include "../models/layers/activation.hpp"
#include "../models/transformer_block.hpp"

namespace xgrad::pretrained {

namespace detail {
struct FamilyOptions;
}

/// Families of models, each of which a file of pretrained/families/ describes.
///
/// Encoders: BERT (Devlin et al. 2019, arXiv:1810.04805; MiniLM, bge, e5 and gte have its layout), DistilBERT
/// (Sanh et al. 2019, arXiv:1910.01108), RoBERTa (Liu et al. 2019, arXiv:1907.11692), XLM-RoBERTa (Conneau et
/// al. 2020, arXiv:1911.02116), CamemBERT (Martin et al. 2020, arXiv:1911.03894), ELECTRA (Clark et al. 2020,
/// arXiv:2003.10555), MPNet (Song et al. 2020, arXiv:2004.09297), ALBERT (Lan et al. 2020, arXiv:1909.11942),
/// DeBERTa (He et al. 2020, arXiv:2006.03654), DeBERTa v2 and v3 (He et al. 2021, arXiv:2111.09543),
/// ModernBERT (Warner et al. 2024, arXiv:2412.13663), EuroBERT (Boizard et al. 2025, arXiv:2503.05500), the
/// encoder of T5 (Raffel et al. 2020, arXiv:1910.10683), Nomic BERT (Nussbaum et al. 2024, arXiv:2402.01613),
/// GTE (Zhang et al. 2024, arXiv:2407.19669) as Hugging Face's class and, gte_new, as the code on the hub
/// spells it, and Jina Embeddings v3 (Sturua et al. 2024, arXiv:2409.10173).
///
/// Decoders: GPT-2 (Radford et al. 2019), Llama (Touvron et al. 2023, arXiv:2302.13971; TinyLlama, SmolLM2
/// and Llama 3 have its layout), Mistral (Jiang et al. 2023, arXiv:2310.06825), Qwen2 (Yang et al. 2024,
/// arXiv:2407.10671; Qwen2.5) and Qwen3 (Yang et al. 2025, arXiv:2505.09388).
enum class Family {
  bert,
  distilbert,
  roberta,
  electra,
  xlm_roberta,
  camembert,
  mpnet,
  albert,
  deberta,
  deberta_v2,
  modernbert,
  eurobert,
  t5,
  nomic_bert,
  gte,
  gte_new,
  jina_embeddings_v3,
  gpt2,
  llama,
  mistral,
  qwen2,
  qwen3
};

/// Kind of a sequence's labels.
enum class ProblemType {
  regression,                   ///< numbers
  single_label_classification,  ///< exactly one class
  multi_label_classification,   ///< any number of classes
};

/// What a model computes: the config.json of its folder in the same terms for all families, with Hugging
/// Face's names and BERT's defaults. Where a family has another name for a field, as DistilBERT's dim or
/// GPT-2's n_embd, it has BERT's or Llama's here.
/// https://huggingface.co/docs/transformers/model_doc/bert#transformers.BertConfig
/// https://huggingface.co/docs/transformers/model_doc/llama#transformers.LlamaConfig
struct Config {
  Family model_type = Family::bert;
  bool is_causal = false;  ///< a token attends to itself and those before it
  std::size_t vocab_size = 30522;
  std::size_t hidden_size = 768;
  std::size_t embedding_size = 768;  ///< hidden_size except in ALBERT, DeBERTa and ELECTRA
  std::size_t num_hidden_layers = 12;
  std::size_t num_hidden_groups = 0;  ///< of layers that share their blocks; 0: each layer has its own
  std::size_t inner_group_num = 1;    ///< blocks of a group, which a layer calls in turn
  std::size_t num_attention_heads = 12;
  std::size_t num_key_value_heads = 0;  ///< divides num_attention_heads; 0: as many
  std::size_t head_dim = 0;             ///< 0: hidden_size / num_attention_heads
  std::size_t intermediate_size = 3072;
  std::size_t max_position_embeddings = 512;
  std::size_t type_vocab_size = 2;  ///< 0: no types

  Activation hidden_act = Activation::gelu;
  bool gated_mlp = false;                      ///< down(act(gate(x)) up(x)), else down(act(up(x)))
  bool query_bias = true, output_bias = true;  ///< of queries, keys and values, and of attention's output
  bool mlp_bias = true, norm_bias = true;
  QueryKeyNorm query_key_norm = QueryKeyNorm::none;  ///< an RMSNorm
  bool rms_norm = false;                             ///< else LayerNorm
  double norm_offset = 0;                            ///< added to the weights of RMSNorms: 1 in Gemma
  double layer_norm_eps = 1e-12;
  bool scale_attention = true;                        ///< scores divided by sqrt(head_dim)
  bool scale_attention_by_layer = false;              ///< and by the layer's number, from 1 on
  std::optional<double> query_pre_attn_scalar = {};   ///< in place of head_dim in that square root
  std::optional<double> attn_logit_softcapping = {};  ///< c tanh(scores / c) in place of scores
  bool scale_embeddings = false;                      ///< those of words multiplied by sqrt(hidden_size)
  bool position_biased_input = true;  ///< learned positions are added to embeddings, unless they are rotary
  std::optional<RotaryConfig> rotary = {};         ///< without dim
  std::optional<RotaryConfig> local_rotary = {};   ///< of the layers with a window, if another one
  std::size_t relative_attention_num_buckets = 0;  ///< of the biases by distance; 0: no biases
  std::size_t relative_attention_max_distance = 128;
  std::optional<std::size_t> sliding_window = {};  ///< tokens that a token sees, itself with them if causal
  std::vector<bool> slides = {};               ///< layers with the window; empty: all, or as the next says
  std::size_t global_attn_every_n_layers = 0;  ///< 0 and each n-th layer have no window; 0: all have it
  bool padding_row = true;                     ///< the embedding of pad_token_id gets no gradient
  bool tie_word_embeddings = true;  ///< use the word embeddings as output weights of token prediction

  double hidden_dropout_prob = 0.1;              ///< of embeddings and of the output of each part of a layer
  std::optional<double> embedding_dropout = {};  ///< if another one
  double attention_probs_dropout_prob = 0.1;
  double classifier_dropout = 0.1;  ///< of sequences; of tokens except in DistilBERT and DeBERTa
  double qa_dropout = 0.1;          ///< DistilBERT's, before the output of question answering
  double initializer_range = 0.02;  ///< standard deviation of newly initialized weights
  std::optional<std::int64_t> bos_token_id = {}, pad_token_id = 0;
  std::vector<std::int64_t> eos_token_ids = {};  ///< any of which ends a text
  std::vector<std::string> id2label = {"LABEL_0", "LABEL_1"};
  std::optional<ProblemType> problem_type = {};
  std::string architecture = {};  ///< the saved class, "BertForMaskedLM"; empty if missing in config.json
  std::string dtype = {};         ///< of the weights in the files, "float16"; empty if missing
  bool quantized = false;         ///< the folder has weights of 8-bit integers (quantization_config)
  std::shared_ptr<const detail::FamilyOptions> own = {};  ///< what its family alone has

  /// The default config of a family.
  static Config of(Family family);

  /// Throws ValueError for inconsistent sizes, and for a part that the family has no name for. Every loaded
  /// config is checked.
  void check() const;

  /// Reads config.json of a folder, in transformers' spelling of version 4 or 5, or the metadata of a GGUF
  /// file of the architecture gpt2, llama or qwen2. A file without model_type has that of the class in
  /// `architectures`. With `is_causal`, decoders alone are read, or encoders alone. Throws FileError for a
  /// missing or invalid field, for a field that is not known and may change what the model computes, for a
  /// path that is no folder of a model, and for unsupported models, with the reason:
  /// "model/config.json: model_type must be albert, bert, [...] or xlm-roberta, as it is a decoder, which
  /// CausalLM loads, got "gpt2"".
  static Config from_folder(const std::string& folder, std::optional<bool> is_causal = {});

  std::size_t key_value_heads() const {
    return num_key_value_heads > 0 ? num_key_value_heads : num_attention_heads;
  }
  std::size_t head_size() const {
    return head_dim > 0 ? head_dim : hidden_size / (num_attention_heads > 0 ? num_attention_heads : 1);
  }
  /// How many tokens layer i sees at once, if not all.
  std::optional<std::size_t> window(std::size_t i) const;

  /// The maximum number of tokens of a sequence: max_position_embeddings, or less in RoBERTa, whose positions
  /// begin after pad_token_id; nothing for decoders with rotary positions, which have no end.
  std::optional<std::size_t> max_length() const;

  /// Whether attention adds a bias for each distance of positions, as in MPNet and T5.
  bool is_biased_by_distance() const { return relative_attention_num_buckets > 0; }

  /// config.json for a model of the class "BertForMaskedLM" and the dtype "float32": the file that this
  /// config was read from, updated with the fields of this object; with this quantization_config, or without
  /// one. Throws ValueError for a member that no file of the family can say: "config.json: sliding_window
  /// must be null, as a file of a llama model can say nothing else, got 3".
  std::string json(const std::string& architecture, const std::string& dtype,
                   const std::string& quantization = "") const;

 private:
  std::string read_;  // content of the file
};

}  // namespace xgrad::pretrained
