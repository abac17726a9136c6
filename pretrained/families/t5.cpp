#include <algorithm>

#include "../detail/family.hpp"

// The encoder of T5 (Raffel et al. 2020, arXiv:1910.10683): norms by the mean square in front of each part,
// no biases, scores that are not scaled, and a bias of the scores by distance, which all layers share.
namespace xgrad::pretrained::detail {
namespace {

constexpr NamedPart t5_block[]{{BlockPart::query, "layer.0.SelfAttention.q"},
                               {BlockPart::key, "layer.0.SelfAttention.k"},
                               {BlockPart::value, "layer.0.SelfAttention.v"},
                               {BlockPart::out, "layer.0.SelfAttention.o"},
                               {BlockPart::position_bias, "layer.0.SelfAttention.relative_attention_bias"},
                               {BlockPart::attention_norm, "layer.0.layer_norm"},
                               {BlockPart::up, "layer.1.DenseReluDense.wi"},
                               {BlockPart::down, "layer.1.DenseReluDense.wo"},
                               {BlockPart::feed_forward_norm, "layer.1.layer_norm"}};

constexpr NamedPart t5_gated_block[]{
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

constexpr BodyOptions t5_body{
    .words = "shared",
    .layers = "encoder.block.",
    .block = t5_block,
    .gated_block = t5_gated_block,
    .last_norm = "encoder.final_layer_norm",
    .residual = Residual::pre_norm,
    .drops_output = true,
    .block_options = [](const Config& config, std::size_t, TransformerBlockOptions& block) {
      block.attention_dropout = block.inner_dropout = config.hidden_dropout_prob;
    }};

/// "relu", or "gated-gelu", whose gelu is that of tanh.
void t5_function(Fields& fields, Config& config) {
  if (const auto found = fields.found("feed_forward_proj")) {
    const std::string& text = found->text();
    const std::string begin = "gated-";
    config.gated_mlp = text.starts_with(begin);
    const std::string name = config.gated_mlp ? text.substr(begin.size()) : text;
    const Names<Activation>& names = activation_names();
    const auto known =
        std::find_if(names.begin(), names.end(), [&](const auto& one) { return name == one.first; });
    if (known == names.end()) found->refuse("a function, or gated- and a function: " + listed(names));
    config.hidden_act = text == "gated-gelu" ? Activation::gelu_tanh : known->second;
  }
  const bool usual = config.gated_mlp && config.hidden_act == Activation::gelu_tanh;
  for (const auto& [name, act] : activation_names()) {
    if (act != config.hidden_act) continue;
    fields.put("feed_forward_proj",
               std::string(config.gated_mlp ? "\"gated-" : "\"") + (usual ? "gelu" : name) + '"');
    break;
  }
  fields.ignore({"dense_act_fn", "is_gated_act"});  // as feed_forward_proj says
}

}  // namespace

const FamilyInfo t5{
    .family = Family::t5,
    .model_type = "t5",
    .class_name = "T5Encoder",
    .files = {.prefix = "transformer."},
    .body = t5_body,
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
          config.head_dim = 64;
          config.query_bias = config.output_bias = config.mlp_bias = false;
          config.rms_norm = true;
          config.scale_attention = config.padding_row = false;
          config.relative_attention_num_buckets = 32;
        },
    .fields =
        [](Fields& fields, Config& config) {
          fields.size("d_model", config.hidden_size);
          fields.size("num_layers", config.num_hidden_layers, 0);
          fields.size("num_heads", config.num_attention_heads);
          fields.size("d_ff", config.intermediate_size);
          fields.size("d_kv", config.head_dim);
          fields.size("relative_attention_num_buckets", config.relative_attention_num_buckets, 4);
          fields.size("relative_attention_max_distance", config.relative_attention_max_distance);
          fields.number("layer_norm_epsilon", config.layer_norm_eps);
          fields.probability("dropout_rate", config.hidden_dropout_prob);
          if (fields.json() != nullptr) config.attention_probs_dropout_prob = config.hidden_dropout_prob;
          t5_function(fields, config);
          // of the decoder, of initial values, and of texts
          fields.ignore({"classifier_dropout", "initializer_factor", "n_positions", "num_decoder_layers",
                         "scale_decoder_outputs"});
        },
    .broken_rule = [](const Config& config) -> std::string {
      const std::size_t buckets = config.relative_attention_num_buckets,
                        distance = config.relative_attention_max_distance;
      if (distance > buckets / 4) return "";
      return "relative_attention_max_distance must be above a fourth of "
             "relative_attention_num_buckets, got " +
             std::to_string(distance) + " and " + std::to_string(buckets);
    }};

}  // namespace xgrad::pretrained::detail
