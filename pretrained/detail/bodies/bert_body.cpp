#include "bert_body.hpp"

#include "../config/rotary_fields.hpp"

namespace xgrad::pretrained::detail {

BlockForm block_form(const Config& config) {
  return {.size = config.hidden_size,
          .heads = config.num_attention_heads,
          .inner = config.intermediate_size,
          .act = config.hidden_act,
          .eps = config.layer_norm_eps,
          .drop_weights = config.attention_probs_dropout_prob,
          .drop_attention = config.hidden_dropout_prob,
          .drop_output = config.hidden_dropout_prob};
}

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

SequenceForm dense_sequences(const Config& config, HiddenAct act) {
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
          .act = HiddenAct::gelu,
          .out = config.embedding_size};
}

TokenForm plain_tokens(const Config& config) { return {.drop = config.classifier_dropout}; }

TokenForm plain_answers(const Config&) { return {.classifier = "qa_outputs"}; }

template <class T>
BertBody<T>::BertBody(const Config& config, Weights& weights, const BertForm& form)
    : Body<T>(config),
      layer_names_(form.layers),
      embeddings_(this->child("embeddings", TokenEmbeddings<T>(config, {weights, "embeddings."},
                                                               {.positions = form.positions}))) {
  const From from{weights, ""};
  if (config.embedding_size != config.hidden_size) {
    project_ = this->linear(from, "embeddings_project", {config.embedding_size, config.hidden_size});
    names_.push_back("embeddings_project");
  }
  BlockForm block = block_form(config);
  if (!form.drops_attention) block.drop_attention = 0;
  if (form.drops_inner) block.drop_inner = config.hidden_dropout_prob;
  block.biases = form.biases;
  if (form.positions == Positions::rotary) {
    RotaryConfig rotary = options_of<RotaryOptions>(config).rotary;
    rotary.dim = block.head_dim = head_dim(config);
    rotary_.emplace(rotary, config.max_position_embeddings);
  }
  for (std::size_t i = 0; i < config.num_hidden_layers; ++i) {
    const std::string name = layer_name(i);
    layers_.push_back(this->child(name, PostNormBlock<T>(block, from.below(name), form.names)));
  }
}

template <class T>
Variable<T> BertBody<T>::operator()(const EncoderCall<T>& call) const {
  Variable<T> x = embeddings_(call);
  if (project_) x = (*project_)(x);
  std::optional<RotaryTables<T>> rotary;
  if (rotary_) rotary = (*rotary_)(call.input.input_ids.shape(1));
  for (const PostNormBlock<T>& layer : layers_) {
    call.keep(x);
    x = layer(call, {.mask = call.mask, .rotary = rotary ? &*rotary : nullptr}, x);
  }
  return x;
}

template class BertBody<float>;
template class BertBody<double>;

}  // namespace xgrad::pretrained::detail
