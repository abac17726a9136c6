#include "../detail/family.hpp"

// BERT (Devlin et al. 2019, arXiv:1810.04805), whose layout MiniLM, bge, e5 and gte have.
namespace xgrad::pretrained::detail {

void block_fields(Fields& fields, Config& config) {
  fields.size("hidden_size", config.hidden_size);
  fields.size("num_hidden_layers", config.num_hidden_layers, 0);
  fields.size("num_attention_heads", config.num_attention_heads);
  fields.size("intermediate_size", config.intermediate_size);
  fields.size("type_vocab_size", config.type_vocab_size, 0);
  fields.number("layer_norm_eps", config.layer_norm_eps);
  fields.choice("hidden_act", config.hidden_act, activation_names());
  fields.probability("hidden_dropout_prob", config.hidden_dropout_prob);
  fields.probability("attention_probs_dropout_prob", config.attention_probs_dropout_prob);
}

void bert_fields(Fields& fields, Config& config) {
  block_fields(fields, config);
  if (fields.json() != nullptr) config.classifier_dropout = config.hidden_dropout_prob;
  fields.probability("classifier_dropout", config.classifier_dropout);
}

void absolute_positions(Fields& fields) {
  fields.must_be("position_embedding_type", "absolute",
                 "other positions than learned ones are not supported");
}

SequenceForm pooled_sequences(const Config& config) {
  return {.pool = SequencePool::pooler, .drop_after = config.classifier_dropout};
}

SequenceForm dense_sequences(const Config& config, Activation act) {
  return {
      .pool = SequencePool::first,
      .transform =
          TransformForm{.dense = "classifier.dense", .norm = nullptr, .act = act, .out = config.hidden_size},
      .drop_before = config.classifier_dropout,
      .drop_after = config.classifier_dropout,
      .classifier = "classifier.out_proj"};
}

TransformForm dense_prediction(const Config& config) {
  return {.dense = "lm_head.dense",
          .norm = "lm_head.layer_norm",
          .act = Activation::gelu,
          .out = config.embedding_size};
}

TokenForm plain_tokens(const Config& config) { return {.drop = config.classifier_dropout}; }

TokenForm plain_answers(const Config&) { return {.classifier = "qa_outputs"}; }

const FamilyInfo bert{.family = Family::bert,
                      .model_type = "bert",
                      .class_name = "Bert",
                      .files = {.prefix = "bert."},
                      .body = bert_body,
                      .fields =
                          [](Fields& fields, Config& config) {
                            bert_fields(fields, config);
                            absolute_positions(fields);
                          },
                      .pooler = "pooler.dense",
                      .prediction =
                          [](const Config& config) {
                            return TransformForm{.dense = "cls.predictions.transform.dense",
                                                 .norm = "cls.predictions.transform.LayerNorm",
                                                 .act = config.hidden_act,
                                                 .out = config.embedding_size};
                          },
                      .prediction_bias = "cls.predictions.bias",
                      .decoder = "cls.predictions.decoder.weight",
                      .sequences = pooled_sequences,
                      .tokens = plain_tokens,
                      .answers = plain_answers};

}  // namespace xgrad::pretrained::detail
