#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "../../models/transformer_block.hpp"
#include "../config.hpp"

// Not installed: how the body of a family is put together, beside what its config says.
namespace xgrad::pretrained::detail {

/// The names of a body's parts, in the order of their declaration; null for those that the family does not
/// have.
struct BodyOptions {
  const char* embeddings = nullptr;  ///< a module that holds the next five
  const char* words;
  const char* positions = nullptr;     ///< learned, unless they are rotary
  const char* types = nullptr;         ///< of the first and the second text
  const char* word_project = nullptr;  ///< embeddings to the width of the layers, before the norm
  const char* embedding_norm = nullptr;
  const char* project = nullptr;  ///< embeddings to the width of the layers, after the norm
  const char* layers;             ///< "encoder.layer.", before the number of a layer, or of a group of blocks
  const char* group_blocks = nullptr;  ///< before the number of a block in its group
  BlockNames block;
  BlockNames gated_block = {};          ///< with a gate, if the names are others
  const char* position_bias = nullptr;  ///< biases by distance that all layers share, if no block has them
  const char* last_norm = nullptr;

  Residual residual = Residual::post_norm;
  bool positions_after_padding = false;  ///< learned positions begin after that of padding
  bool projects_always = false;          ///< also to the same width
  bool hides_padding = false;            ///< embeddings of padding are 0
  bool drops_output = false;             ///< dropout of what the last norm gives
  std::size_t num_buckets = 0;           ///< of distances, whatever the size of the table; 0: its size

  /// What layer i has otherwise; may be null.
  void (*block_options)(const Config& config, std::size_t i, TransformerBlockOptions& options) = nullptr;
};

// Names that several families have

inline constexpr NamedPart bert_block[]{{BlockPart::query, "attention.self.query"},
                                        {BlockPart::key, "attention.self.key"},
                                        {BlockPart::value, "attention.self.value"},
                                        {BlockPart::out, "attention.output.dense"},
                                        {BlockPart::attention_norm, "attention.output.LayerNorm"},
                                        {BlockPart::up, "intermediate.dense"},
                                        {BlockPart::down, "output.dense"},
                                        {BlockPart::feed_forward_norm, "output.LayerNorm"}};

inline constexpr BodyOptions bert_body{.embeddings = "embeddings",
                                       .words = "word_embeddings",
                                       .positions = "position_embeddings",
                                       .types = "token_type_embeddings",
                                       .embedding_norm = "LayerNorm",
                                       .layers = "encoder.layer.",
                                       .block = bert_block};

/// BERT's body with other names of layers.
constexpr BodyOptions bert_body_of(const char* layers, BlockNames block) {
  BodyOptions body = bert_body;
  body.layers = layers;
  body.block = block;
  return body;
}

/// Of BERT's blocks with a gate, in transformers 5.
inline constexpr NamedPart gated_block[]{{BlockPart::query, "self_attn.q_proj"},
                                         {BlockPart::key, "self_attn.k_proj"},
                                         {BlockPart::value, "self_attn.v_proj"},
                                         {BlockPart::out, "self_attn.o_proj"},
                                         {BlockPart::attention_norm, "post_attention_layernorm"},
                                         {BlockPart::gate, "mlp.gate_proj"},
                                         {BlockPart::up, "mlp.up_proj"},
                                         {BlockPart::down, "mlp.down_proj"},
                                         {BlockPart::feed_forward_norm, "post_mlp_layernorm"}};

/// Llama's, which most decoders have; the norms of queries and keys are Qwen's.
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

inline constexpr BodyOptions llama_body{.words = "embed_tokens",
                                        .layers = "layers.",
                                        .block = llama_block,
                                        .last_norm = "norm",
                                        .residual = Residual::pre_norm};

}  // namespace xgrad::pretrained::detail
