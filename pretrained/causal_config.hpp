#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "../models/rotary_tables.hpp"
#include "config.hpp"

namespace xgrad::pretrained {

/// Families of decoders, each of which a file of pretrained/families/ reads: GPT-2 (Radford et al. 2019),
/// Llama (Touvron et al. 2023, arXiv:2302.13971; TinyLlama, SmolLM2 and Llama 3 have its layout), Mistral
/// (Jiang et al. 2023, arXiv:2310.06825), Qwen2 (Yang et al. 2024, arXiv:2407.10671; Qwen2.5) and Qwen3 (Yang
/// et al. 2025, arXiv:2505.09388).
enum class CausalFamily { gpt2, llama, mistral, qwen2, qwen3 };

/// What a decoder computes: the config.json of its folder, in the same terms for all families, with the
/// defaults of Llama. https://huggingface.co/docs/transformers/model_doc/llama#transformers.LlamaConfig
struct CausalConfig {
  CausalFamily model_type = CausalFamily::llama;
  std::size_t vocab_size = 32000;
  std::size_t hidden_size = 4096;
  std::size_t num_hidden_layers = 32;
  std::size_t num_attention_heads = 32;
  std::size_t num_key_value_heads = 0;  ///< divides num_attention_heads; 0: as many
  std::size_t head_dim = 0;             ///< 0: hidden_size / num_attention_heads
  std::size_t intermediate_size = 11008;
  std::size_t max_position_embeddings = 2048;

  Activation hidden_act = Activation::silu;
  bool gated_mlp = true;  ///< down(act(gate(x)) up(x)), else down(act(up(x)))
  bool mlp_bias = false;
  bool query_bias = false, output_bias = false;  ///< of queries, keys and values, and of attention's output
  bool query_key_norm = false;                   ///< RMSNorm of each head's queries and keys
  bool rms_norm = true;                          ///< else LayerNorm
  double norm_eps = 1e-6;
  bool scale_attention = true;                          ///< scores divided by sqrt(head_dim)
  bool scale_attention_by_layer = false;                ///< and by the layer's number, from 1 on
  std::optional<RotaryConfig> rotary = RotaryConfig();  ///< without dim; else learned positions
  std::optional<std::size_t> sliding_window = {};       ///< how many tokens a token sees, itself with them
  std::vector<bool> slides = {};                        ///< layers with the window; empty: all
  bool padding_row = true;                              ///< the embedding of pad_token_id gets no gradient
  bool tie_word_embeddings = false;                     ///< use the word embeddings as output weights

  double embedding_dropout = 0, attention_dropout = 0, residual_dropout = 0;
  double initializer_range = 0.02;  ///< standard deviation of newly initialized weights
  std::optional<std::int64_t> bos_token_id = {}, pad_token_id = {};
  std::vector<std::int64_t> eos_token_ids = {};  ///< any of which ends a text
  std::vector<std::string> id2label = {"LABEL_0", "LABEL_1"};
  std::optional<ProblemType> problem_type = {};
  std::string architecture = {};  ///< the saved class, "LlamaForCausalLM"; empty if missing in config.json
  std::string dtype = {};         ///< of the weights in the files, "bfloat16"; empty if missing

  /// The default config of a family.
  static CausalConfig of(CausalFamily family);

  /// Throws ValueError for inconsistent sizes, and for a part that the family has no name for. Every loaded
  /// config is checked.
  void check() const;

  /// Reads config.json of a folder, in transformers' spelling of version 4 or 5, or the metadata of a GGUF
  /// file of the architecture gpt2, llama or qwen2. Throws FileError for a missing or invalid field, for a
  /// field that is not known and may change what the model computes, and for other models than decoders.
  static CausalConfig from_folder(const std::string& folder);

  std::size_t key_value_heads() const {
    return num_key_value_heads > 0 ? num_key_value_heads : num_attention_heads;
  }
  std::size_t head_size() const {
    return head_dim > 0 ? head_dim : hidden_size / (num_attention_heads > 0 ? num_attention_heads : 1);
  }
  /// How many tokens layer i sees at once, if not all.
  std::optional<std::size_t> window(std::size_t i) const {
    return slides.empty() || slides.at(i) ? sliding_window : std::nullopt;
  }
  /// The maximum number of tokens of a sequence: nothing with rotary positions, which have no end.
  std::optional<std::size_t> max_length() const {
    return rotary ? std::nullopt : std::optional(max_position_embeddings);
  }

  /// config.json as Config::json writes it. Throws ValueError for a member that no file of the family can
  /// say: "config.json: sliding_window must be null, as a file of a llama model can say nothing else, got 3".
  std::string json(const std::string& architecture, const std::string& dtype) const;

 private:
  std::string read_;  // content of the file
};

}  // namespace xgrad::pretrained
