#include <cmath>

#include "../detail/config/rotary_fields.hpp"
#include "../detail/family.hpp"

// GTE (Zhang et al. 2024, arXiv:2407.19669): BERT's blocks with rotary positions and a gated feed-forward
// network. Its models on the hub were written by code beside them, which names the family "new".
namespace xgrad::pretrained::detail {
namespace {

constexpr BodyOptions gte_body = [] {
  BodyOptions body = bert_body_of("layers.", gated_block);
  body.block_options = [](const Config& config, std::size_t, TransformerBlockOptions& block) {
    block.inner_dropout = config.hidden_dropout_prob;
    block.up_bias = false;
  };
  return body;
}();

constexpr StoredAs gte_stored_as[]{
    {"encoder.layer.*.attention.qkv_proj",
     {"layers.*.self_attn.q_proj", "layers.*.self_attn.k_proj", "layers.*.self_attn.v_proj"}},
    {"encoder.layer.*.attention.o_proj", {"layers.*.self_attn.o_proj"}},
    {"encoder.layer.*.mlp.up_gate_proj", {"layers.*.mlp.up_proj", "layers.*.mlp.gate_proj"}},
    {"encoder.layer.*.mlp.down_proj", {"layers.*.mlp.down_proj"}},
    {"encoder.layer.*.attn_ln", {"layers.*.post_attention_layernorm"}},
    {"encoder.layer.*.mlp_ln", {"layers.*.post_mlp_layernorm"}},
    {"lm_head.norm", {"lm_head.layer_norm"}}};

/// A larger theta, and slower angles (Su 2023, https://kexue.fm/archives/9706). False for other scalings.
bool read_ntk(Fields& fields, const Config& config, RotaryConfig& rotary) {
  const auto scaling = fields.found("rope_scaling");
  const auto type = scaling ? scaling->find("type") : std::nullopt;
  if (!type || !type->is_string() || type->text() != "ntk") return false;
  if (const auto mixed = scaling->find("mixed_b")) mixed->refuse("null, as a mixed scaling is not supported");
  const double factor = scaling->at("factor").number(1, 1e6);
  theta_field(fields, "rope_theta", rotary);
  rotary.theta *= factor;
  rotary.scaling = LinearScaling{std::pow(factor, 2 / static_cast<double>(config.head_size()))};
  return true;
}

void gte_fields(Fields& fields, Config& config) {
  bert_fields(fields, config);
  if (!read_ntk(fields, config, *config.rotary))
    rotary_fields(fields, config.max_position_embeddings, *config.rotary);
  fields.must_be("position_embedding_type", "rope", "learned positions are not supported");
  fields.must_be("layer_norm_type", "layer_norm", "other norms are not supported");
  fields.must_be("logn_attention_scale", false, "scores that grow with the length are not supported");
  fields.must_be("pack_qkv", true, "queries, keys and values in one tensor are supported");
  // of the scale above, of kernels, and of other outputs
  fields.ignore(
      {"logn_attention_clip1", "matryoshka_dimensions", "unpad_inputs", "use_memory_efficient_attention"});
}

constexpr FamilyInfo gte_spelling(Family family, const char* model_type, const char* class_name,
                                  const char* prefix, const char* other_prefix, void (*defaults)(Config&)) {
  return {.family = family,
          .model_type = model_type,
          .class_name = class_name,
          .files = {.prefix = prefix, .old_prefix = other_prefix, .stored_as = gte_stored_as},
          .body = gte_body,
          .defaults = defaults,
          .fields = gte_fields,
          .pooler = "pooler.dense",
          .pooler_alone = false,
          .prediction =
              [](const Config& config) {
                TransformForm form = dense_prediction(config);
                if (config.model_type == Family::gte_new) form.act = config.hidden_act;
                return form;
              },
          .prediction_bias = "lm_head.decoder.bias",
          .decoder = "lm_head.decoder.weight",
          .sequences = pooled_sequences,
          .tokens = plain_tokens};
}

}  // namespace

const FamilyInfo gte = gte_spelling(Family::gte, "gte", "Gte", "gte.", "new.", [](Config& config) {
  config.vocab_size = 250048;
  config.max_position_embeddings = 8192;
  config.type_vocab_size = 1;
  config.pad_token_id = 1;
  config.attention_probs_dropout_prob = 0;
  config.gated_mlp = true;
  config.rotary = {.theta = 160000};
});

const FamilyInfo gte_new = gte_spelling(Family::gte_new, "new", "New", "new.", "gte.", [](Config& config) {
  config.vocab_size = 30528;
  config.max_position_embeddings = 2048;
  config.type_vocab_size = 1;
  config.pad_token_id.reset();
  config.attention_probs_dropout_prob = 0;
  config.gated_mlp = true;
  config.rotary = {.theta = 10000};
});

}  // namespace xgrad::pretrained::detail
