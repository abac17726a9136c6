#include "../detail/config/rotary_fields.hpp"
#include "../detail/family.hpp"

// Nomic BERT (Nussbaum et al. 2024, arXiv:2402.01613): BERT's blocks with rotary positions, a gated
// feed-forward network and no biases.
namespace xgrad::pretrained::detail {
namespace {

constexpr StoredAs nomic_stored_as[]{
    {"emb_ln", {"embeddings.LayerNorm"}},
    {"encoder.layers.*.attn.Wqkv",
     {"layers.*.self_attn.q_proj", "layers.*.self_attn.k_proj", "layers.*.self_attn.v_proj"}},
    {"encoder.layers.*.attn.out_proj", {"layers.*.self_attn.o_proj"}},
    {"encoder.layers.*.mlp.fc11", {"layers.*.mlp.up_proj"}},
    {"encoder.layers.*.mlp.fc12", {"layers.*.mlp.gate_proj"}},
    {"encoder.layers.*.mlp.fc2", {"layers.*.mlp.down_proj"}},
    {"encoder.layers.*.norm1", {"layers.*.post_attention_layernorm"}},
    {"encoder.layers.*.norm2", {"layers.*.post_mlp_layernorm"}}};

/// The fields of the code beside the models on the hub, which GPT-2's are the base of.
constexpr Spelling nomic_spellings[]{{"hidden_size", "n_embd"},
                                     {"num_hidden_layers", "n_layer"},
                                     {"num_attention_heads", "n_head"},
                                     {"intermediate_size", "n_inner"},
                                     {"max_position_embeddings", "n_positions"},
                                     {"layer_norm_eps", "layer_norm_epsilon"},
                                     {"hidden_dropout_prob", "resid_pdrop"},
                                     {"attention_probs_dropout_prob", "attn_pdrop"},
                                     {"classifier_dropout", "embd_pdrop"},
                                     {"rope_theta", "rotary_emb_base"}};

/// What that code can do beside this block.
void nomic_limits(Fields& fields) {
  for (const char* const name : {"prenorm", "parallel_block", "use_rms_norm", "causal", "qkv_proj_bias",
                                 "mlp_fc1_bias", "mlp_fc2_bias", "rotary_emb_interleaved"})
    fields.must_be(name, false, "other blocks are not supported");
  fields.must_be("rotary_emb_fraction", 1.0, "all of a head is rotated");
  fields.must_be_null("rotary_emb_scale_base", "scaled rotary positions are not supported");
  // named otherwise, of its kernels, of other outputs, and of GPT-2
  fields.ignore({"activation_function", "add_pooling_layer", "dense_seq_output", "fused_bias_fc",
                 "fused_dropout_add_ln", "parallel_block_tied_norm", "reorder_and_upcast_attn",
                 "scale_attn_by_inverse_layer_idx", "scale_attn_weights", "summary_activation",
                 "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj",
                 "use_flash_attn", "use_xentropy"});
}

void nomic_fields(Fields& fields, Config& config) {
  static const Names<Activation> gates{{"swiglu", Activation::silu}, {"geglu", Activation::gelu}};
  const Json* const json = fields.json();
  if (json != nullptr && json->find("n_embd")) {  // 4 n_embd, where n_inner does not say otherwise
    fields.size("hidden_size", config.hidden_size);
    config.intermediate_size = 4 * config.hidden_size;
  }
  bert_fields(fields, config);
  if (json != nullptr && !json->find("hidden_act"))
    fields.choice("activation_function", config.hidden_act, gates);
  head_dim_field(fields, config);
  std::size_t trained = 2048;
  double factor = 0;
  if (const auto found = fields.found("max_trained_positions"))
    trained = static_cast<std::size_t>(found->integer(1, 1 << 24));
  if (const auto found = fields.found("rotary_scaling_factor")) factor = found->number(0, most_rotary_number);
  if (factor > 0) config.rotary->scaling = DynamicScaling{.factor = factor, .max_positions = trained};
  rotary_fields(fields, config.max_position_embeddings, *config.rotary);
  if (const auto multiple = fields.found("pad_vocab_size_multiple");
      multiple && config.vocab_size % static_cast<std::size_t>(multiple->integer(1, 1 << 24)) != 0)
    multiple->refuse("a divisor of vocab_size");
  nomic_limits(fields);
}

}  // namespace

const FamilyInfo nomic_bert{
    .family = Family::nomic_bert,
    .model_type = "nomic_bert",
    .class_name = "NomicBert",
    .files = {.prefix = "nomic_bert.", .old_prefix = "bert.", .stored_as = nomic_stored_as},
    .body = bert_body_of("layers.", gated_block),
    .other_fields = nomic_spellings,
    .defaults =
        [](Config& config) {
          config.vocab_size = 30528;
          config.max_position_embeddings = 2048;
          config.hidden_act = Activation::silu;
          config.hidden_dropout_prob = config.attention_probs_dropout_prob = config.classifier_dropout = 0;
          config.gated_mlp = true;
          config.query_bias = config.output_bias = config.mlp_bias = false;
          config.rotary = {.theta = 1000};
        },
    .fields = nomic_fields,
    .pooler = "pooler.dense",
    .pooler_alone = false,
    .prediction =
        [](const Config& config) {
          return TransformForm{.dense = "cls.predictions.transform.dense",
                               .norm = "cls.predictions.transform.layer_norm",
                               .act = config.hidden_act,
                               .out = config.hidden_size};
        },
    .prediction_bias = "cls.predictions.bias",
    .decoder = "cls.predictions.decoder.weight",
    .sequences = pooled_sequences,
    .tokens = plain_tokens};

}  // namespace xgrad::pretrained::detail
