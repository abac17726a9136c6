#include "../detail/config/rotary_fields.hpp"
#include "../detail/family.hpp"

// EuroBERT (Boizard et al. 2025, arXiv:2503.05500): Llama's blocks without a causal mask. Norms by the mean
// square, rotary positions, fewer heads of keys and values, a gated feed-forward network.
namespace xgrad::pretrained::detail {
namespace {

struct EuroBertOptions : FamilyOptions {
  SequencePool pool = SequencePool::late;
};

const Names<SequencePool>& eurobert_pools() {
  static const Names<SequencePool> names{
      {"late", SequencePool::late}, {"bos", SequencePool::first}, {"mean", SequencePool::mean}};
  return names;
}

constexpr NamedPart eurobert_block[]{{BlockPart::query, "self_attn.q_proj"},
                                     {BlockPart::key, "self_attn.k_proj"},
                                     {BlockPart::value, "self_attn.v_proj"},
                                     {BlockPart::out, "self_attn.o_proj"},
                                     {BlockPart::gate, "mlp.gate_proj"},
                                     {BlockPart::up, "mlp.up_proj"},
                                     {BlockPart::down, "mlp.down_proj"},
                                     {BlockPart::attention_norm, "input_layernorm"},
                                     {BlockPart::feed_forward_norm, "post_attention_layernorm"}};

constexpr BodyOptions eurobert_body = [] {
  BodyOptions body = llama_body;
  body.block = eurobert_block;
  return body;
}();

}  // namespace

const FamilyInfo eurobert{
    .family = Family::eurobert,
    .model_type = "eurobert",
    .class_name = "EuroBert",
    .files = {.prefix = "model."},
    .body = eurobert_body,
    .defaults =
        [](Config& config) {
          config.vocab_size = 128256;
          config.max_position_embeddings = 8192;
          config.type_vocab_size = 0;
          config.pad_token_id = 128001;
          config.layer_norm_eps = 1e-5;
          config.hidden_act = Activation::silu;
          config.hidden_dropout_prob = config.attention_probs_dropout_prob = config.classifier_dropout = 0;
          config.tie_word_embeddings = false;
          config.gated_mlp = config.rms_norm = true;
          config.query_bias = config.output_bias = config.mlp_bias = false;
          config.rotary.emplace();
        },
    .fields =
        [](Fields& fields, Config& config) {
          EuroBertOptions& options = changed_options<EuroBertOptions>(config);
          fields.size("hidden_size", config.hidden_size);
          fields.size("num_hidden_layers", config.num_hidden_layers, 0);
          fields.size("num_attention_heads", config.num_attention_heads);
          fields.size("intermediate_size", config.intermediate_size);
          fields.size("num_key_value_heads", config.num_key_value_heads, 0);
          head_dim_field(fields, config);
          fields.number("rms_norm_eps", config.layer_norm_eps);
          fields.choice("hidden_act", config.hidden_act, activation_names());
          fields.choice("classifier_pooling", options.pool, eurobert_pools());
          fields.probability("attention_dropout", config.attention_probs_dropout_prob);
          fields.flag("attention_bias", config.query_bias);
          config.output_bias = config.query_bias;
          fields.flag("mlp_bias", config.mlp_bias);
          rotary_fields(fields, config.max_position_embeddings, *config.rotary);
          fields.ignore({"pretraining_tp", "mask_token_id"});
        },
    .prediction =
        [](const Config& config) {
          return TransformForm{.dense = nullptr,
                               .norm = nullptr,
                               .act = Activation::gelu,
                               .out = config.hidden_size,
                               .logits_bias = config.mlp_bias};
        },
    .prediction_bias = "lm_head.bias",
    .decoder = "lm_head.weight",
    .sequences =
        [](const Config& config) {
          return SequenceForm{
              .pool = options_of<EuroBertOptions>(config).pool,
              .transform = TransformForm{
                  .dense = "dense", .norm = nullptr, .act = Activation::gelu, .out = config.hidden_size}};
        },
    .tokens = [](const Config&) { return TokenForm(); }};

}  // namespace xgrad::pretrained::detail
