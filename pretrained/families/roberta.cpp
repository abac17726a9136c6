#include "../detail/family.hpp"

// RoBERTa (Liu et al. 2019, arXiv:1907.11692) and those that differ in their texts and tokens alone:
// XLM-RoBERTa (Conneau et al. 2020, arXiv:1911.02116) and CamemBERT (Martin et al. 2020, arXiv:1911.03894).
namespace xgrad::pretrained::detail {
namespace {

constexpr BodyOptions roberta_body = [] {
  BodyOptions body = bert_body;
  body.positions_after_padding = true;
  return body;
}();

constexpr FamilyInfo roberta_relative(Family family, const char* model_type, const char* class_name) {
  return {.family = family,
          .model_type = model_type,
          .class_name = class_name,
          .files = {.prefix = "roberta."},
          .body = roberta_body,
          .defaults =
              [](Config& config) {
                config.vocab_size = 50265;
                config.pad_token_id = 1;
              },
          .fields =
              [](Fields& fields, Config& config) {
                bert_fields(fields, config);
                absolute_positions(fields);
              },
          .broken_rule = [](const Config& config) -> std::string {
            return config.max_position_embeddings > first_position(config)
                       ? ""
                       : "max_position_embeddings must be above pad_token_id + 1";
          },
          .pooler = "pooler.dense",
          .prediction = dense_prediction,
          .prediction_bias = "lm_head.bias",
          .decoder = "lm_head.decoder.weight",
          .sequences = [](const Config& config) { return dense_sequences(config, Activation::tanh); },
          .tokens = plain_tokens,
          .answers = plain_answers};
}

}  // namespace

const FamilyInfo roberta = roberta_relative(Family::roberta, "roberta", "Roberta");
const FamilyInfo xlm_roberta = roberta_relative(Family::xlm_roberta, "xlm-roberta", "XLMRoberta");
const FamilyInfo camembert = roberta_relative(Family::camembert, "camembert", "Camembert");

}  // namespace xgrad::pretrained::detail
