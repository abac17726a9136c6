#include "../detail/config/rotary_fields.hpp"
#include "../detail/family.hpp"

// EuroBERT (Boizard et al. 2025, arXiv:2503.05500): Llama's blocks without a causal mask. Norms by the mean
// square, rotary positions, fewer heads of keys and values, a gated feed-forward network.
namespace xgrad::pretrained::detail {
namespace {

struct EuroBertOptions : RotaryOptions {
  std::size_t kv_heads = 0;  // 0: as many as of queries
  bool attention_bias = false, mlp_bias = false;
  SequencePool pool = SequencePool::late;
};

const Names<SequencePool>& eurobert_pools() {
  static const Names<SequencePool> names{
      {"late", SequencePool::late}, {"bos", SequencePool::first}, {"mean", SequencePool::mean}};
  return names;
}

constexpr NamedPart eurobert_names[]{{BlockPart::query, "self_attn.q_proj"},
                                     {BlockPart::key, "self_attn.k_proj"},
                                     {BlockPart::value, "self_attn.v_proj"},
                                     {BlockPart::out, "self_attn.o_proj"},
                                     {BlockPart::gate, "mlp.gate_proj"},
                                     {BlockPart::up, "mlp.up_proj"},
                                     {BlockPart::down, "mlp.down_proj"},
                                     {BlockPart::attention_norm, "input_layernorm"},
                                     {BlockPart::feed_forward_norm, "post_attention_layernorm"}};

TransformerBlockOptions eurobert_block(const Config& config) {
  const EuroBertOptions& own = options_of<EuroBertOptions>(config);
  return {.d_model = config.hidden_size,
          .num_heads = config.num_attention_heads,
          .num_kv_heads = own.kv_heads,
          .head_dim = head_dim(config),
          .d_ff = config.intermediate_size,
          .residual = Residual::pre_norm,
          .norm = NormKind::rms,
          .eps = config.layer_norm_eps,
          .qkv_bias = own.attention_bias,
          .out_bias = own.attention_bias,
          .up_bias = own.mlp_bias,
          .down_bias = own.mlp_bias,
          .rotary = 0,
          .activation = config.hidden_act,
          .is_gated = true,
          .attention_dropout = config.attention_probs_dropout_prob};
}

template <class T>
class EuroBertBody : public Body<T> {
 public:
  EuroBertBody(const Config& config, Weights& weights)
      : Body<T>(config),
        words_(this->embedding({weights, ""}, "embed_tokens", config.vocab_size, config.hidden_size,
                               config.pad_token_id)) {
    const From from{weights, ""};
    for (std::size_t i = 0; i < config.num_hidden_layers; ++i) {
      const std::string name = layer_name(i);
      layers_.push_back(this->block(from, name, eurobert_block(config), eurobert_names));
    }
    norm_ = this->rms_norm(from, "norm", config.hidden_size, config.layer_norm_eps);
    RotaryConfig rotary = options_of<EuroBertOptions>(config).rotary;
    rotary.dim = head_dim(config);
    rotary_.emplace(rotary, config.max_position_embeddings);
  }

  Variable<T> operator()(const EncoderCall<T>& call) const override {
    ForwardContext<T> context = call.context();
    context.rotary = {(*rotary_)(call.input.input_ids.shape(1))};
    Variable<T> x = words_(call.input.input_ids);
    for (const TransformerBlock<T>& layer : layers_) {
      call.keep(x);
      x = layer(context, x);
    }
    return (*norm_)(x);
  }

  const Embedding<T>& words() const override { return words_; }
  std::vector<std::string> embedding_names() const override { return {"embed_tokens"}; }
  std::string layer_name(std::size_t i) const override { return "layers." + std::to_string(i); }

 private:
  Embedding<T> words_;
  std::vector<TransformerBlock<T>> layers_;
  std::optional<RMSNorm<T>> norm_;  // declared after the layers, as in files
  std::optional<RotaryPositions<T>> rotary_;
};

}  // namespace

const FamilyInfo eurobert{
    .family = Family::eurobert,
    .model_type = "eurobert",
    .class_name = "EuroBert",
    .prefix = "model.",
    .free_heads = true,
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
          changed_options<EuroBertOptions>(config);
        },
    .fields =
        [](Fields& fields, Config& config) {
          EuroBertOptions& options = changed_options<EuroBertOptions>(config);
          fields.size("hidden_size", config.hidden_size);
          fields.size("num_hidden_layers", config.num_hidden_layers, 0);
          fields.size("num_attention_heads", config.num_attention_heads);
          fields.size("intermediate_size", config.intermediate_size);
          fields.size("num_key_value_heads", options.kv_heads, 0);
          head_dim_field(fields, config, options);
          fields.number("rms_norm_eps", config.layer_norm_eps);
          fields.choice("hidden_act", config.hidden_act, activation_names());
          fields.choice("classifier_pooling", options.pool, eurobert_pools());
          fields.probability("attention_dropout", config.attention_probs_dropout_prob);
          fields.flag("attention_bias", options.attention_bias);
          fields.flag("mlp_bias", options.mlp_bias);
          rotary_fields(fields, config.max_position_embeddings, options.rotary);
          fields.ignore({"pretraining_tp", "mask_token_id"});
        },
    .broken_rule = [](const Config& config) -> std::string {
      const std::size_t kv_heads = options_of<EuroBertOptions>(config).kv_heads;
      if (kv_heads > 0 && config.num_attention_heads % kv_heads != 0)
        return "num_key_value_heads must divide num_attention_heads, got " + std::to_string(kv_heads) +
               " and " + std::to_string(config.num_attention_heads);
      return broken_rotary_rule(config);
    },
    .float_body = make_body<float, EuroBertBody>,
    .double_body = make_body<double, EuroBertBody>,
    .prediction =
        [](const Config& config) {
          return TransformForm{.dense = nullptr,
                               .norm = nullptr,
                               .act = Activation::gelu,
                               .out = config.hidden_size,
                               .logits_bias = options_of<EuroBertOptions>(config).mlp_bias};
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
