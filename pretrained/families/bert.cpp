#include "../detail/bodies/bert_body.hpp"

// BERT (Devlin et al. 2019, arXiv:1810.04805), whose layout MiniLM, bge, e5 and gte have.
namespace xgrad::pretrained::detail {

const FamilyInfo bert{.family = Family::bert,
                      .model_type = "bert",
                      .class_name = "Bert",
                      .prefix = "bert.",
                      .pooler = "pooler.dense",
                      .fields =
                          [](Fields& fields, Config& config) {
                            bert_fields(fields, config);
                            absolute_positions(fields);
                          },
                      .float_body = make_bert_body<float, bert_form>,
                      .double_body = make_bert_body<double, bert_form>,
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
