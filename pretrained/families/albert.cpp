#include "../detail/bodies/bert_body.hpp"

// ALBERT (Lan et al. 2020, arXiv:1909.11942): narrow embeddings, and a few groups of blocks that are used
// again and again.
namespace xgrad::pretrained::detail {
namespace {

constexpr NamedPart albert_names[]{{BlockPart::query, "attention.query"},
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

template <class T>
class AlbertBody : public Body<T> {
 public:
  AlbertBody(const Config& config, Weights& weights)
      : Body<T>(config),
        config_(config),
        embeddings_(this->child("embeddings", TokenEmbeddings<T>(config, {weights, "embeddings."}, {}))),
        project_(this->linear({weights, ""}, "encoder.embedding_hidden_mapping_in",
                              {config.embedding_size, config.hidden_size})) {
    const From from{weights, ""};
    const AlbertOptions& options = options_of<AlbertOptions>(config);
    TransformerBlockOptions block = block_options(config);
    block.output_dropout = 0;
    for (std::size_t group = 0; group < options.groups; ++group) {
      for (std::size_t i = 0; i < options.blocks; ++i) {
        const std::string name =
            "encoder.albert_layer_groups." + std::to_string(group) + ".albert_layers." + std::to_string(i);
        blocks_.push_back(this->block(from, name, block, albert_names));
      }
    }
  }

  Variable<T> operator()(const EncoderCall<T>& call) const override {
    Variable<T> x = project_(embeddings_(call));
    const std::size_t count = options_of<AlbertOptions>(config_).blocks;
    const ForwardContext<T> context = call.context();
    for (std::size_t i = 0; i < config_.num_hidden_layers; ++i) {
      for (std::size_t block = 0; block < count; ++block) {
        call.keep(x);
        x = blocks_[group_of(i) * count + block](context, x);
      }
    }
    return x;
  }

  const Embedding<T>& words() const override { return embeddings_.words(); }
  std::vector<std::string> embedding_names() const override {
    return {"embeddings", "encoder.embedding_hidden_mapping_in"};
  }
  std::string layer_name(std::size_t i) const override {
    return "encoder.albert_layer_groups." + std::to_string(group_of(i));
  }
  bool packs() const override { return true; }

 private:
  std::size_t group_of(std::size_t layer) const {
    return layer * options_of<AlbertOptions>(config_).groups / config_.num_hidden_layers;
  }

  Config config_;
  TokenEmbeddings<T> embeddings_;
  Linear<T> project_;
  std::vector<TransformerBlock<T>> blocks_;
};

}  // namespace

const FamilyInfo albert{
    .family = Family::albert,
    .model_type = "albert",
    .class_name = "Albert",
    .prefix = "albert.",
    .pooler = "pooler",
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
    .float_body = make_body<float, AlbertBody>,
    .double_body = make_body<double, AlbertBody>,
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
