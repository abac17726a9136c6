#include "causal_body.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "../../../autograd/checkpoint.hpp"
#include "../../../ops/attention/rotary.hpp"
#include "../../../ops/index/indexing.hpp"
#include "../../../ops/pointwise/arithmetic.hpp"
#include "../../../ops/shape/shapes.hpp"

namespace xgrad::pretrained::detail {
namespace {

/// Positions (batch, length) of tokens, and how many the longest sequence has.
struct TokenPositions {
  Ids numbers;
  std::size_t length;
  bool are_counted;  ///< 0 to length - 1 in each row
};

/// Padding in front of the tokens of a row does not count; all behind it does, as in Hugging Face.
TokenPositions positions_of(const Input& input) {
  const Ids& ids = input.input_ids;
  const std::size_t batch = ids.shape(0), length = ids.shape(1);
  const TokenPositions counted{counted_positions(ids), length, true};
  if (!input.attention_mask) return counted;
  TokenPositions found{counted.numbers, 1, true};
  for (std::size_t row = 0; row < batch; ++row) {
    std::size_t first = 0;
    while (first < length && (*input.attention_mask)(row, first) == 0) ++first;
    for (std::size_t i = 0; i < length; ++i)
      found.numbers(row, i) = static_cast<std::int64_t>(std::max(i, first) - first);
    found.length = std::max(found.length, length - first);
    found.are_counted = found.are_counted && first == 0;
  }
  return found.are_counted ? counted : found;
}

/// The scale of a layer's scores.
double scale_of(const CausalConfig& config, std::size_t number) {
  const double scale = config.scale_attention ? 1 / std::sqrt(static_cast<double>(config.head_size())) : 1;
  return config.scale_attention_by_layer ? scale / static_cast<double>(number + 1) : scale;
}

NormKind norm_kind(const CausalConfig& config) { return config.rms_norm ? NormKind::rms : NormKind::layer; }

const CausalNames& names_of(const CausalConfig& config) { return info_of(config.model_type).names; }

/// Of layer i.
TransformerBlockOptions block_options(const CausalConfig& config, std::size_t i) {
  TransformerBlockOptions block{
      .d_model = config.hidden_size,
      .num_heads = config.num_attention_heads,
      .num_kv_heads = config.key_value_heads(),
      .head_dim = config.head_size(),
      .d_ff = config.intermediate_size,
      .residual = Residual::pre_norm,
      .norm = norm_kind(config),
      .eps = config.norm_eps,
      .qkv_bias = config.query_bias,
      .out_bias = config.output_bias,
      .up_bias = config.mlp_bias,
      .down_bias = config.mlp_bias,
      .query_key_norm = config.query_key_norm ? QueryKeyNorm::head : QueryKeyNorm::none,
      .scale = scale_of(config, i),
      .is_causal = true,
      .activation = config.hidden_act,
      .is_gated = config.gated_mlp,
      .attention_dropout = config.attention_dropout,
      .attention_output_dropout = config.residual_dropout,
      .output_dropout = config.residual_dropout};
  if (const std::optional<std::size_t> window = config.window(i)) block.window = *window - 1;
  if (config.rotary) block.rotary = 0;
  return block;
}

}  // namespace

template <class T>
CausalBody<T>::CausalBody(const CausalConfig& config, Weights& weights)
    : Assembled<T>(info_of(config.model_type).class_name + std::string("Model")),
      config_(config),
      words_(this->embedding({weights, ""}, names_of(config).words, config.vocab_size, config.hidden_size,
                             config.padding_row ? config.pad_token_id : std::nullopt)) {
  const From from{weights, ""};
  const CausalNames& names = names_of(config);
  if (config.rotary) {
    RotaryConfig rotary = *config.rotary;
    rotary.dim = config.head_size();
    rotary_.emplace(rotary, config.max_position_embeddings);
  } else {
    positions_ = this->embedding(from, names.positions, config.max_position_embeddings, config.hidden_size);
  }
  for (std::size_t i = 0; i < config.num_hidden_layers; ++i) {
    const std::string name = layer_name(i);
    layers_.push_back(this->block(from, name, block_options(config, i), names.block));
  }
  last_norm_ = this->norm(from, names.last_norm, config.hidden_size, config.norm_eps, norm_kind(config));
}

template <class T>
Variable<T> CausalBody<T>::embed(const Ids& ids, const Ids& positions) const {
  const Variable<T> words = words_(ids);
  return this->drop(positions_ ? words + (*positions_)(positions) : words, config_.embedding_dropout);
}

template <class T>
Variable<T> CausalBody<T>::layers(const EncoderCall<T>& call, ForwardContext<T> context, Variable<T> x,
                                  bool checkpoints) const {
  for (const TransformerBlock<T>& layer : layers_) {
    call.keep(x);
    if (checkpoints) {
      ForwardContext<T> kept = context;
      kept.attentions = nullptr;
      x = checkpoint([layer, kept](const Variable<T>& input) { return layer(kept, input); }, x);
    } else {
      x = layer(context, x);
    }
    ++context.slot;
  }
  return (*last_norm_)(x);
}

template <class T>
Variable<T> CausalBody<T>::operator()(const EncoderCall<T>& call, bool checkpoints) const {
  const TokenPositions positions = positions_of(call.input);
  ForwardContext<T> context = call.context();
  if (rotary_) {
    context.rotary = {positions.are_counted ? (*rotary_)(positions.length)
                                            : (*rotary_)(positions.numbers, positions.length)};
  }
  return layers(call, std::move(context), embed(call.input.input_ids, positions.numbers), checkpoints);
}

template <class T>
Variable<T> CausalBody<T>::operator()(const Ids& ids, const CachedRows<T>& cached) const {
  Ids positions = Ids::from_shape(ids.shape());
  std::vector<Variable<T>> cos, sin;
  std::int64_t* next = positions.data();
  for (std::size_t i = 0; i < cached.lengths.size(); ++i) {
    const std::size_t first = cached.caches[i].length(), count = cached.lengths[i];
    for (std::size_t j = 0; j < count; ++j) *next++ = static_cast<std::int64_t>(first + j);
    if (!rotary_) continue;
    RotaryTables<T> tables = (*rotary_)(first, count);
    cos.push_back(std::move(tables.cos));
    sin.push_back(std::move(tables.sin));
  }
  ForwardContext<T> context{.caches = cached.caches, .new_tokens = cached.lengths};
  if (rotary_) context.rotary = {{cat(cos), cat(sin)}};
  const Input input{ids};
  const EncoderCall<T> call{.input = input, .mask = {}};
  return layers(call, std::move(context), embed(ids, positions), false);
}

template <class T>
std::vector<std::string> CausalBody<T>::embedding_names() const {
  const CausalNames& names = names_of(config_);
  if (!positions_) return {names.words};
  return {names.words, names.positions};
}

template <class T>
std::string CausalBody<T>::layer_name(std::size_t i) const {
  return names_of(config_).layers + std::to_string(i);
}

template class CausalBody<float>;
template class CausalBody<double>;

}  // namespace xgrad::pretrained::detail
