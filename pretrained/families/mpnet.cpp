#include "../detail/family.hpp"

// MPNet (Song et al. 2020, arXiv:2004.09297): BERT's blocks, RoBERTa's positions, and a bias of the scores by
// distance, which all layers share.
namespace xgrad::pretrained::detail {
namespace {

constexpr std::size_t mpnet_buckets = 32;  // of distances, whatever the size of the table
constexpr NamedPart mpnet_block[]{{BlockPart::query, "attention.attn.q"},
                                  {BlockPart::key, "attention.attn.k"},
                                  {BlockPart::value, "attention.attn.v"},
                                  {BlockPart::out, "attention.attn.o"},
                                  {BlockPart::attention_norm, "attention.LayerNorm"},
                                  {BlockPart::up, "intermediate.dense"},
                                  {BlockPart::down, "output.dense"},
                                  {BlockPart::feed_forward_norm, "output.LayerNorm"}};

constexpr BodyOptions mpnet_body = [] {
  BodyOptions body = bert_body_of("encoder.layer.", mpnet_block);
  body.positions_after_padding = true;
  body.position_bias = "encoder.relative_attention_bias";
  body.num_buckets = mpnet_buckets;
  return body;
}();

}  // namespace

const FamilyInfo mpnet{
    .family = Family::mpnet,
    .model_type = "mpnet",
    .class_name = "MPNet",
    .files = {.prefix = "mpnet."},
    .body = mpnet_body,
    .defaults =
        [](Config& config) {
          config.vocab_size = 30527;
          config.type_vocab_size = 0;
          config.pad_token_id = 1;
          config.relative_attention_num_buckets = mpnet_buckets;
        },
    .fields =
        [](Fields& fields, Config& config) {
          bert_fields(fields, config);
          fields.size("relative_attention_num_buckets", config.relative_attention_num_buckets);
        },
    .broken_rule = [](const Config& config) -> std::string {
      if (config.pad_token_id != 1) return "pad_token_id must be 1 in mpnet";
      if (config.max_position_embeddings <= 2) return "max_position_embeddings must be above 2";
      return config.relative_attention_num_buckets >= mpnet_buckets
                 ? ""
                 : "relative_attention_num_buckets must be at least 32";
    },
    .pooler = "pooler.dense",
    .prediction = dense_prediction,
    .prediction_bias = "lm_head.bias",
    .decoder = "lm_head.decoder.weight",
    .sequences = [](const Config& config) { return dense_sequences(config, Activation::tanh); },
    .tokens = plain_tokens,
    .answers = plain_answers};

}  // namespace xgrad::pretrained::detail
