#include "../detail/bert_body.hpp"

// BERT (Devlin et al. 2019, arXiv:1810.04805), whose layout MiniLM, bge, e5 and gte have.
namespace xgrad::pretrained::detail {
namespace {

template <class T>
std::shared_ptr<const Body<T>> bert_body(const Config& config, Weights& weights) {
  return std::make_shared<const BertBody<T>>(config, weights,
                                             BertForm{.names = bert_names, .layers = "encoder.layer."});
}

}  // namespace

const FamilyInfo bert{.family = Family::bert,
                      .model_type = "bert",
                      .class_name = "Bert",
                      .prefix = "bert.",
                      .pooler = "pooler.dense",
                      .fields =
                          [](Fields& fields, Config& config) {
                            bert_fields(fields, config);
                            fields.must_be("position_embedding_type", "absolute",
                                           "attention to relative positions is not supported");
                          },
                      .float_body = bert_body<float>,
                      .double_body = bert_body<double>,
                      .prediction =
                          [](const Config& config) {
                            return TransformForm{.dense = "cls.predictions.transform.dense",
                                                 .norm = "cls.predictions.transform.LayerNorm",
                                                 .act = config.hidden_act,
                                                 .out = config.embedding_size};
                          },
                      .prediction_bias = "cls.predictions.bias",
                      .decoder = "cls.predictions.decoder.weight",
                      .sequences =
                          [](const Config& config) {
                            return SequenceForm{.pool = SequencePool::pooler,
                                                .drop_after = config.classifier_dropout};
                          },
                      .tokens = plain_tokens,
                      .answers = plain_answers};

}  // namespace xgrad::pretrained::detail
