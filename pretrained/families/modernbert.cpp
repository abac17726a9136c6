#include "../detail/config/rotary_fields.hpp"
#include "../detail/family.hpp"

// ModernBERT (Warner et al. 2024, arXiv:2412.13663): norms in front of attention and a gated feed-forward
// network, rotary positions, and layers that look at near tokens only.
namespace xgrad::pretrained::detail {
namespace {

constexpr std::size_t usual_period = 3;  // one of three layers looks at all tokens

struct ModernBertOptions : FamilyOptions {
  bool norm_bias = false, attention_bias = false, mlp_bias = false, classifier_bias = false,
       decoder_bias = true;
  Activation classifier_act = Activation::gelu;
  SequencePool pool = SequencePool::first;
  double embedding_dropout = 0, mlp_dropout = 0;
  std::size_t window = 128;  // of both sides together
  std::vector<bool> slides;  // whether a layer has it; empty: as usual
  RotaryConfig global{.theta = 160000}, local{.theta = 10000};

  std::string unnamed() const override { return '[' + described(global) + ',' + described(local) + ']'; }
};

const Names<SequencePool>& modernbert_pools() {
  static const Names<SequencePool> names{{"cls", SequencePool::first}, {"mean", SequencePool::mean}};
  return names;
}

constexpr NamedPart modernbert_names[]{{BlockPart::attention_norm, "attn_norm"},
                                       {BlockPart::query_key_value, "attn.Wqkv"},
                                       {BlockPart::out, "attn.Wo"},
                                       {BlockPart::feed_forward_norm, "mlp_norm"},
                                       {BlockPart::gate_up, "mlp.Wi"},
                                       {BlockPart::down, "mlp.Wo"}};

/// Of layer i.
TransformerBlockOptions modernbert_block(const Config& config, std::size_t i) {
  const ModernBertOptions& own = options_of<ModernBertOptions>(config);
  const bool slides = i < own.slides.size() ? own.slides[i] : i % usual_period != 0;
  TransformerBlockOptions block{.d_model = config.hidden_size,
                                .num_heads = config.num_attention_heads,
                                .d_ff = config.intermediate_size,
                                .residual = Residual::pre_norm,
                                .eps = config.layer_norm_eps,
                                .norm_bias = own.norm_bias,
                                .attention_norm = i > 0,
                                .qkv_bias = own.attention_bias,
                                .out_bias = own.attention_bias,
                                .up_bias = own.mlp_bias,
                                .down_bias = own.mlp_bias,
                                .rotary = slides ? 1 : 0,
                                .activation = config.hidden_act,
                                .is_gated = true,
                                .attention_dropout = config.attention_probs_dropout_prob,
                                .attention_output_dropout = config.attention_probs_dropout_prob,
                                .inner_dropout = own.mlp_dropout};
  if (slides) block.window = own.window / 2;
  return block;
}

template <class T>
class ModernBertBody : public Body<T> {
 public:
  ModernBertBody(const Config& config, Weights& weights)
      : Body<T>(config),
        config_(config),
        words_(this->embedding({weights, ""}, "embeddings.tok_embeddings", config.vocab_size,
                               config.hidden_size, config.pad_token_id)),
        norm_(norm_of(weights, "embeddings.norm")),
        global_(positions(own().global)),
        local_(positions(own().local)) {
    const From from{weights, ""};
    for (std::size_t i = 0; i < config.num_hidden_layers; ++i) {
      const std::string name = layer_name(i);
      layers_.push_back(this->block(from, name, modernbert_block(config, i), modernbert_names));
    }
    final_norm_ = norm_of(weights, "final_norm");
  }

  Variable<T> operator()(const EncoderCall<T>& call) const override {
    const std::size_t length = call.input.input_ids.shape(1);
    ForwardContext<T> context = call.context();
    context.rotary = {global_(length), local_(length)};
    Variable<T> x = this->drop(norm_(words_(call.input.input_ids)), own().embedding_dropout);
    for (const TransformerBlock<T>& layer : layers_) {
      call.keep(x);
      x = layer(context, x);
    }
    return (*final_norm_)(x);
  }

  const Embedding<T>& words() const override { return words_; }
  std::vector<std::string> embedding_names() const override { return {"embeddings"}; }
  std::string layer_name(std::size_t i) const override { return "layers." + std::to_string(i); }

 private:
  const ModernBertOptions& own() const { return options_of<ModernBertOptions>(config_); }
  LayerNorm<T> norm_of(Weights& weights, const char* name) {
    return this->norm({weights, ""}, name, config_.hidden_size, config_.layer_norm_eps, own().norm_bias);
  }
  RotaryPositions<T> positions(RotaryConfig rotary) const {
    rotary.dim = config_.hidden_size / config_.num_attention_heads;
    return {rotary, config_.max_position_embeddings};
  }

  Config config_;
  Embedding<T> words_;
  LayerNorm<T> norm_;
  RotaryPositions<T> global_, local_;
  std::vector<TransformerBlock<T>> layers_;
  std::optional<LayerNorm<T>> final_norm_;  // declared after the layers, as in files
};

/// Both spellings of which layers slide: a list, or one of every few that does not.
void modernbert_layer_fields(Fields& fields, const Config& config, ModernBertOptions& options) {
  std::size_t every = usual_period;
  if (const auto count = fields.found("global_attn_every_n_layers"))
    every = static_cast<std::size_t>(count->integer(1, 1 << 20));
  const auto types = fields.found("layer_types");
  if (fields.json() != nullptr && !types) {
    options.slides.clear();
    for (std::size_t i = 0; i < config.num_hidden_layers; ++i) options.slides.push_back(i % every != 0);
  }
  if (types) {
    options.slides.clear();
    for (const Json& type : types->items()) {
      const bool slides = type.text() == "sliding_attention";
      if (!slides && type.text() != "full_attention") type.refuse("full_attention or sliding_attention");
      options.slides.push_back(slides);
    }
    if (options.slides.size() != config.num_hidden_layers)
      types->refuse(std::to_string(config.num_hidden_layers) + " types, as num_hidden_layers says");
  }
  std::string list;
  for (const bool slides : options.slides)
    list += std::string(list.empty() ? "" : ", ") + (slides ? "\"sliding_attention\"" : "\"full_attention\"");
  if (!list.empty()) fields.put("layer_types", "[" + list + "]");
}

void modernbert_fields(Fields& fields, Config& config) {
  ModernBertOptions& options = changed_options<ModernBertOptions>(config);
  fields.size("hidden_size", config.hidden_size);
  fields.size("num_hidden_layers", config.num_hidden_layers, 0);
  fields.size("num_attention_heads", config.num_attention_heads);
  fields.size("intermediate_size", config.intermediate_size);
  fields.number("norm_eps", config.layer_norm_eps);
  fields.choice("hidden_activation", config.hidden_act, activation_names());
  fields.choice("classifier_activation", options.classifier_act, activation_names());
  fields.choice("classifier_pooling", options.pool, modernbert_pools());
  fields.probability("attention_dropout", config.attention_probs_dropout_prob);
  fields.probability("embedding_dropout", options.embedding_dropout);
  fields.probability("mlp_dropout", options.mlp_dropout);
  fields.probability("classifier_dropout", config.classifier_dropout);
  fields.flag("norm_bias", options.norm_bias);
  fields.flag("attention_bias", options.attention_bias);
  fields.flag("mlp_bias", options.mlp_bias);
  fields.flag("classifier_bias", options.classifier_bias);
  fields.flag("decoder_bias", options.decoder_bias);
  fields.size("local_attention", options.window, 0);
  modernbert_layer_fields(fields, config, options);
  const auto parameters = fields.found("rope_parameters");
  if (parameters) {
    for (const auto& [name, value] : parameters->members())
      if (name != "full_attention" && name != "sliding_attention")
        value.refuse("a field of full_attention or of sliding_attention");
  }
  const auto read = [&](const char* kind, const char* old_name, RotaryConfig& rotary) {
    theta_field(fields, old_name, rotary);
    const auto own = parameters ? parameters->find(kind) : std::nullopt;
    if (own) read_rotary(*own, config.max_position_embeddings, rotary);
  };
  read("full_attention", "global_rope_theta", options.global);
  read("sliding_attention", "local_rope_theta", options.local);
  fields.must_be("position_embedding_type", "absolute", "its positions are rotary");
  // of kernels, of the loss, and of initial values
  fields.ignore({"deterministic_flash_attn", "sparse_prediction", "sparse_pred_ignore_index",
                 "initializer_cutoff_factor", "reference_compile", "repad_logits_with_grad", "cls_token_id",
                 "sep_token_id"});
}

TransformForm modernbert_head(const Config& config) {
  const ModernBertOptions& options = options_of<ModernBertOptions>(config);
  return {.dense = "head.dense",
          .norm = "head.norm",
          .act = options.classifier_act,
          .out = config.hidden_size,
          .dense_bias = options.classifier_bias,
          .norm_bias = options.norm_bias,
          .logits_bias = options.decoder_bias};
}

TokenForm modernbert_tokens(const Config& config) {
  return {.transform = modernbert_head(config), .drop = config.classifier_dropout};
}

}  // namespace

const FamilyInfo modernbert{
    .family = Family::modernbert,
    .model_type = "modernbert",
    .class_name = "ModernBert",
    .prefix = "model.",
    .defaults =
        [](Config& config) {
          config.vocab_size = 50368;
          config.intermediate_size = 1152;
          config.num_hidden_layers = 22;
          config.max_position_embeddings = 8192;
          config.type_vocab_size = 0;
          config.pad_token_id = 50283;
          config.layer_norm_eps = 1e-5;
          config.hidden_dropout_prob = config.attention_probs_dropout_prob = config.classifier_dropout = 0;
        },
    .fields = modernbert_fields,
    .broken_rule = [](const Config& config) -> std::string {
      const std::size_t dim = config.hidden_size / config.num_attention_heads;
      if (dim % 2 != 0) return "hidden_size / num_attention_heads must be even, got " + std::to_string(dim);
      const ModernBertOptions& options = options_of<ModernBertOptions>(config);
      const std::string rule = broken_rotary_rule(options.global, dim);
      return rule.empty() ? broken_rotary_rule(options.local, dim) : rule;
    },
    .float_body = make_body<float, ModernBertBody>,
    .double_body = make_body<double, ModernBertBody>,
    .prediction = modernbert_head,
    .prediction_bias = "decoder.bias",
    .decoder = "decoder.weight",
    .sequences =
        [](const Config& config) {
          return SequenceForm{.pool = options_of<ModernBertOptions>(config).pool,
                              .transform = modernbert_head(config),
                              .drop_after = config.classifier_dropout};
        },
    .tokens = modernbert_tokens,
    .answers = modernbert_tokens};

}  // namespace xgrad::pretrained::detail
