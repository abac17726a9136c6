#pragma once

#include "../../models/transformer_block.hpp"
#include "../causal_config.hpp"
#include "config/fields.hpp"
#include "gguf/gguf_fields.hpp"
#include "weights/stored_as.hpp"

// Not installed: what a family of decoders says of itself, in a file of pretrained/families/.
namespace xgrad::pretrained::detail {

/// What the parts of a body are called; null for those that a family does not have.
struct CausalNames {
  const char *words, *positions, *layers, *last_norm;  ///< "embed_tokens", null, "layers.", "norm"
  BlockNames block;
};

/// Llama's, which most families have; the norms of queries and keys are Qwen's.
inline constexpr NamedPart llama_block[]{{BlockPart::attention_norm, "input_layernorm"},
                                         {BlockPart::query, "self_attn.q_proj"},
                                         {BlockPart::key, "self_attn.k_proj"},
                                         {BlockPart::value, "self_attn.v_proj"},
                                         {BlockPart::out, "self_attn.o_proj"},
                                         {BlockPart::feed_forward_norm, "post_attention_layernorm"},
                                         {BlockPart::up, "mlp.up_proj"},
                                         {BlockPart::down, "mlp.down_proj"},
                                         {BlockPart::gate, "mlp.gate_proj"},
                                         {BlockPart::query_norm, "self_attn.q_norm"},
                                         {BlockPart::key_norm, "self_attn.k_norm"}};
inline constexpr CausalNames llama_names{.words = "embed_tokens",
                                         .positions = nullptr,
                                         .layers = "layers.",
                                         .last_norm = "norm",
                                         .block = llama_block};

/// Buffers in older files of Llama and its relatives, and the frequencies of a GGUF file, which its config
/// has.
inline constexpr const char* llama_buffers[]{"rotary_emb.inv_freq", "rope_freqs.weight"};

/// Tensors of Llama and its relatives in GGUF files.
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

/// A family: names and a reader of its config.json.
struct CausalFamilyInfo {
  CausalFamily family;
  const char* model_type;                      ///< "gpt2"
  const char* class_name;                      ///< "GPT2"
  const char* language_model = "ForCausalLM";  ///< the end of the name of the class that predicts tokens
  NamesInFiles files = {.prefix = "model.", .buffers = llama_buffers};
  CausalNames names = llama_names;
  std::span<const Spelling> other_fields = {};  ///< second names of fields
  std::span<const StoredAs> gguf_names = {};    ///< of tensors in GGUF files; none if these are not read
  bool gguf_has_pairs = false;  ///< GGUF files have queries and keys in the order of StoredAs::in_pairs

  void (*defaults)(CausalConfig&) = nullptr;
  /// Names the fields beside those that all families have.
  void (*fields)(Fields&, CausalConfig&) = nullptr;
  /// Adds to a config.json what a GGUF file says, but for tokens; null if these files are not read.
  void (*gguf_fields)(const GgufFields&, xgrad::detail::JsonTree&) = nullptr;
};

const CausalFamilyInfo& info_of(CausalFamily family);
/// "model.", the prefix of a body's parameters in a model for a task.
std::string prefix_of(CausalFamily family);
const std::vector<const CausalFamilyInfo*>& all_causal_families();

// The families

extern const CausalFamilyInfo gpt2, llama, mistral, qwen2, qwen3;

// Shared by Llama and its relatives

/// The sizes, the function, eps, dropout and rotary positions by Llama's names.
void llama_fields(Fields& fields, CausalConfig& config);
/// The same of a GGUF file.
void llama_gguf_fields(const GgufFields& file, xgrad::detail::JsonTree& config);
/// use_sliding_window, sliding_window, max_window_layers and layer_types, as Qwen has them.
void qwen_window_fields(Fields& fields, CausalConfig& config);

}  // namespace xgrad::pretrained::detail
