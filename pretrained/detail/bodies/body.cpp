#include "body.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <variant>

#include "../../../autograd/checkpoint.hpp"
#include "../../../models/attention/relative_positions.hpp"
#include "../../../models/detail/new_tokens.hpp"
#include "../../../ops/index/embedding.hpp"
#include "../../../ops/index/indexing.hpp"
#include "../../../ops/index/masked_fill.hpp"
#include "../../../ops/pointwise/arithmetic.hpp"
#include "../../../ops/shape/shapes.hpp"
#include "../family.hpp"

namespace xgrad::pretrained::detail {
namespace {

constexpr std::size_t most_kept_angles = std::size_t{1} << 22;

/// The ids of tokens, without those of padding.
Ids packed(const Ids& ids, const Packing& packing) {
  Ids left = Ids::from_shape(packing.rows.shape());
  std::ranges::transform(packing.rows, left.begin(), [&](std::int64_t row) { return ids.data()[row]; });
  return left;
}

/// Of the ids of tokens, without those of padding if there is a packing.
template <class T>
Variable<T> embedded(const Embedding<T>& table, const Ids& ids, const Packing* packing) {
  return packing == nullptr ? table(ids) : table(packed(ids, *packing));
}

/// (batch, length), 0 to length - 1 in each row.
Ids counted_positions(const Ids& ids) {
  Ids numbers = Ids::from_shape(ids.shape());
  for (std::size_t i = 0; i < ids.size(); ++i)
    numbers.data()[i] = static_cast<std::int64_t>(i % ids.shape(1));
  return numbers;
}

/// (batch, length): pad for the token pad, else pad plus how many other tokens there are up to here.
Ids positions_after_padding(const Ids& ids, std::int64_t pad) {
  Ids numbers = Ids::from_shape(ids.shape());
  for (std::size_t row = 0; row < ids.shape(0); ++row) {
    std::int64_t last = pad;
    for (std::size_t i = 0; i < ids.shape(1); ++i) numbers(row, i) = ids(row, i) == pad ? pad : ++last;
  }
  return numbers;
}

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

/// The scale of a layer's scores, if it is not 1 / sqrt(head_dim).
std::optional<double> scale_of(const Config& config, std::size_t i) {
  const double size = config.query_pre_attn_scalar.value_or(static_cast<double>(config.head_size()));
  const double scale = config.scale_attention ? 1 / std::sqrt(size) : 1;
  if (config.scale_attention_by_layer) return scale / static_cast<double>(i + 1);
  const bool is_usual = config.scale_attention && !config.query_pre_attn_scalar;
  return is_usual ? std::nullopt : std::optional(scale);
}

/// How many groups of blocks a config has.
std::size_t groups_of(const Config& config) {
  return config.num_hidden_groups > 0 ? config.num_hidden_groups : config.num_hidden_layers;
}

/// The group whose blocks a layer calls.
std::size_t group_of(const Config& config, std::size_t layer) {
  return layer * groups_of(config) / config.num_hidden_layers;
}

std::string block_name(const Config& config, std::size_t group, std::size_t i) {
  const BodyOptions& options = info_of(config.model_type).body;
  const std::string name = options.layers + std::to_string(group);
  return options.group_blocks == nullptr ? name : name + options.group_blocks + std::to_string(i);
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
  rows = xgrad::detail::array_of<std::int64_t>(std::span<const std::int64_t>(kept));
}

template <class T>
AttentionMask<T> with_bias(const AttentionMask<T>& mask, const Variable<T>& bias) {
  if (mask.allowed() == nullptr) return bias;
  return masked_fill(bias, Mask(!*mask.allowed()), -std::numeric_limits<T>::infinity());
}

template <class T>
Variable<T> without_padding(const AttentionMask<T>& mask, const Variable<T>& x) {
  if (mask.allowed() == nullptr) return x;
  Shape rows{x.shape(0), x.shape(1), 1};
  Array<T> tokens = Array<T>::from_shape(rows);
  std::copy(mask.allowed()->begin(), mask.allowed()->end(), tokens.begin());
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

TransformerBlockOptions block_options(const Config& config, std::size_t i) {
  const BodyOptions& options = info_of(config.model_type).body;
  TransformerBlockOptions block{.d_model = config.hidden_size,
                                .num_heads = config.num_attention_heads,
                                .num_kv_heads = config.num_key_value_heads,
                                .head_dim = config.head_dim,
                                .d_ff = config.intermediate_size,
                                .residual = options.residual,
                                .norm = config.rms_norm ? NormKind::rms : NormKind::layer,
                                .eps = config.layer_norm_eps,
                                .norm_offset = config.norm_offset,
                                .norm_bias = config.norm_bias,
                                .qkv_bias = config.query_bias,
                                .out_bias = config.output_bias,
                                .up_bias = config.mlp_bias,
                                .down_bias = config.mlp_bias,
                                .query_key_norm = config.query_key_norm,
                                .scale = scale_of(config, i),
                                .softcap = config.attn_logit_softcapping,
                                .is_causal = config.is_causal,
                                .activation = config.hidden_act,
                                .is_gated = config.gated_mlp,
                                .attention_dropout = config.attention_probs_dropout_prob,
                                .attention_output_dropout = config.hidden_dropout_prob,
                                .output_dropout = config.hidden_dropout_prob};
  const std::optional<std::size_t> window = config.window(i);
  if (window) block.window = config.is_causal ? *window - 1 : *window / 2;
  if (config.rotary) block.rotary = window && config.local_rotary ? 1 : 0;
  if (i == 0 && options.position_bias == nullptr)
    block.position_bias_rows = config.relative_attention_num_buckets;
  if (options.block_options != nullptr) options.block_options(config, i, block);
  return block;
}

template <class T>
Body<T>::Body(const Config& config, Weights& weights)
    : Body(config, weights, [&](const From& from, std::size_t i) {
        StoredLayers<T> source(from);
        return std::make_shared<const TransformerBlock<T>>(
            block_options(config, i), info_of(config.model_type).block_names(config), source);
      }) {
  packs_ = true;
}

template <class T>
Body<T>::Body(const Config& config, Weights& weights, const MakeBlock& make_block)
    : Assembled<T>(info_of(config.model_type).class_name + std::string("Model")),
      config_(config),
      options_(info_of(config.model_type).body),
      packs_(false) {
  const From from{weights, ""};
  declare_embeddings(from);
  for (std::size_t group = 0; group < groups_of(config); ++group) {
    for (std::size_t i = 0; i < config.inner_group_num; ++i) {
      const std::string name = block_name(config, group, i);
      blocks_.push_back(make_block(from.below(name), group));
      this->child(name, Module<T>(*blocks_.back()));
    }
  }
  if (config.is_biased_by_distance() && options_.position_bias != nullptr)
    position_bias_ = this->embedding(from, options_.position_bias, config.relative_attention_num_buckets,
                                     config.num_attention_heads);
  if (options_.last_norm != nullptr) {
    const char* const name = options_.last_norm;
    const std::size_t size = config.hidden_size;
    const double eps = config.layer_norm_eps;
    if (config.rms_norm)
      last_norm_ = this->child(name, take_rms_norm<T>(from, name, size, eps, config.norm_offset));
    else
      last_norm_ = this->norm(from, name, size, eps, config.norm_bias);
  }
  for (const std::optional<RotaryConfig>& positions : {config.rotary, config.local_rotary}) {
    if (!positions) break;
    RotaryConfig rotary = *positions;
    rotary.dim = config.head_size();
    rotary_.emplace_back(rotary, config.max_position_embeddings);
  }
}

template <class T>
void Body<T>::declare_embeddings(const From& from) {
  const BodyOptions& options = options_;
  const std::size_t hidden = config_.hidden_size,
                    size = info_of(config_.model_type).narrow_embeddings ? config_.embedding_size : hidden;
  const auto padding = config_.padding_row ? config_.pad_token_id : std::nullopt;
  const bool has_group = options.embeddings != nullptr;
  const From source = has_group ? from.below(options.embeddings) : from;
  if (has_group) {
    group_.emplace("Embeddings");
    embedding_names_.emplace_back(options.embeddings);
  }
  const auto declared = [&](const char* name, auto module) {
    if (has_group) return group_->child(name, std::move(module));
    embedding_names_.emplace_back(name);
    return this->child(name, std::move(module));
  };
  words_ =
      declared(options.words, take_embedding<T>(source, options.words, config_.vocab_size, size, padding));
  if (options.positions != nullptr && !config_.rotary && config_.position_biased_input)
    positions_ = declared(options.positions,
                          take_embedding<T>(source, options.positions, config_.max_position_embeddings, size,
                                            options.positions_after_padding ? padding : std::nullopt));
  if (options.types != nullptr && config_.type_vocab_size > 0)
    types_ = declared(options.types, take_embedding<T>(source, options.types, config_.type_vocab_size, size));
  const bool projects = size != hidden || options.projects_always;
  if (options.word_project != nullptr && projects)
    word_project_ =
        declared(options.word_project, take_linear<T>(source, options.word_project, {size, hidden, false}));
  if (options.embedding_norm != nullptr)
    embedding_norm_ = declared(options.embedding_norm,
                               take_norm<T>(source, options.embedding_norm, word_project_ ? hidden : size,
                                            config_.layer_norm_eps, config_.norm_bias));
  if (has_group) this->child(options.embeddings, *group_);
  if (options.project != nullptr && projects) {
    project_ = this->linear(from, options.project, {size, hidden});
    embedding_names_.emplace_back(options.project);
  }
}

template <class T>
Variable<T> Body<T>::positions(const ForwardCall<T>& call, const Ids* numbers) const {
  const Ids& ids = call.input.input_ids;
  if (numbers != nullptr) return (*positions_)(*numbers);
  if (options_.positions_after_padding)
    return embedded(*positions_, positions_after_padding(ids, config_.pad_token_id.value_or(0)),
                    call.packing);
  if (config_.is_causal) return (*positions_)(positions_of(call.input).numbers);
  if (call.packing != nullptr) return embedded(*positions_, counted_positions(ids), call.packing);
  return narrow(positions_->weight(), 0, 0, ids.shape(1));
}

template <class T>
Variable<T> Body<T>::normalized_embeddings(const ForwardCall<T>& call, const Ids* numbers) const {
  Variable<T> x = embedded(*words_, call.input.input_ids, call.packing);
  if (config_.scale_embeddings) x = x * std::sqrt(static_cast<T>(config_.hidden_size));
  if (types_) {
    x = x + (call.input.token_type_ids ? embedded(*types_, *call.input.token_type_ids, call.packing)
                                       : select(types_->weight(), 0, 0));
  }
  if (positions_) x = x + positions(call, numbers);
  if (word_project_) x = (*word_project_)(x);
  if (embedding_norm_) x = (*embedding_norm_)(x);
  if (options_.hides_padding) x = without_padding(call.mask, x);
  return this->drop(x, config_.embedding_dropout.value_or(config_.hidden_dropout_prob));
}

template <class T>
Variable<T> Body<T>::embed(const ForwardCall<T>& call, const Ids* numbers) const {
  const auto within_group = [&] {
    const auto scope = group_->scope();
    return normalized_embeddings(call, numbers);
  };
  Variable<T> x = group_ ? within_group() : normalized_embeddings(call, numbers);
  return project_ ? (*project_)(x) : x;
}

template <class T>
void Body<T>::add_positions(const ForwardCall<T>& call, ForwardContext<T>& context) const {
  const std::size_t length = call.input.input_ids.shape(1);
  if (!rotary_.empty() && config_.is_causal) {
    const TokenPositions positions = positions_of(call.input);
    for (const RotaryPositions<T>& rotary : rotary_)
      context.rotary.push_back(positions.are_counted ? rotary(positions.length)
                                                     : rotary(positions.numbers, positions.length));
  } else {
    for (const RotaryPositions<T>& rotary : rotary_) context.rotary.push_back(rotary(length));
  }
  if (!config_.is_biased_by_distance() || blocks_.empty()) return;
  const std::size_t num_buckets = options_.num_buckets;
  const Ids buckets = relative_position_buckets(
      length, length,
      {.num_buckets = num_buckets > 0 ? num_buckets : config_.relative_attention_num_buckets,
       .max_distance = config_.relative_attention_max_distance});
  const Variable<T> table = position_bias_ ? position_bias_->weight() : blocks_.front()->position_bias();
  context.mask = with_bias(call.mask, relative_position_bias(table, buckets));
}

template <class T>
Variable<T> Body<T>::after_first(const ForwardCall<T>&, const Variable<T>&, const Variable<T>& x) const {
  return x;
}

template <class T>
Variable<T> Body<T>::blocks(const ForwardCall<T>& call, ForwardContext<T> context,
                            const Variable<T>& embedded) const {
  Variable<T> x = embedded;
  for (std::size_t layer = 0; layer < config_.num_hidden_layers; ++layer) {
    const std::size_t first = group_of(config_, layer) * config_.inner_group_num;
    for (std::size_t i = first; i < first + config_.inner_group_num; ++i) {
      const std::shared_ptr<const TransformerBlock<T>>& block = blocks_[i];
      call.keep(x);
      if (call.checkpoints) {
        ForwardContext<T> kept = context;
        kept.attentions = nullptr;
        x = checkpoint([block, kept](const Variable<T>& input) { return (*block)(kept, input); }, x);
      } else {
        x = (*block)(context, x);
      }
      if (context.slot++ == 0) x = after_first(call, embedded, x);
    }
  }
  if (last_norm_) x = (*last_norm_)(x);
  return options_.drops_output ? this->drop(x, config_.hidden_dropout_prob) : x;
}

template <class T>
Variable<T> Body<T>::operator()(const ForwardCall<T>& call) const {
  ForwardContext<T> context = call.context();
  add_positions(call, context);
  return blocks(call, std::move(context), embed(call, nullptr));
}

template <class T>
Variable<T> Body<T>::operator()(const Ids& ids, const CachedRows<T>& cached) const {
  Ids numbers = xgrad::detail::new_positions<T>(cached.lengths, cached.caches);
  numbers.reshape(ids.shape());
  std::vector<std::vector<Variable<T>>> cos(rotary_.size()), sin(rotary_.size());
  for (std::size_t i = 0; i < cached.lengths.size(); ++i) {
    const std::size_t first = cached.caches[i].length(), count = cached.lengths[i];
    for (std::size_t table = 0; table < rotary_.size(); ++table) {
      RotaryTables<T> tables = rotary_[table](first, count);
      cos[table].push_back(std::move(tables.cos));
      sin[table].push_back(std::move(tables.sin));
    }
  }
  ForwardContext<T> context{.caches = cached.caches, .new_tokens = cached.lengths};
  for (std::size_t table = 0; table < rotary_.size(); ++table)
    context.rotary.push_back({cat(cos[table]), cat(sin[table])});
  const Input input{ids};
  const ForwardCall<T> call{.input = input, .mask = {}};
  return blocks(call, std::move(context), embed(call, &numbers));
}

template <class T>
std::vector<std::string> Body<T>::block_names(std::size_t layer) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < config_.inner_group_num; ++i)
    names.push_back(block_name(config_, group_of(config_, layer), i));
  return names;
}

template <class T>
bool Body<T>::packs() const {
  return packs_ && rotary_.empty() && !config_.is_biased_by_distance() &&
         config_.query_key_norm == QueryKeyNorm::none && !config_.sliding_window &&
         config_.key_value_heads() == config_.num_attention_heads;
}

template <class T>
bool Body<T>::keys_depend_on_length() const {
  return std::ranges::any_of(rotary_, [](const auto& rotary) { return rotary.depend_on_length(); });
}

template <class T>
bool Body<T>::keys_hold(std::size_t length, std::size_t longer) const {
  return std::ranges::all_of(rotary_, [&](const auto& rotary) { return rotary.are_same(length, longer); });
}

#define XGRAD_INSTANTIATE(T)                                                         \
  template AttentionMask<T> key_mask(const Input&);                                  \
  template class RotaryPositions<T>;                                                 \
  template AttentionMask<T> with_bias(const AttentionMask<T>&, const Variable<T>&);  \
  template Variable<T> without_padding(const AttentionMask<T>&, const Variable<T>&); \
  template class Body<T>;

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::pretrained::detail
