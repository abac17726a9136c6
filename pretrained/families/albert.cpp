#include "../detail/family.hpp"

// ALBERT (Lan et al. 2020, arXiv:1909.11942): narrow embeddings, and a few groups of blocks that are used
// again and again.
namespace xgrad::pretrained::detail {
namespace {

constexpr NamedPart albert_block[]{{BlockPart::query, "attention.query"},
                                   {BlockPart::key, "attention.key"},
                                   {BlockPart::value, "attention.value"},
                                   {BlockPart::out, "attention.dense"},
                                   {BlockPart::attention_norm, "attention.LayerNorm"},
                                   {BlockPart::up, "ffn"},
                                   {BlockPart::down, "ffn_output"},
                                   {BlockPart::feed_forward_norm, "full_layer_layer_norm"}};

constexpr BodyOptions albert_body = [] {
  BodyOptions body = bert_body_of("encoder.albert_layer_groups.", albert_block);
  body.project = "encoder.embedding_hidden_mapping_in";
  body.projects_always = true;
  body.block_options = [](const Config&, std::size_t, TransformerBlockOptions& block) {
    block.output_dropout = 0;
  };
  body.group_blocks = ".albert_layers.";
  return body;
}();

}  // namespace

const FamilyInfo albert{
    .family = Family::albert,
    .model_type = "albert",
    .class_name = "Albert",
    .files = {.prefix = "albert."},
    .body = albert_body,
    .narrow_embeddings = true,
    .defaults =
        [](Config& config) {
          config.vocab_size = 30000;
          config.embedding_size = 128;
          config.hidden_size = 4096;
          config.num_attention_heads = 64;
          config.intermediate_size = 16384;
          config.hidden_act = Activation::gelu_tanh;
          config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0;
          config.num_hidden_groups = 1;
        },
    .fields =
        [](Fields& fields, Config& config) {
          bert_fields(fields, config);
          fields.size("embedding_size", config.embedding_size);
          fields.size("num_hidden_groups", config.num_hidden_groups);
          fields.size("inner_group_num", config.inner_group_num);
          fields.probability("classifier_dropout_prob", config.classifier_dropout);
          absolute_positions(fields);
          fields.ignore({"down_scale_factor", "gap_size", "net_structure_type", "num_memory_blocks"});
        },
    .pooler = "pooler",
    .prediction =
        [](const Config& config) {
          return TransformForm{.dense = "predictions.dense",
                               .norm = "predictions.LayerNorm",
                               .act = config.hidden_act,
                               .out = config.embedding_size};
        },
    .prediction_bias = "predictions.bias",
    .decoder = "predictions.decoder.weight",
    .sequences = pooled_sequences,
    .tokens = plain_tokens,
    .answers = plain_answers};

}  // namespace xgrad::pretrained::detail
