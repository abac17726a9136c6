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

}  // namespace

template <class T>
CausalBlock<T>::CausalBlock(const CausalConfig& config, const From& from, std::size_t number)
    : Assembled<T>("DecoderLayer"),
      config_(config),
      number_(number),
      norm1_(
          this->norm(from, names_of(config).norm1, config.hidden_size, config.norm_eps, norm_kind(config))),
      query_(this->linear(
          from, names_of(config).query,
          {config.hidden_size, config.num_attention_heads * config.head_size(), config.query_bias})),
      key_(this->linear(
          from, names_of(config).key,
          {config.hidden_size, config.key_value_heads() * config.head_size(), config.query_bias})),
      value_(this->linear(
          from, names_of(config).value,
          {config.hidden_size, config.key_value_heads() * config.head_size(), config.query_bias})),
      out_(this->linear(
          from, names_of(config).out,
          {config.num_attention_heads * config.head_size(), config.hidden_size, config.output_bias})),
      norm2_(
          this->norm(from, names_of(config).norm2, config.hidden_size, config.norm_eps, norm_kind(config))),
      up_(this->linear(from, names_of(config).up,
                       {config.hidden_size, config.intermediate_size, config.mlp_bias})),
      down_(this->linear(from, names_of(config).down,
                         {config.intermediate_size, config.hidden_size, config.mlp_bias})) {
  const CausalNames& names = names_of(config);
  if (config.gated_mlp)
    gate_ = this->linear(from, names.gate, {config.hidden_size, config.intermediate_size, config.mlp_bias});
  if (!config.query_key_norm) return;
  query_norm_ = this->rms_norm(from, names.query_norm, config.head_size(), config.norm_eps);
  key_norm_ = this->rms_norm(from, names.key_norm, config.head_size(), config.norm_eps);
}

template <class T>
Variable<T> CausalBlock<T>::head_norm(const RMSNorm<T>& norm, const Variable<T>& x) const {
  Shape heads(x.shape().begin(), x.shape().end());
  heads.back() /= config_.head_size();
  heads.push_back(config_.head_size());
  return reshape(norm(reshape(x, heads)), x.shape());
}

template <class T>
Variable<T> CausalBlock<T>::attention(const CausalPass<T>& pass, const Variable<T>& x) const {
  const std::optional<std::size_t> window = config_.window(number_);
  const AttentionOptions options{.dropout_p = this->training() ? config_.attention_dropout : 0,
                                 .scale = scale_of(config_, number_),
                                 .num_heads = config_.num_attention_heads,
                                 .num_kv_heads = config_.key_value_heads()};
  Sight<T> sight{.mask = pass.call.mask, .rotary = pass.rotary, .is_causal = true};
  if (window) sight.window = *window - 1;
  if (pass.cached == nullptr && !query_norm_ && !query_.bfloat16_weight())
    return attend(pass.call, sight, x, projection(query_), projection(key_), projection(value_), options);
  Variable<T> queries = query_(x), keys = key_(x);
  const Variable<T> values = value_(x);
  if (query_norm_) {
    queries = head_norm(*query_norm_, queries);
    keys = head_norm(*key_norm_, keys);
  }
  if (pass.cached == nullptr) return attend(pass.call, sight, queries, keys, values, options);
  if (pass.rotary != nullptr) {
    const auto& [cos, sin] = *pass.rotary;
    queries = rotary(queries, cos, sin, {.num_heads = options.num_heads});
    keys = rotary(keys, cos, sin, {.num_heads = options.num_kv_heads});
  }
  const auto& [lengths, caches] = *pass.cached;
  if (lengths.size() == 1) return caches[0].attend(number_, queries, keys, values, options);
  std::vector<Variable<T>> contexts;
  std::size_t first = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::size_t count = lengths[i];
    const auto rows = [first, count](const Variable<T>& of_all) { return narrow(of_all, 1, first, count); };
    contexts.push_back(caches[i].attend(number_, rows(queries), rows(keys), rows(values), options));
    first += count;
  }
  return cat(contexts, 1);
}

template <class T>
Variable<T> CausalBlock<T>::operator()(const CausalPass<T>& pass, const Variable<T>& x) const {
  const auto scope = this->scope();
  const Variable<T> y = x + this->drop(out_(attention(pass, norm1_(x))), config_.residual_dropout);
  const Variable<T> n = norm2_(y);
  const Variable<T> inner = gate_ ? gated_activation(config_.hidden_act, (*gate_)(n), up_(n))
                                  : activation(config_.hidden_act, up_(n));
  return y + this->drop(down_(inner), config_.residual_dropout);
}

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
    layers_.push_back(this->child(name, CausalBlock<T>(config, from.below(name), i)));
  }
  last_norm_ = this->norm(from, names.last_norm, config.hidden_size, config.norm_eps, norm_kind(config));
}

template <class T>
Variable<T> CausalBody<T>::embed(const Ids& ids, const Ids& positions) const {
  const Variable<T> words = words_(ids);
  return this->drop(positions_ ? words + (*positions_)(positions) : words, config_.embedding_dropout);
}

template <class T>
Variable<T> CausalBody<T>::layers(const CausalPass<T>& pass, Variable<T> x) const {
  for (const CausalBlock<T>& layer : layers_) {
    pass.call.keep(x);
    x = pass.checkpoints ? checkpointed(layer, pass, x) : layer(pass, x);
  }
  return (*last_norm_)(x);
}

template <class T>
Variable<T> CausalBody<T>::checkpointed(const CausalBlock<T>& layer, const CausalPass<T>& pass,
                                        const Variable<T>& x) const {
  std::optional<RotaryTables<T>> rotary;
  if (pass.rotary != nullptr) rotary = *pass.rotary;
  return checkpoint(
      [layer, input = pass.call.input, mask = pass.call.mask, rotary](const Variable<T>& from) {
        const EncoderCall<T> call{.input = input, .mask = mask};
        return layer({.call = call, .rotary = rotary ? &*rotary : nullptr}, from);
      },
      x);
}

template <class T>
Variable<T> CausalBody<T>::operator()(const EncoderCall<T>& call, bool checkpoints) const {
  const TokenPositions positions = positions_of(call.input);
  std::optional<RotaryTables<T>> rotary;
  if (rotary_)
    rotary = positions.are_counted ? (*rotary_)(positions.length)
                                   : (*rotary_)(positions.numbers, positions.length);
  return layers({.call = call, .rotary = rotary ? &*rotary : nullptr, .checkpoints = checkpoints},
                embed(call.input.input_ids, positions.numbers));
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
  std::optional<RotaryTables<T>> rotary;
  if (rotary_) rotary = {cat(cos), cat(sin)};
  const Input input{ids};
  const EncoderCall<T> call{.input = input, .mask = {}};
  return layers({.call = call, .rotary = rotary ? &*rotary : nullptr, .cached = &cached},
                embed(ids, positions));
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

template class CausalBlock<float>;
template class CausalBlock<double>;
template class CausalBody<float>;
template class CausalBody<double>;

}  // namespace xgrad::pretrained::detail
