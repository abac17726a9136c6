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
  BlockBiases biases = {};
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
  std::vector<PostNormBlock<T>> layers_;
  std::optional<RotaryPositions<T>> rotary_;
};

/// A maker of such bodies, for FamilyInfo.
template <class T, const BertForm& form>
std::shared_ptr<const Body<T>> make_bert_body(const Config& config, Weights& weights) {
  return std::make_shared<const BertBody<T>>(config, weights, form);
}

inline constexpr BlockNames bert_names{
    "attention.self.query",       "attention.self.key", "attention.self.value", "attention.output.dense",
    "attention.output.LayerNorm", "intermediate.dense", "output.dense",         "output.LayerNorm"};

/// Of blocks with a gate, in transformers 5.
inline constexpr BlockNames gated_names{.query = "self_attn.q_proj",
                                        .key = "self_attn.k_proj",
                                        .value = "self_attn.v_proj",
                                        .out = "self_attn.o_proj",
                                        .norm1 = "post_attention_layernorm",
                                        .up = "mlp.up_proj",
                                        .down = "mlp.down_proj",
                                        .norm2 = "post_mlp_layernorm",
                                        .gate = "mlp.gate_proj"};

inline constexpr BertForm bert_form{.names = bert_names, .layers = "encoder.layer."};

/// The sizes of a config's blocks.
BlockForm block_form(const Config& config);

}  // namespace xgrad::pretrained::detail
