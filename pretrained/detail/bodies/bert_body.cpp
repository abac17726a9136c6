#include "bert_body.hpp"

#include "../config/rotary_fields.hpp"

namespace xgrad::pretrained::detail {

TransformerBlockOptions block_options(const Config& config) {
  return {.d_model = config.hidden_size,
          .num_heads = config.num_attention_heads,
          .d_ff = config.intermediate_size,
          .eps = config.layer_norm_eps,
          .activation = config.hidden_act,
          .attention_dropout = config.attention_probs_dropout_prob,
          .attention_output_dropout = config.hidden_dropout_prob,
          .output_dropout = config.hidden_dropout_prob};
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
  TransformerBlockOptions block = block_options(config);
  if (!form.drops_attention) block.attention_output_dropout = 0;
  if (form.drops_inner) block.inner_dropout = config.hidden_dropout_prob;
  block.is_gated = form.is_gated;
  block.qkv_bias = block.out_bias = form.attention_bias;
  block.up_bias = form.up_bias;
  block.down_bias = form.down_bias;
  if (form.positions == Positions::rotary) {
    RotaryConfig rotary = options_of<RotaryOptions>(config).rotary;
    rotary.dim = block.head_dim = head_dim(config);
    block.rotary = 0;
    rotary_.emplace(rotary, config.max_position_embeddings);
  }
  for (std::size_t i = 0; i < config.num_hidden_layers; ++i) {
    const std::string name = layer_name(i);
    layers_.push_back(this->block(from, name, block, form.names));
  }
}

template <class T>
Variable<T> BertBody<T>::operator()(const EncoderCall<T>& call) const {
  Variable<T> x = embeddings_(call);
  if (project_) x = (*project_)(x);
  ForwardContext<T> context = call.context();
  if (rotary_) context.rotary = {(*rotary_)(call.input.input_ids.shape(1))};
  for (const TransformerBlock<T>& layer : layers_) {
    call.keep(x);
    x = layer(context, x);
  }
  return x;
}

template class BertBody<float>;
template class BertBody<double>;

}  // namespace xgrad::pretrained::detail
