#pragma once

#include "../family.hpp"

// Not installed: the body of BERT, which its relatives have, too.
namespace xgrad::pretrained::detail {

/// How a relative differs.
struct BertForm {
  BlockNames names;
  const char* layers;                        ///< "encoder.layer."
  bool drops_attention = true;               ///< the output of attention
  bool drops_inner = false;                  ///< what `down` gets
  Positions positions = Positions::counted;  ///< rotary: the config has RotaryOptions
  bool is_gated = false;
  bool attention_bias = true, up_bias = true, down_bias = true;
};

/// Embeddings of words, positions and types, their norm, and blocks (Devlin et al. 2019, arXiv:1810.04805).
template <class T>
class BertBody : public Body<T> {
 public:
  BertBody(const Config& config, Weights& weights, const BertForm& form);

  Variable<T> operator()(const EncoderCall<T>& call) const override;
  const Embedding<T>& words() const override { return embeddings_.words(); }
  std::vector<std::string> embedding_names() const override { return names_; }
  std::string layer_name(std::size_t i) const override { return layer_names_ + std::to_string(i); }
  bool packs() const override { return !rotary_; }

 private:
  const char* layer_names_;
  std::vector<std::string> names_{"embeddings"};
  TokenEmbeddings<T> embeddings_;
  std::optional<Linear<T>> project_;  // to the width of the layers
  std::vector<TransformerBlock<T>> layers_;
  std::optional<RotaryPositions<T>> rotary_;
};

/// A maker of such bodies, for FamilyInfo.
template <class T, const BertForm& form>
std::shared_ptr<const Body<T>> make_bert_body(const Config& config, Weights& weights) {
  return std::make_shared<const BertBody<T>>(config, weights, form);
}

inline constexpr NamedPart bert_names[]{{BlockPart::query, "attention.self.query"},
                                        {BlockPart::key, "attention.self.key"},
                                        {BlockPart::value, "attention.self.value"},
                                        {BlockPart::out, "attention.output.dense"},
                                        {BlockPart::attention_norm, "attention.output.LayerNorm"},
                                        {BlockPart::up, "intermediate.dense"},
                                        {BlockPart::down, "output.dense"},
                                        {BlockPart::feed_forward_norm, "output.LayerNorm"}};

/// Of blocks with a gate, in transformers 5.
inline constexpr NamedPart gated_names[]{{BlockPart::query, "self_attn.q_proj"},
                                         {BlockPart::key, "self_attn.k_proj"},
                                         {BlockPart::value, "self_attn.v_proj"},
                                         {BlockPart::out, "self_attn.o_proj"},
                                         {BlockPart::attention_norm, "post_attention_layernorm"},
                                         {BlockPart::gate, "mlp.gate_proj"},
                                         {BlockPart::up, "mlp.up_proj"},
                                         {BlockPart::down, "mlp.down_proj"},
                                         {BlockPart::feed_forward_norm, "post_mlp_layernorm"}};

inline constexpr BertForm bert_form{.names = bert_names, .layers = "encoder.layer."};

/// The sizes of a config's blocks.
TransformerBlockOptions block_options(const Config& config);

}  // namespace xgrad::pretrained::detail
