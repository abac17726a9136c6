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

struct AlbertOptions : FamilyOptions {
  std::size_t groups = 1, blocks = 1;  // of a group
};

/// The blocks of a group follow each other, and each group is repeated.
BlockStack albert_stack(const Config& config) {
  const AlbertOptions& own = options_of<AlbertOptions>(config);
  BlockStack stack;
  for (std::size_t group = 0; group < own.groups; ++group)
    for (std::size_t i = 0; i < own.blocks; ++i)
      stack.names.push_back("encoder.albert_layer_groups." + std::to_string(group) + ".albert_layers." +
                            std::to_string(i));
  for (std::size_t layer = 0; layer < config.num_hidden_layers; ++layer)
    for (std::size_t i = 0; i < own.blocks; ++i)
      stack.order.push_back(layer * own.groups / config.num_hidden_layers * own.blocks + i);
  return stack;
}

constexpr BodyOptions albert_body = [] {
  BodyOptions body = bert_body_of("", albert_block);
  body.project = "encoder.embedding_hidden_mapping_in";
  body.projects_always = true;
  body.block_options = [](const Config&, std::size_t, TransformerBlockOptions& block) {
    block.output_dropout = 0;
  };
  body.stack = albert_stack;
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
          config.own = std::make_shared<AlbertOptions>();
        },
    .fields =
        [](Fields& fields, Config& config) {
          bert_fields(fields, config);
          AlbertOptions& options = changed_options<AlbertOptions>(config);
          fields.size("embedding_size", config.embedding_size);
          fields.size("num_hidden_groups", options.groups);
          fields.size("inner_group_num", options.blocks);
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
