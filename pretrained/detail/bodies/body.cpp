#include "body.hpp"

#include <algorithm>
#include <limits>
#include <variant>

#include "../../../ops/attention/attention_with_weights.hpp"
#include "../../../ops/attention/detail/int8_after_attention.hpp"
#include "../../../ops/attention/detail/packed_self_attention.hpp"
#include "../../../ops/attention/rotary.hpp"
#include "../../../ops/attention/self_attention.hpp"
#include "../../../ops/index/embedding.hpp"
#include "../../../ops/index/indexing.hpp"
#include "../../../ops/pointwise/arithmetic.hpp"
#include "../../../ops/pointwise/elementwise.hpp"
#include "../../../ops/pointwise/gated.hpp"
#include "../../../ops/pointwise/masked_fill.hpp"
#include "../family.hpp"
#include "../ids.hpp"

namespace xgrad::pretrained::detail {
namespace {

constexpr std::size_t most_kept_angles = std::size_t{1} << 22;

/// Of queries, keys and values.
std::size_t width_of(const BlockForm& form) {
  return form.head_dim == 0 ? form.size : form.heads * form.head_dim;
}

template <class T>
AttentionOptions with_sight(AttentionOptions options, const Sight<T>& sight) {
  options.is_causal = sight.is_causal;
  options.window_left = sight.window;
  if (!sight.is_causal) options.window_right = sight.window;
  return options;
}

}  // namespace

void check_input(const char* model, const Input& input, std::optional<std::size_t> most) {
  const Shape& shape = input.input_ids.shape();
  if (shape.size() != 2 || shape[1] == 0)
    xgrad::detail::fail<ShapeError>(model, ": input_ids must be (batch, length), got ", shape);
  if (most && shape[1] > *most)
    xgrad::detail::fail<ShapeError>(model, ": input_ids must have at most ", *most, " positions, got ",
                                    shape);
  const auto check_shape = [&](const char* name, const std::optional<Ids>& ids) {
    if (ids && !same_shape(ids->shape(), shape))
      xgrad::detail::fail<ShapeError>(model, ": ", name, " must have the shape of input_ids, got ",
                                      ids->shape(), " and ", shape);
  };
  check_shape("attention_mask", input.attention_mask);
  check_shape("token_type_ids", input.token_type_ids);
  if (!input.attention_mask) return;
  for (const std::int64_t number : *input.attention_mask) {
    if (number != 0 && number != 1)
      xgrad::detail::fail<ValueError>(model, ": attention_mask must be 1 for tokens and 0 for padding, got ",
                                      number);
  }
}

bool has_padding(const Input& input) {
  return input.attention_mask && std::ranges::find(*input.attention_mask, 0) != input.attention_mask->end();
}

template <class T>
AttentionMask<T> key_mask(const Input& input) {
  if (!has_padding(input)) return {};
  const Ids& tokens = *input.attention_mask;
  Mask allowed = Mask::from_shape({tokens.shape(0), 1, 1, tokens.shape(1)});
  std::ranges::transform(tokens, allowed.begin(), [](std::int64_t number) { return number != 0; });
  return allowed;
}

Packing::Packing(const Ids& tokens) : batch(tokens.shape(0)), length(tokens.shape(1)), lengths(batch) {
  std::vector<std::int64_t> kept;
  places = Ids::from_shape({tokens.size()});
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const bool is_token = tokens.data()[i] != 0;
    places(i) = is_token ? static_cast<std::int64_t>(kept.size()) : 0;
    if (!is_token) continue;
    kept.push_back(static_cast<std::int64_t>(i));
    ++lengths[i / length];
  }
  rows = ids_of(kept);
}

Ids packed(const Ids& ids, const Packing* packing) {
  if (packing == nullptr) return ids;
  Ids left = Ids::from_shape(packing->rows.shape());
  std::ranges::transform(packing->rows, left.begin(), [&](std::int64_t row) { return ids.data()[row]; });
  return left;
}

Ids counted_positions(const Ids& ids) {
  Ids numbers = Ids::from_shape(ids.shape());
  for (std::size_t i = 0; i < ids.size(); ++i)
    numbers.data()[i] = static_cast<std::int64_t>(i % ids.shape(1));
  return numbers;
}

Ids positions_after_padding(const Ids& ids, std::int64_t pad) {
  Ids numbers = Ids::from_shape(ids.shape());
  for (std::size_t row = 0; row < ids.shape(0); ++row) {
    std::int64_t last = pad;
    for (std::size_t i = 0; i < ids.shape(1); ++i) numbers(row, i) = ids(row, i) == pad ? pad : ++last;
  }
  return numbers;
}

template <class T>
AttentionMask<T> with_bias(const AttentionMask<T>& mask, const Variable<T>& bias) {
  if (mask.allowed() == nullptr) return bias;
  return masked_fill(bias, Mask(!*mask.allowed()), -std::numeric_limits<T>::infinity());
}

template <class T>
Variable<T> without_padding(const EncoderCall<T>& call, const Variable<T>& x) {
  if (call.mask.allowed() == nullptr) return x;
  Shape rows{x.shape(0), x.shape(1), 1};
  Array<T> tokens = Array<T>::from_shape(rows);
  std::copy(call.mask.allowed()->begin(), call.mask.allowed()->end(), tokens.begin());
  return x * Variable<T>(std::move(tokens));
}

template <class T>
RotaryPositions<T>::RotaryPositions(const RotaryConfig& config, std::size_t max_length) : config_(config) {
  const std::size_t rows = most_kept_angles / std::max<std::size_t>(config.dim, 1);
  kept_ = rotary_tables<T>(config, depend_on_length() ? 0 : std::min(max_length, rows));
}

template <class T>
bool RotaryPositions<T>::depend_on_length() const {
  return std::holds_alternative<DynamicScaling>(config_.scaling) ||
         std::holds_alternative<LongScaling>(config_.scaling);
}

template <class T>
bool RotaryPositions<T>::are_same(std::size_t length, std::size_t other) const {
  if (const auto* const dynamic = std::get_if<DynamicScaling>(&config_.scaling))
    return std::max(length, dynamic->max_positions) == std::max(other, dynamic->max_positions);
  if (const auto* const longer = std::get_if<LongScaling>(&config_.scaling))
    return (length > longer->original_max_positions) == (other > longer->original_max_positions);
  return true;
}

template <class T>
RotaryTables<T> RotaryPositions<T>::operator()(std::size_t length) const {
  if (length > kept_.cos.shape(0)) return rotary_tables<T>(config_, length);
  return {narrow(kept_.cos, 0, 0, length), narrow(kept_.sin, 0, 0, length)};
}

template <class T>
RotaryTables<T> RotaryPositions<T>::operator()(std::size_t first, std::size_t count) const {
  if (first + count > kept_.cos.shape(0)) return rotary_tables<T>(config_, count, first);
  return {narrow(kept_.cos, 0, first, count), narrow(kept_.sin, 0, first, count)};
}

template <class T>
RotaryTables<T> RotaryPositions<T>::operator()(const Ids& positions, std::size_t length_of_all) const {
  const RotaryTables<T> all =
      length_of_all > kept_.cos.shape(0) ? rotary_tables<T>(config_, length_of_all) : kept_;
  return {embedding(positions, all.cos), embedding(positions, all.sin)};
}

template <class T>
Variable<T> attend(const EncoderCall<T>& call, const AttentionMask<T>& mask, const Variable<T>& queries,
                   const Variable<T>& keys, const Variable<T>& values, const AttentionOptions& options) {
  if (call.attentions == nullptr) return scaled_dot_product_attention(queries, keys, values, mask, options);
  AttentionResult<T> result = attention_with_weights(queries, keys, values, mask, options);
  call.attentions->push_back(std::move(result.weights));
  return std::move(result.output);
}

template <class T>
Variable<T> attend(const EncoderCall<T>& call, const Sight<T>& sight, const Variable<T>& queries,
                   const Variable<T>& keys, const Variable<T>& values, const AttentionOptions& given) {
  const AttentionOptions options = with_sight(given, sight);
  if (sight.rotary == nullptr) return attend(call, sight.mask, queries, keys, values, options);
  const auto& [cos, sin] = *sight.rotary;
  const std::size_t kv_heads = options.num_kv_heads > 0 ? options.num_kv_heads : options.num_heads;
  return attend(call, sight.mask, rotary(queries, cos, sin, {.num_heads = options.num_heads}),
                rotary(keys, cos, sin, {.num_heads = kv_heads}), values, options);
}

template <class T>
Variable<T> attend(const EncoderCall<T>& call, const Sight<T>& sight, const Variable<T>& x,
                   const Projection<T>& q, const Projection<T>& k, const Projection<T>& v,
                   const AttentionOptions& given) {
  if (sight.rotary == nullptr && call.attentions == nullptr) {
    const AttentionOptions options = with_sight(given, sight);
    return call.packing != nullptr
               ? xgrad::detail::packed_self_attention(x, q, k, v, call.packing->lengths, options)
               : self_attention(x, q, k, v, sight.mask, options);
  }
  using xgrad::detail::projected;
  return attend(call, sight, projected(x, q), projected(x, k), projected(x, v), given);
}

template <class T>
Variable<T> activation(HiddenAct act, const Variable<T>& x) {
  switch (act) {
    case HiddenAct::relu:
      return relu(x);
    case HiddenAct::silu:
      return silu(x);
    case HiddenAct::gelu_tanh:
      return gelu(x, Gelu::tanh);
    case HiddenAct::gelu_fast:
      return x * sigmoid((x * T(2 * 0.7978845608)) * (square(x) * T(0.044715) + T(1)));
    case HiddenAct::tanh:
      return tanh(x);
    case HiddenAct::gelu:
      break;
  }
  return gelu(x);
}

template <class T>
Body<T>::Body(const Config& config)
    : Assembled<T>(info_of(config.model_type).class_name + std::string("Model")) {}

template <class T>
Variable<T> gated_activation(HiddenAct f, const Variable<T>& gate, const Variable<T>& x) {
  switch (f) {
    case HiddenAct::relu:
      return gated(gate, x, Gate::relu);
    case HiddenAct::silu:
      return gated(gate, x, Gate::silu);
    case HiddenAct::gelu:
      return gated(gate, x, Gate::gelu);
    case HiddenAct::gelu_tanh:
      return gated(gate, x, Gate::gelu_tanh);
    case HiddenAct::gelu_fast:
    case HiddenAct::tanh:
      break;
  }
  return activation(f, gate) * x;
}

template <class T>
TokenEmbeddings<T>::TokenEmbeddings(const Config& config, const From& from, const EmbeddingsForm& form)
    : Assembled<T>("Embeddings"),
      form_(form),
      pad_(config.pad_token_id.value_or(0)),
      drop_(config.hidden_dropout_prob),
      words_(this->embedding(from, "word_embeddings", config.vocab_size, config.embedding_size,
                             config.pad_token_id)),
      positions_(form.positions == Positions::counted || form.positions == Positions::after_padding
                     ? std::optional(this->embedding(
                           from, "position_embeddings", config.max_position_embeddings, config.embedding_size,
                           form.positions == Positions::after_padding ? config.pad_token_id : std::nullopt))
                     : std::nullopt),
      types_(config.type_vocab_size == 0
                 ? std::nullopt
                 : std::optional(this->embedding(from, "token_type_embeddings", config.type_vocab_size,
                                                 config.embedding_size))),
      project_(form.project == nullptr
                   ? std::nullopt
                   : std::optional(this->linear(from, form.project,
                                                {config.embedding_size, config.hidden_size, false}))),
      norm_(this->norm(from, "LayerNorm",
                       form.project == nullptr ? config.embedding_size : config.hidden_size,
                       config.layer_norm_eps)) {}

template <class T>
Variable<T> TokenEmbeddings<T>::positions(const EncoderCall<T>& call) const {
  const Ids& ids = call.input.input_ids;
  if (form_.positions == Positions::after_padding)
    return (*positions_)(packed(positions_after_padding(ids, pad_), call.packing));
  if (call.packing != nullptr) return (*positions_)(packed(counted_positions(ids), call.packing));
  return narrow(positions_->weight(), 0, 0, ids.shape(1));
}

template <class T>
Variable<T> TokenEmbeddings<T>::operator()(const EncoderCall<T>& call) const {
  const auto scope = this->scope();
  Variable<T> sum = words_(packed(call.input.input_ids, call.packing));
  if (types_) {
    sum = sum + (call.input.token_type_ids ? (*types_)(packed(*call.input.token_type_ids, call.packing))
                                           : select(types_->weight(), 0, 0));
  }
  if (positions_) sum = sum + positions(call);
  Variable<T> x = norm_(project_ ? (*project_)(sum) : sum);
  if (form_.hides_padding) x = without_padding(call, x);
  return this->drop(x, drop_);
}

template <class T>
typename AfterAttention<T>::Layers AfterAttention<T>::layers(const From& from, const BlockNames& names) {
  const BlockBiases& has = form_.biases;
  Linear<T> out = this->linear(from, names.out, {width_of(form_), form_.size, has.attention});
  LayerNorm<T> norm1 = this->norm(from, names.norm1, form_.size, form_.eps);
  std::optional<Linear<T>> gate;
  if (names.gate != nullptr) gate = this->linear(from, names.gate, {form_.size, form_.inner, has.up});
  Linear<T> up = this->linear(from, names.up, {form_.size, form_.inner, has.up});
  Linear<T> down = this->linear(from, names.down, {form_.inner, form_.size, has.down});
  return {std::move(out), std::move(norm1), std::move(gate),
          std::move(up),  std::move(down),  this->norm(from, names.norm2, form_.size, form_.eps)};
}

template <class T>
Variable<T> AfterAttention<T>::after_attention(const Layers& layers, const Variable<T>& context,
                                               const Variable<T>& x) const {
  if constexpr (std::is_same_v<T, float>) {
    const auto& [out, norm1, gate, up, down, norm2] = layers;
    if (out.int8_weight() && up.int8_weight() && down.int8_weight() && !gate &&
        form_.act == HiddenAct::gelu && !this->training()) {
      const auto linear = [](const Linear<T>& layer) -> xgrad::detail::Int8LinearLayer {
        return {*layer.int8_weight(), layer.bias()};
      };
      const auto norm = [](const LayerNorm<T>& layer) -> xgrad::detail::NormLayer {
        return {layer.weight(), layer.bias(), layer.eps()};
      };
      return xgrad::detail::int8_after_attention(
          context, x, {linear(out), norm(norm1), linear(up), linear(down), norm(norm2)});
    }
  }
  const Variable<T> y = layers.norm1(this->drop(layers.out(context), form_.drop_attention), x);
  const Variable<T> inner = layers.gate ? gated_activation(form_.act, (*layers.gate)(y), layers.up(y))
                                        : activation(form_.act, layers.up(y));
  return layers.norm2(this->drop(layers.down(this->drop(inner, form_.drop_inner)), form_.drop_output), y);
}

template <class T>
AttentionOptions AfterAttention<T>::attention_options() const {
  return {.dropout_p = this->training() ? form_.drop_weights : 0, .num_heads = form_.heads};
}

template <class T>
PostNormBlock<T>::PostNormBlock(const BlockForm& form, const From& from, const BlockNames& names)
    : AfterAttention<T>(form),
      query_(this->linear(from, names.query, {form.size, width_of(form), form.biases.attention})),
      key_(this->linear(from, names.key, {form.size, width_of(form), form.biases.attention})),
      value_(this->linear(from, names.value, {form.size, width_of(form), form.biases.attention})),
      layers_(this->layers(from, names)) {}

template <class T>
Variable<T> PostNormBlock<T>::operator()(const EncoderCall<T>& call, const Sight<T>& sight,
                                         const Variable<T>& x) const {
  const auto scope = this->scope();
  const Variable<T> context = attend(call, sight, x, projection(query_), projection(key_), projection(value_),
                                     this->attention_options());
  return this->after_attention(layers_, context, x);
}

#define XGRAD_INSTANTIATE(T)                                                                      \
  template AttentionMask<T> key_mask(const Input&);                                               \
  template class RotaryPositions<T>;                                                              \
  template AttentionMask<T> with_bias(const AttentionMask<T>&, const Variable<T>&);               \
  template Variable<T> without_padding(const EncoderCall<T>&, const Variable<T>&);                \
  template Variable<T> attend(const EncoderCall<T>&, const AttentionMask<T>&, const Variable<T>&, \
                              const Variable<T>&, const Variable<T>&, const AttentionOptions&);   \
  template Variable<T> attend(const EncoderCall<T>&, const Sight<T>&, const Variable<T>&,         \
                              const Variable<T>&, const Variable<T>&, const AttentionOptions&);   \
  template Variable<T> attend(const EncoderCall<T>&, const Sight<T>&, const Variable<T>&,         \
                              const Projection<T>&, const Projection<T>&, const Projection<T>&,   \
                              const AttentionOptions&);                                           \
  template Variable<T> activation(HiddenAct, const Variable<T>&);                                 \
  template Variable<T> gated_activation(HiddenAct, const Variable<T>&, const Variable<T>&);       \
  template class Body<T>;                                                                         \
  template class TokenEmbeddings<T>;                                                              \
  template class AfterAttention<T>;                                                               \
  template class PostNormBlock<T>;

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::pretrained::detail
