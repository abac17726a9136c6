#pragma once

#include <optional>
#include <string>

#include "../../base/error.hpp"
#include "../attention/multi_head_attention.hpp"
#include "../transformer_block.hpp"
#include "sizes.hpp"

namespace xgrad::detail {

/// Of an EncoderConfig or a DecoderConfig. Throws ValueError in the name of `type`.
template <class Config>
TransformerBlockOptions block_options(const char* type, const Config& config) {
  checked_size(type, "d_model", config.d_model);
  checked_size(type, "heads", config.heads);
  checked_size(type, "d_ff", config.d_ff);
  checked_probability(type, "dropout", config.dropout);
  if (config.d_model % config.heads != 0)
    fail<ValueError>(type, ": d_model must be divisible by heads, got ", config.d_model, " and ",
                     config.heads);
  return {.d_model = config.d_model,
          .num_heads = config.heads,
          .d_ff = config.d_ff,
          .residual = config.norm_first ? Residual::pre_norm : Residual::post_norm,
          .eps = config.eps,
          .qkv_bias = config.bias,
          .out_bias = config.bias,
          .is_causal = config.is_causal,
          .activation = config.activation,
          .attention_dropout = config.dropout,
          .attention_output_dropout = config.dropout,
          .inner_dropout = config.dropout,
          .output_dropout = config.dropout};
}

/// Newly initialized layers, those of attention as MultiHeadAttention has them: its W_Q, W_K, W_V and
/// out_proj are drawn together, when the first of them is asked for.
template <class T>
class InitialAttention : public InitialLayers<T> {
 public:
  explicit InitialAttention(InitialWeights initial) : initial_(initial) {}

  Linear<T> linear(const std::string& name, std::size_t in, std::size_t out, bool bias) override {
    if (name.ends_with(".W_Q")) {
      drawn_ = attention_projections<T>(in, bias, initial_);
      return drawn_->q;
    }
    if (name.ends_with(".W_K")) return drawn_->k;
    if (name.ends_with(".W_V")) return drawn_->v;
    if (name.ends_with(".out_proj")) return drawn_->out;
    return InitialLayers<T>::linear(name, in, out, bias);
  }

 private:
  InitialWeights initial_;
  std::optional<AttentionProjections<T>> drawn_;
};

}  // namespace xgrad::detail
