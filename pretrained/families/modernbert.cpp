#include "../detail/config/config_file.hpp"
#include "../detail/config/rotary_fields.hpp"
#include "../detail/family.hpp"

// ModernBERT (Warner et al. 2024, arXiv:2412.13663): norms in front of attention and a gated feed-forward
// network, rotary positions, and layers that look at near tokens only.
namespace xgrad::pretrained::detail {
namespace {

constexpr std::size_t usual_period = 3;  // one of three layers looks at all tokens

struct ModernBertOptions : FamilyOptions {
  bool classifier_bias = false, decoder_bias = true;
  Activation classifier_act = Activation::gelu;
  SequencePool pool = SequencePool::first;
  double mlp_dropout = 0;
};

const Names<SequencePool>& modernbert_pools() {
  static const Names<SequencePool> names{{"cls", SequencePool::first}, {"mean", SequencePool::mean}};
  return names;
}

constexpr NamedPart modernbert_block[]{{BlockPart::attention_norm, "attn_norm"},
                                       {BlockPart::query_key_value, "attn.Wqkv"},
                                       {BlockPart::out, "attn.Wo"},
                                       {BlockPart::feed_forward_norm, "mlp_norm"},
                                       {BlockPart::gate_up, "mlp.Wi"},
                                       {BlockPart::down, "mlp.Wo"}};

constexpr BodyOptions modernbert_body{
    .words = "embeddings.tok_embeddings",
    .embedding_norm = "embeddings.norm",
    .layers = "layers.",
    .block = modernbert_block,
    .last_norm = "final_norm",
    .residual = Residual::pre_norm,
    .block_options = [](const Config& config, std::size_t i, TransformerBlockOptions& block) {
      block.attention_norm = i > 0;
      block.attention_output_dropout = config.attention_probs_dropout_prob;
      block.inner_dropout = options_of<ModernBertOptions>(config).mlp_dropout;
      block.output_dropout = 0;
    }};

/// Both spellings of which layers slide: a list, or one of every few that does not.
void modernbert_layer_fields(Fields& fields, Config& config) {
  std::size_t every = usual_period;
  if (const auto count = fields.found("global_attn_every_n_layers"))
    every = static_cast<std::size_t>(count->integer(1, 1 << 20));
  const auto types = fields.found("layer_types");
  if (fields.json() != nullptr && !types) {
    config.slides.clear();
    for (std::size_t i = 0; i < config.num_hidden_layers; ++i) config.slides.push_back(i % every != 0);
  }
  if (types) read_layer_types(*types, config);
  if (!config.slides.empty()) write_layer_types(fields, config);
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
  if (!config.embedding_dropout) config.embedding_dropout = config.hidden_dropout_prob;
  fields.probability("embedding_dropout", *config.embedding_dropout);
  fields.probability("mlp_dropout", options.mlp_dropout);
  fields.probability("classifier_dropout", config.classifier_dropout);
  fields.flag("norm_bias", config.norm_bias);
  fields.flag("attention_bias", config.query_bias);
  config.output_bias = config.query_bias;
  fields.flag("mlp_bias", config.mlp_bias);
  fields.flag("classifier_bias", options.classifier_bias);
  fields.flag("decoder_bias", options.decoder_bias);
  std::size_t window = config.sliding_window.value_or(0);
  fields.size("local_attention", window, 0);
  config.sliding_window = window;
  modernbert_layer_fields(fields, config);
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
  read("full_attention", "global_rope_theta", *config.rotary);
  read("sliding_attention", "local_rope_theta", *config.local_rotary);
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
          .norm_bias = config.norm_bias,
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
    .files = {.prefix = "model."},
    .body = modernbert_body,
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
          config.gated_mlp = true;
          config.query_bias = config.output_bias = config.mlp_bias = config.norm_bias = false;
          config.rotary = {.theta = 160000};
          config.local_rotary = {.theta = 10000};
          config.sliding_window = 128;  // to both sides together
          config.global_attn_every_n_layers = usual_period;
        },
    .fields = modernbert_fields,
    .broken_rule = [](const Config& config) -> std::string {
      const std::size_t dim = config.hidden_size / config.num_attention_heads;
      if (dim % 2 != 0) return "hidden_size / num_attention_heads must be even, got " + std::to_string(dim);
      return "";
    },
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
