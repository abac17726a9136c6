#include "../detail/bodies/deberta_body.hpp"

// DeBERTa v2 and v3 (He et al. 2021, arXiv:2111.09543): buckets of distances, whose positions may go through
// the projections of contents, and a convolution beside the first layer.
namespace xgrad::pretrained::detail {
namespace {

constexpr std::int64_t widest_convolution = 255;

template <class T>
class DebertaV2Projections : public Assembled<T> {
 public:
  DebertaV2Projections(const Config& config, const From& from)
      : Assembled<T>("SelfAttention"),
        config_(config),
        query_(projection_of(from, "query_proj")),
        key_(projection_of(from, "key_proj")),
        value_(projection_of(from, "value_proj")) {
    const DebertaOptions& own = options_of<DebertaOptions>(config);
    if (!own.relative_attention) return;
    if (own.c2p) position_keys_ = own.share_att_key ? key_ : projection_of(from, "pos_key_proj");
    if (own.p2c) position_queries_ = own.share_att_key ? query_ : projection_of(from, "pos_query_proj");
  }

  Disentangled<T> operator()(const Variable<T>& x, const Variable<T>& positions) const {
    const auto scope = this->scope();
    return {.queries = query_(x),
            .keys = key_(x),
            .values = value_(x),
            .pos_k = position_keys_ ? (*position_keys_)(positions) : Variable<T>(),
            .pos_q = position_queries_ ? (*position_queries_)(positions) : Variable<T>()};
  }

 private:
  Linear<T> projection_of(const From& from, const char* name) {
    return this->linear(from, name, {config_.hidden_size, config_.hidden_size});
  }

  Config config_;
  Linear<T> query_, key_, value_;
  std::optional<Linear<T>> position_keys_, position_queries_;
};

/// "layer_norm" or "none".
void position_norm(Fields& fields, DebertaOptions& options) {
  if (const auto found = fields.found("norm_rel_ebd")) {
    const std::string& text = found->text();
    if (text != "layer_norm" && text != "none") found->refuse("layer_norm or none");
    options.norm_rel_ebd = text == "layer_norm";
  }
  fields.put("norm_rel_ebd", options.norm_rel_ebd ? "\"layer_norm\"" : "\"none\"");
}

void deberta_v2_fields(Fields& fields, Config& config) {
  DebertaOptions& options = changed_options<DebertaOptions>(config);
  deberta_fields(fields, config, options);
  size_or_none(fields, "position_buckets", options.position_buckets);
  fields.flag("share_att_key", options.share_att_key);
  position_norm(fields, options);
  fields.size("conv_kernel_size", options.conv_kernel_size, 0);
  fields.size("conv_groups", options.conv_groups);
  fields.choice("conv_act", options.conv_act, activation_names());
  const auto head = fields.found("attention_head_size");
  if (head && head->integer(1, 1 << 24) * static_cast<std::int64_t>(config.num_attention_heads) !=
                  static_cast<std::int64_t>(config.hidden_size))
    head->refuse("hidden_size / num_attention_heads");
}

std::string deberta_v2_rule(const Config& config) {
  const DebertaOptions& options = options_of<DebertaOptions>(config);
  if (options.conv_kernel_size > widest_convolution ||
      (options.conv_kernel_size > 0 && options.conv_kernel_size % 2 == 0))
    return "conv_kernel_size must be 0, or odd and at most " + std::to_string(widest_convolution) + ", got " +
           std::to_string(options.conv_kernel_size);
  if (config.hidden_size % options.conv_groups != 0)
    return "conv_groups must divide hidden_size, got " + std::to_string(options.conv_groups) + " and " +
           std::to_string(config.hidden_size);
  if (options.position_buckets == 1) return "position_buckets must be -1 or at least 2, got 1";
  const std::size_t exact = options.position_buckets / 2, most = options.max_distance(config);
  // distances beyond the exact ones have buckets by their logarithm
  if (exact > 0 && config.max_position_embeddings > exact + 1 && most <= exact + 1)
    return "max_relative_positions must be above " + std::to_string(exact + 1) +
           ", as position_buckets says, got " + std::to_string(most);
  return deberta_rule(config);
}

}  // namespace

const FamilyInfo deberta_v2{.family = Family::deberta_v2,
                            .model_type = "deberta-v2",
                            .class_name = "DebertaV2",
                            .files = {.prefix = "deberta."},
                            .body = deberta_body,
                            .narrow_embeddings = true,
                            .defaults =
                                [](Config& config) {
                                  config.vocab_size = 128100;
                                  config.hidden_size = config.embedding_size = 1536;
                                  config.num_hidden_layers = config.num_attention_heads = 24;
                                  config.intermediate_size = 6144;
                                  deberta_defaults(config);
                                },
                            .fields = deberta_v2_fields,
                            .broken_rule = deberta_v2_rule,
                            .float_body = make_deberta_body<float, DebertaV2Projections>,
                            .double_body = make_deberta_body<double, DebertaV2Projections>,
                            .prediction = deberta_prediction,
                            .prediction_bias = "cls.predictions.bias",
                            .decoder = "cls.predictions.decoder.weight",
                            .sequences = deberta_sequences,
                            .tokens = deberta_tokens,
                            .answers = plain_answers};

}  // namespace xgrad::pretrained::detail
