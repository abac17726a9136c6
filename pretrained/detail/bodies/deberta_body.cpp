#include "deberta_body.hpp"

#include <algorithm>

#include "../../../ops/index/masked_fill.hpp"
#include "../../../ops/shape/shapes.hpp"
#include "../../../ops/window/convolution.hpp"

namespace xgrad::pretrained::detail {
namespace {

constexpr std::int64_t most_relative_positions = std::int64_t{1} << 24;

/// "c2p" and "p2c" in a list, or in a text as "c2p|p2c".
void position_scores(Fields& fields, DebertaOptions& options) {
  if (const auto found = fields.found("pos_att_type")) {
    std::vector<std::string> kinds;
    if (found->is_string()) {
      const std::string& text = found->text();
      for (std::size_t begin = 0, end = 0; end != text.npos; begin = end + 1) {
        end = text.find('|', begin);
        kinds.push_back(text.substr(begin, end - begin));
      }
    } else {
      for (const Json& kind : found->items()) kinds.push_back(kind.text());
    }
    options.c2p = options.p2c = false;
    for (const std::string& kind : kinds) {
      bool* const flag = kind == "c2p" ? &options.c2p : kind == "p2c" ? &options.p2c : nullptr;
      if (flag == nullptr || *flag)
        found->refuse("c2p and p2c, each at most once, in a list or with | between");
      *flag = true;
    }
  }
  std::string list;
  if (options.c2p) list = "\"c2p\"";
  if (options.p2c) list += list.empty() ? "\"p2c\"" : ", \"p2c\"";
  fields.put("pos_att_type", "[" + list + "]");
}

}  // namespace

std::size_t DebertaOptions::max_distance(const Config& config) const {
  return max_relative_positions > 0 ? max_relative_positions : config.max_position_embeddings;
}

void size_or_none(Fields& fields, const char* name, std::size_t& size) {
  if (const auto found = fields.found(name))
    size = static_cast<std::size_t>(std::max<std::int64_t>(found->integer(-1, most_relative_positions), 0));
  fields.put(name, size == 0 ? "-1" : std::to_string(size));
}

void deberta_defaults(Config& config) {
  config.type_vocab_size = 0;
  config.layer_norm_eps = 1e-7;
  changed_options<DebertaOptions>(config);
}

void deberta_fields(Fields& fields, Config& config, DebertaOptions& options) {
  block_fields(fields, config);
  if (fields.json() != nullptr) {
    config.embedding_size = config.hidden_size;
    config.classifier_dropout = config.hidden_dropout_prob;
  }
  fields.size("embedding_size", config.embedding_size);
  fields.probability("cls_dropout", config.classifier_dropout);
  fields.flag("relative_attention", options.relative_attention);
  fields.flag("position_biased_input", config.position_biased_input);
  size_or_none(fields, "max_relative_positions", options.max_relative_positions);
  position_scores(fields, options);
  fields.flag("legacy", options.legacy);
  fields.probability("pooler_dropout", options.pooler_dropout);
  fields.choice("pooler_hidden_act", options.pooler_act, activation_names());
  const auto pooler = fields.found("pooler_hidden_size");
  if (pooler && pooler->integer(1, most_relative_positions) != static_cast<std::int64_t>(config.hidden_size))
    pooler->refuse(std::to_string(config.hidden_size) + ", as hidden_size");
  fields.ignore({"padding_idx"});  // pad_token_id says it
}

std::string deberta_rule(const Config& config) {
  const DebertaOptions& options = options_of<DebertaOptions>(config);
  if (!options.legacy && config.embedding_size != config.hidden_size)
    return "embedding_size must equal hidden_size where legacy is false";
  if (!options.legacy && !config.tie_word_embeddings)
    return "tie_word_embeddings must be true where legacy is false";
  return "";
}

TransformForm deberta_prediction(const Config& config) {
  if (options_of<DebertaOptions>(config).legacy)
    return {.dense = "cls.predictions.transform.dense",
            .norm = "cls.predictions.transform.LayerNorm",
            .act = config.hidden_act,
            .out = config.embedding_size};
  return {.dense = "lm_predictions.lm_head.dense",
          .norm = "lm_predictions.lm_head.LayerNorm",
          .act = config.hidden_act,
          .out = config.hidden_size,
          .logits_bias_name = "lm_predictions.lm_head.bias"};
}

SequenceForm deberta_sequences(const Config& config) {
  const DebertaOptions& options = options_of<DebertaOptions>(config);
  return {
      .pool = SequencePool::first,
      .transform =
          TransformForm{
              .dense = "pooler.dense", .norm = nullptr, .act = options.pooler_act, .out = config.hidden_size},
      .drop_before = options.pooler_dropout,
      .drop_after = config.classifier_dropout};
}

TokenForm deberta_tokens(const Config& config) { return {.drop = config.hidden_dropout_prob}; }

template <class T>
DisentangledPositions<T>::DisentangledPositions(const ForwardCall<T>& call, const Config& config,
                                                Variable<T> all)
    : table(std::move(all)) {
  const std::size_t length = call.input.input_ids.shape(1);
  if (table.defined()) {
    const DebertaOptions& options = options_of<DebertaOptions>(config);
    rows = signed_position_buckets(
        length, {.num_buckets = options.position_buckets, .max_distance = options.max_distance(config)});
    const auto farthest = static_cast<std::size_t>(rows(length - 1, 0));
    const std::size_t whole = options.span(config), half = std::min(whole, farthest + 1);
    first = whole - half;
    count = 2 * half;
    const auto middle = static_cast<std::int64_t>(half);
    for (std::int64_t& row : rows) row = std::clamp<std::int64_t>(row + middle, 0, 2 * middle - 1);
  }
  if (call.mask.allowed() != nullptr) {
    padding = !*call.mask.allowed();
    padding->reshape(Shape{padding->shape(0), 1, length, 1});
  }
}

template <class T>
std::pair<Variable<T>, AttentionMask<T>> disentangled_scores(const AttentionMask<T>& mask,
                                                             const DisentangledPositions<T>& positions,
                                                             const Disentangled<T>& from,
                                                             const AttentionOptions& options) {
  const bool has_bias = from.pos_k.defined() || from.pos_q.defined();
  Variable<T> bias;
  if (has_bias)
    bias = disentangled_bias(from.queries, from.keys, from.pos_k, from.pos_q, positions.rows,
                             {.num_heads = options.num_heads, .scale = *options.scale});
  if (!positions.padding) return {from.queries, has_bias ? AttentionMask<T>(bias) : AttentionMask<T>()};
  Variable<T> queries = without_padding(mask, from.queries);  // all scores of padding are 0
  if (has_bias) return {std::move(queries), masked_fill(with_bias(mask, bias).bias(), *positions.padding, 0)};
  return {std::move(queries), Mask(*mask.allowed() || *positions.padding)};
}

template <class T>
DebertaConvolution<T>::DebertaConvolution(const Config& config, const From& from)
    : Assembled<T>("Convolution"), config_(config) {
  const DebertaOptions& own = options_of<DebertaOptions>(config);
  const std::size_t size = config.hidden_size;
  weight_ = this->parameter(
      "conv.weight",
      from.weights.take<T>(from.prefix + "conv.weight", {size, size / own.conv_groups, own.conv_kernel_size},
                           Start::normal, from.part));
  bias_ = this->parameter("conv.bias",
                          from.weights.take<T>(from.prefix + "conv.bias", {size}, Start::zeros, from.part));
  norm_ = this->norm(from, "LayerNorm", size, config.layer_norm_eps);
}

template <class T>
Variable<T> DebertaConvolution<T>::operator()(const ForwardCall<T>& call, const Variable<T>& x,
                                              const Variable<T>& y) const {
  const auto scope = this->scope();
  const DebertaOptions& own = options_of<DebertaOptions>(config_);
  const ConvOptions along{.padding = ConvPadding::same, .groups = own.conv_groups};
  const Variable<T> near = mT(conv1d(mT(x), weight_, bias_, along));
  const Variable<T> added = activate(own.conv_act, this->drop(near, config_.hidden_dropout_prob));
  return without_padding(call.mask, (*norm_)(added, y));
}

#define XGRAD_INSTANTIATE(T)                                                            \
  template struct DisentangledPositions<T>;                                             \
  template std::pair<Variable<T>, AttentionMask<T>> disentangled_scores(                \
      const AttentionMask<T>&, const DisentangledPositions<T>&, const Disentangled<T>&, \
      const AttentionOptions&);                                                         \
  template class DebertaConvolution<T>;

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::pretrained::detail
