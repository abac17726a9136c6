#include "../detail/family.hpp"

// ELECTRA (Clark et al. 2020, arXiv:2003.10555): BERT without a pooler, whose embeddings may be narrower than
// its layers.
namespace xgrad::pretrained::detail {
namespace {

constexpr BodyOptions electra_body = [] {
  BodyOptions body = bert_body;
  body.project = "embeddings_project";
  return body;
}();

}  // namespace

const FamilyInfo electra{
    .family = Family::electra,
    .model_type = "electra",
    .class_name = "Electra",
    .files = {.prefix = "electra."},
    .body = electra_body,
    .narrow_embeddings = true,
    .defaults =
        [](Config& config) {
          config.hidden_size = 256;
          config.num_attention_heads = 4;
          config.intermediate_size = 1024;
          config.embedding_size = 128;
        },
    .fields =
        [](Fields& fields, Config& config) {
          bert_fields(fields, config);
          fields.size("embedding_size", config.embedding_size);
          absolute_positions(fields);
          // of the summary that no supported head has
          fields.ignore({"summary_activation", "summary_last_dropout", "summary_type", "summary_use_proj"});
        },
    .prediction =
        [](const Config& config) {
          return TransformForm{.dense = "generator_predictions.dense",
                               .norm = "generator_predictions.LayerNorm",
                               .act = Activation::gelu,
                               .out = config.embedding_size};
        },
    .prediction_bias = "generator_lm_head.bias",
    .decoder = "generator_lm_head.weight",
    .sequences = [](const Config& config) { return dense_sequences(config, Activation::gelu); },
    .tokens = plain_tokens,
    .answers = plain_answers};

}  // namespace xgrad::pretrained::detail
