#include "../../models/relative_positions.hpp"
#include "../detail/bodies/bert_body.hpp"

// MPNet (Song et al. 2020, arXiv:2004.09297): BERT's blocks, RoBERTa's positions, and a bias of the scores by
// distance, which all layers share.
namespace xgrad::pretrained::detail {
namespace {

constexpr std::size_t mpnet_buckets = 32;  // of distances, whatever the size of the table
constexpr NamedPart mpnet_names[]{{BlockPart::query, "attention.attn.q"},
                                  {BlockPart::key, "attention.attn.k"},
                                  {BlockPart::value, "attention.attn.v"},
                                  {BlockPart::out, "attention.attn.o"},
                                  {BlockPart::attention_norm, "attention.LayerNorm"},
                                  {BlockPart::up, "intermediate.dense"},
                                  {BlockPart::down, "output.dense"},
                                  {BlockPart::feed_forward_norm, "output.LayerNorm"}};

struct MPNetOptions : FamilyOptions {
  std::size_t table = mpnet_buckets;
};

template <class T>
class MPNetBody : public Body<T> {
 public:
  MPNetBody(const Config& config, Weights& weights)
      : Body<T>(config),
        embeddings_(this->child("embeddings", TokenEmbeddings<T>(config, {weights, "embeddings."},
                                                                 {.positions = Positions::after_padding}))) {
    const From from{weights, ""};
    for (std::size_t i = 0; i < config.num_hidden_layers; ++i) {
      const std::string name = layer_name(i);
      layers_.push_back(this->block(from, name, block_options(config), mpnet_names));
    }
    bias_ = this->embedding(from, "encoder.relative_attention_bias", options_of<MPNetOptions>(config).table,
                            config.num_attention_heads);
  }

  Variable<T> operator()(const EncoderCall<T>& call) const override {
    const std::size_t length = call.input.input_ids.shape(1);
    const Ids distances =
        relative_position_buckets(length, length, {.num_buckets = mpnet_buckets, .max_distance = 128});
    ForwardContext<T> context = call.context();
    context.mask = with_bias(call.mask, relative_position_bias(bias_->weight(), distances));
    Variable<T> x = embeddings_(call);
    for (const TransformerBlock<T>& layer : layers_) {
      call.keep(x);
      x = layer(context, x);
    }
    return x;
  }

  const Embedding<T>& words() const override { return embeddings_.words(); }
  std::vector<std::string> embedding_names() const override { return {"embeddings"}; }
  std::string layer_name(std::size_t i) const override { return "encoder.layer." + std::to_string(i); }

 private:
  TokenEmbeddings<T> embeddings_;
  std::vector<TransformerBlock<T>> layers_;
  std::optional<Embedding<T>> bias_;  // declared after the layers, as in files
};

}  // namespace

const FamilyInfo mpnet{
    .family = Family::mpnet,
    .model_type = "mpnet",
    .class_name = "MPNet",
    .prefix = "mpnet.",
    .pooler = "pooler.dense",
    .biased_by_distance = true,
    .defaults =
        [](Config& config) {
          config.vocab_size = 30527;
          config.type_vocab_size = 0;
          config.pad_token_id = 1;
          config.own = std::make_shared<MPNetOptions>();
        },
    .fields =
        [](Fields& fields, Config& config) {
          bert_fields(fields, config);
          fields.size("relative_attention_num_buckets", changed_options<MPNetOptions>(config).table);
        },
    .broken_rule = [](const Config& config) -> std::string {
      if (config.pad_token_id != 1) return "pad_token_id must be 1 in mpnet";
      if (config.max_position_embeddings <= 2) return "max_position_embeddings must be above 2";
      return options_of<MPNetOptions>(config).table >= mpnet_buckets
                 ? ""
                 : "relative_attention_num_buckets must be at least 32";
    },
    .first_position = [](const Config&) -> std::size_t { return 2; },
    .float_body = make_body<float, MPNetBody>,
    .double_body = make_body<double, MPNetBody>,
    .prediction = dense_prediction,
    .prediction_bias = "lm_head.bias",
    .decoder = "lm_head.decoder.weight",
    .sequences = [](const Config& config) { return dense_sequences(config, Activation::tanh); },
    .tokens = plain_tokens,
    .answers = plain_answers};

}  // namespace xgrad::pretrained::detail
