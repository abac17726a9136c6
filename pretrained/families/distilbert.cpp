#include "../detail/family.hpp"

// DistilBERT (Sanh et al. 2019, arXiv:1910.01108): BERT without types and pooler, half the layers, and names
// of its own. It does not drop the output of attention.
namespace xgrad::pretrained::detail {
namespace {

constexpr NamedPart distilbert_block[]{{BlockPart::query, "attention.q_lin"},
                                       {BlockPart::key, "attention.k_lin"},
                                       {BlockPart::value, "attention.v_lin"},
                                       {BlockPart::out, "attention.out_lin"},
                                       {BlockPart::attention_norm, "sa_layer_norm"},
                                       {BlockPart::up, "ffn.lin1"},
                                       {BlockPart::down, "ffn.lin2"},
                                       {BlockPart::feed_forward_norm, "output_layer_norm"}};

constexpr BodyOptions distilbert_body = [] {
  BodyOptions body = bert_body_of("transformer.layer.", distilbert_block);
  body.block_options = [](const Config&, std::size_t, TransformerBlockOptions& block) {
    block.attention_output_dropout = 0;
  };
  return body;
}();

}  // namespace

const FamilyInfo distilbert{
    .family = Family::distilbert,
    .model_type = "distilbert",
    .class_name = "DistilBert",
    .files = {.prefix = "distilbert."},
    .body = distilbert_body,
    .defaults =
        [](Config& config) {
          config.num_hidden_layers = 6;
          config.type_vocab_size = 0;
          config.classifier_dropout = 0.2;
        },
    .fields =
        [](Fields& fields, Config& config) {
          fields.size("dim", config.hidden_size);
          fields.size("n_layers", config.num_hidden_layers, 0);
          fields.size("n_heads", config.num_attention_heads);
          fields.size("hidden_dim", config.intermediate_size);
          fields.choice("activation", config.hidden_act, activation_names());
          fields.probability("dropout", config.hidden_dropout_prob);
          fields.probability("attention_dropout", config.attention_probs_dropout_prob);
          fields.probability("seq_classif_dropout", config.classifier_dropout);
          fields.probability("qa_dropout", config.qa_dropout);
          fields.ignore({"sinusoidal_pos_embds"});
        },
    .broken_rule = [](const Config& config) -> std::string {
      if (config.type_vocab_size == 0) return "";
      return "type_vocab_size must be 0 in distilbert, got " + std::to_string(config.type_vocab_size);
    },
    .prediction =
        [](const Config& config) {
          return TransformForm{.dense = "vocab_transform",
                               .norm = "vocab_layer_norm",
                               .act = config.hidden_act,
                               .out = config.embedding_size};
        },
    .prediction_bias = "vocab_projector.bias",
    .decoder = "vocab_projector.weight",
    .sequences =
        [](const Config& config) {
          return SequenceForm{.pool = SequencePool::first,
                              .transform = TransformForm{.dense = "pre_classifier",
                                                         .norm = nullptr,
                                                         .act = Activation::relu,
                                                         .out = config.hidden_size},
                              .drop_after = config.classifier_dropout};
        },
    .tokens = [](const Config& config) { return TokenForm{.drop = config.hidden_dropout_prob}; },
    .answers =
        [](const Config& config) {
          return TokenForm{.drop = config.qa_dropout, .classifier = "qa_outputs"};
        }};

}  // namespace xgrad::pretrained::detail
