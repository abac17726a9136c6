#include <algorithm>

#include "../../models/relative_positions.hpp"
#include "../detail/family.hpp"

// The encoder of T5 (Raffel et al. 2020, arXiv:1910.10683): norms by the mean square in front of each part,
// no biases, scores that are not scaled, and a bias of the scores by distance, which all layers share.
namespace xgrad::pretrained::detail {
namespace {

struct T5Options : FamilyOptions {
  std::size_t head_dim = 64, buckets = 32, max_distance = 128;
  bool gated = false;
};

constexpr NamedPart t5_names[]{{BlockPart::query, "layer.0.SelfAttention.q"},
                               {BlockPart::key, "layer.0.SelfAttention.k"},
                               {BlockPart::value, "layer.0.SelfAttention.v"},
                               {BlockPart::out, "layer.0.SelfAttention.o"},
                               {BlockPart::position_bias, "layer.0.SelfAttention.relative_attention_bias"},
                               {BlockPart::attention_norm, "layer.0.layer_norm"},
                               {BlockPart::up, "layer.1.DenseReluDense.wi"},
                               {BlockPart::down, "layer.1.DenseReluDense.wo"},
                               {BlockPart::feed_forward_norm, "layer.1.layer_norm"}};

constexpr NamedPart t5_gated_names[]{
    {BlockPart::query, "layer.0.SelfAttention.q"},
    {BlockPart::key, "layer.0.SelfAttention.k"},
    {BlockPart::value, "layer.0.SelfAttention.v"},
    {BlockPart::out, "layer.0.SelfAttention.o"},
    {BlockPart::position_bias, "layer.0.SelfAttention.relative_attention_bias"},
    {BlockPart::attention_norm, "layer.0.layer_norm"},
    {BlockPart::gate, "layer.1.DenseReluDense.wi_0"},
    {BlockPart::up, "layer.1.DenseReluDense.wi_1"},
    {BlockPart::down, "layer.1.DenseReluDense.wo"},
    {BlockPart::feed_forward_norm, "layer.1.layer_norm"}};

/// Of layer i: the first has the table of biases, which all use.
TransformerBlockOptions t5_block(const Config& config, std::size_t i) {
  const T5Options& own = options_of<T5Options>(config);
  const double p = config.hidden_dropout_prob;
  return {.d_model = config.hidden_size,
          .num_heads = config.num_attention_heads,
          .head_dim = own.head_dim,
          .d_ff = config.intermediate_size,
          .residual = Residual::pre_norm,
          .norm = NormKind::rms,
          .eps = config.layer_norm_eps,
          .qkv_bias = false,
          .out_bias = false,
          .up_bias = false,
          .down_bias = false,
          .scale = 1.0,
          .position_bias_rows = i == 0 ? own.buckets : 0,
          .activation = config.hidden_act,
          .is_gated = own.gated,
          .attention_dropout = p,
          .attention_output_dropout = p,
          .inner_dropout = p,
          .output_dropout = p};
}

template <class T>
class T5Body : public Body<T> {
 public:
  T5Body(const Config& config, Weights& weights)
      : Body<T>(config),
        config_(config),
        words_(this->embedding({weights, ""}, "shared", config.vocab_size, config.hidden_size)) {
    const From from{weights, ""};
    for (std::size_t i = 0; i < config.num_hidden_layers; ++i) {
      const std::string name = layer_name(i);
      const bool is_gated = options_of<T5Options>(config).gated;
      layers_.push_back(this->block(from, name, t5_block(config, i),
                                    is_gated ? BlockNames(t5_gated_names) : BlockNames(t5_names)));
    }
    norm_ = this->rms_norm(from, "encoder.final_layer_norm", config.hidden_size, config.layer_norm_eps);
  }

  Variable<T> operator()(const EncoderCall<T>& call) const override {
    const double p = config_.hidden_dropout_prob;
    const std::size_t length = call.input.input_ids.shape(1);
    const T5Options& options = options_of<T5Options>(config_);
    Variable<T> x = this->drop(words_(call.input.input_ids), p);
    ForwardContext<T> context = call.context();
    if (!layers_.empty()) {
      const Ids distances = relative_position_buckets(
          length, length, {.num_buckets = options.buckets, .max_distance = options.max_distance});
      context.mask = with_bias(call.mask, relative_position_bias(layers_.front().position_bias(), distances));
    }
    for (const TransformerBlock<T>& layer : layers_) {
      call.keep(x);
      x = layer(context, x);
    }
    return this->drop((*norm_)(x), p);
  }

  const Embedding<T>& words() const override { return words_; }
  std::vector<std::string> embedding_names() const override { return {"shared"}; }
  std::string layer_name(std::size_t i) const override { return "encoder.block." + std::to_string(i); }

 private:
  Config config_;
  Embedding<T> words_;
  std::vector<TransformerBlock<T>> layers_;
  std::optional<RMSNorm<T>> norm_;  // declared after the layers, as in files
};

/// "relu", or "gated-gelu", whose gelu is that of tanh.
void t5_function(Fields& fields, Config& config, T5Options& options) {
  if (const auto found = fields.found("feed_forward_proj")) {
    const std::string& text = found->text();
    const std::string begin = "gated-";
    options.gated = text.starts_with(begin);
    const std::string name = options.gated ? text.substr(begin.size()) : text;
    const Names<Activation>& names = activation_names();
    const auto known =
        std::find_if(names.begin(), names.end(), [&](const auto& one) { return name == one.first; });
    if (known == names.end()) found->refuse("a function, or gated- and a function: " + listed(names));
    config.hidden_act = text == "gated-gelu" ? Activation::gelu_tanh : known->second;
  }
  const bool usual = options.gated && config.hidden_act == Activation::gelu_tanh;
  for (const auto& [name, act] : activation_names()) {
    if (act != config.hidden_act) continue;
    fields.put("feed_forward_proj",
               std::string(options.gated ? "\"gated-" : "\"") + (usual ? "gelu" : name) + '"');
    break;
  }
  fields.ignore({"dense_act_fn", "is_gated_act"});  // as feed_forward_proj says
}

}  // namespace

const FamilyInfo t5{.family = Family::t5,
                    .model_type = "t5",
                    .class_name = "T5Encoder",
                    .prefix = "transformer.",
                    .free_heads = true,
                    .biased_by_distance = true,
                    .defaults =
                        [](Config& config) {
                          config.vocab_size = 32128;
                          config.hidden_size = 512;
                          config.num_hidden_layers = 6;
                          config.num_attention_heads = 8;
                          config.intermediate_size = 2048;
                          config.max_position_embeddings = std::size_t{1} << 24;  // its biases have no end
                          config.type_vocab_size = 0;
                          config.layer_norm_eps = 1e-6;
                          config.hidden_act = Activation::relu;
                          changed_options<T5Options>(config);
                        },
                    .fields =
                        [](Fields& fields, Config& config) {
                          T5Options& options = changed_options<T5Options>(config);
                          fields.size("d_model", config.hidden_size);
                          fields.size("num_layers", config.num_hidden_layers, 0);
                          fields.size("num_heads", config.num_attention_heads);
                          fields.size("d_ff", config.intermediate_size);
                          fields.size("d_kv", options.head_dim);
                          fields.size("relative_attention_num_buckets", options.buckets, 4);
                          fields.size("relative_attention_max_distance", options.max_distance);
                          fields.number("layer_norm_epsilon", config.layer_norm_eps);
                          fields.probability("dropout_rate", config.hidden_dropout_prob);
                          if (fields.json() != nullptr)
                            config.attention_probs_dropout_prob = config.hidden_dropout_prob;
                          t5_function(fields, config, options);
                          // of the decoder, of initial values, and of texts
                          fields.ignore({"classifier_dropout", "initializer_factor", "n_positions",
                                         "num_decoder_layers", "scale_decoder_outputs"});
                        },
                    .broken_rule = [](const Config& config) -> std::string {
                      const T5Options& options = options_of<T5Options>(config);
                      if (options.max_distance > options.buckets / 4) return "";
                      return "relative_attention_max_distance must be above a fourth of "
                             "relative_attention_num_buckets, got " +
                             std::to_string(options.max_distance) + " and " + std::to_string(options.buckets);
                    },
                    .float_body = make_body<float, T5Body>,
                    .double_body = make_body<double, T5Body>};

}  // namespace xgrad::pretrained::detail
