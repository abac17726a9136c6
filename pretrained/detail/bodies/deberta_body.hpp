#pragma once

#include <cmath>

#include "../../../models/attention/relative_positions.hpp"
#include "../../../ops/index/indexing.hpp"
#include "../family.hpp"

// Not installed: what DeBERTa (He et al. 2020, arXiv:2006.03654) and its second version share.
namespace xgrad::pretrained::detail {

struct DebertaOptions : FamilyOptions {
  bool relative_attention = false, legacy = true;
  bool c2p = false, p2c = false;  // scores of contents with positions, and of positions with contents
  std::size_t max_relative_positions = 0;  // 0: max_position_embeddings
  double pooler_dropout = 0;
  Activation pooler_act = Activation::gelu;
  // of the second version
  std::size_t position_buckets = 0;  // of a direction; 0: each distance is one
  bool share_att_key = false, norm_rel_ebd = false;
  std::size_t conv_kernel_size = 0, conv_groups = 1;  // 0: no convolution
  Activation conv_act = Activation::tanh;

  std::size_t max_distance(const Config& config) const;
  /// Half of the table's rows.
  std::size_t span(const Config& config) const {
    return position_buckets > 0 ? position_buckets : max_distance(config);
  }
};

constexpr BodyOptions deberta_body = [] {
  BodyOptions body = bert_body;
  body.word_project = "embed_proj";
  body.hides_padding = true;
  return body;
}();

void deberta_defaults(Config& config);
/// The fields of both versions.
void deberta_fields(Fields& fields, Config& config, DebertaOptions& options);
/// A size that is none if it is below 1.
void size_or_none(Fields& fields, const char* name, std::size_t& size);
std::string deberta_rule(const Config& config);
TransformForm deberta_prediction(const Config& config);
SequenceForm deberta_sequences(const Config& config);
TokenForm deberta_tokens(const Config& config);

/// The positions of one call.
template <class T>
struct DisentangledPositions : AttentionPositions {
  Variable<T> table;                 ///< of relative positions, undefined without any
  std::size_t first = 0, count = 0;  ///< the rows of the table that the call needs
  Ids rows = {};                     ///< (length, length), among those
  std::optional<Mask> padding = {};  ///< (batch, 1, length, 1), true for padding; absent without any

  DisentangledPositions(const ForwardCall<T>& call, const Config& config, Variable<T> table);
};

/// What a layer projects its input and the rows of the table to; positions may be undefined.
template <class T>
struct Disentangled {
  Variable<T> queries, keys, values, pos_k, pos_q;
};

/// The queries, and the mask of keys with the bias that the positions add to scores.
template <class T>
std::pair<Variable<T>, AttentionMask<T>> disentangled_scores(const AttentionMask<T>& mask,
                                                             const DisentangledPositions<T>& positions,
                                                             const Disentangled<T>& from,
                                                             const AttentionOptions& options);

/// A block with disentangled scores, whose Projections(config, From), of parameters below "attention.self",
/// make a Disentangled of its input and of rows of the table, which are undefined without relative positions.
/// A query of padding attends to all keys alike, as in Hugging Face.
template <class T, template <class> class Projections>
class DebertaBlock : public TransformerBlock<T> {
 public:
  DebertaBlock(const Config& config, const From& from)
      : TransformerBlock<T>("TransformerBlock", block_options(config, 0)),
        config_(config),
        projections_(this->child("attention.self", Projections<T>(config, from.below("attention.self")))) {
    StoredLayers<T> source(from);
    this->declare(bert_block, source, false);
  }

 protected:
  Variable<T> attention(const ForwardContext<T>& context, const Variable<T>& x) const override {
    const auto& positions = static_cast<const DisentangledPositions<T>&>(*context.positions);
    const DebertaOptions& own = options_of<DebertaOptions>(config_);
    Variable<T> rows;
    if (positions.table.defined())
      rows = narrow(this->drop(positions.table, config_.hidden_dropout_prob), 0, positions.first,
                    positions.count);
    const Disentangled<T> from = projections_(x, rows);
    AttentionOptions options = this->attention_options();
    const std::size_t head_dim = config_.hidden_size / config_.num_attention_heads,
                      kinds = 1 + own.c2p + own.p2c;
    options.scale = 1 / std::sqrt(static_cast<double>(head_dim * kinds));
    const auto [queries, mask] = disentangled_scores(context.mask, positions, from, options);
    return this->attend(context.attentions, mask, queries, from.keys, from.values, options);
  }

 private:
  Config config_;
  Projections<T> projections_;
};

/// norm(y + act(drop(conv1d(x)))) of the input and the output of the first layer, 0 where padding is.
template <class T>
class DebertaConvolution : public Assembled<T> {
 public:
  DebertaConvolution(const Config& config, const From& from);

  Variable<T> operator()(const ForwardCall<T>& call, const Variable<T>& x, const Variable<T>& y) const;

 private:
  Config config_;
  Variable<T> weight_, bias_;
  std::optional<LayerNorm<T>> norm_;  // declared behind the convolution, as in files
};

template <class T, template <class> class Projections>
class DebertaBody : public Body<T> {
 public:
  DebertaBody(const Config& config, Weights& weights)
      : Body<T>(config, weights, [&](const From& from, std::size_t) {
          return std::make_shared<const DebertaBlock<T, Projections>>(config, from);
        }) {
    const From from{weights, ""};
    if (own().relative_attention) {
      table_ = this->embedding(from, "encoder.rel_embeddings", 2 * own().span(config), config.hidden_size);
      this->add_embedding_name("encoder.rel_embeddings");
    }
    if (own().norm_rel_ebd) {
      norm_ = this->norm(from, "encoder.LayerNorm", config.hidden_size, config.layer_norm_eps);
      this->add_embedding_name("encoder.LayerNorm");
    }
    if (own().conv_kernel_size > 0) {
      convolution_ = this->child("encoder.conv", DebertaConvolution<T>(config, from.below("encoder.conv")));
      this->add_embedding_name("encoder.conv");
    }
  }

 protected:
  void add_positions(const ForwardCall<T>& call, ForwardContext<T>& context) const override {
    Variable<T> table;
    if (table_) table = norm_ ? (*norm_)(table_->weight()) : table_->weight();
    context.positions = std::make_shared<const DisentangledPositions<T>>(call, this->config(), table);
  }

  Variable<T> after_first(const ForwardCall<T>& call, const Variable<T>& embedded,
                          const Variable<T>& x) const override {
    return convolution_ ? (*convolution_)(call, embedded, x) : x;
  }

 private:
  const DebertaOptions& own() const { return options_of<DebertaOptions>(this->config()); }

  std::optional<Embedding<T>> table_;  // declared after the layers, as in files
  std::optional<LayerNorm<T>> norm_;
  std::optional<DebertaConvolution<T>> convolution_;
};

/// For FamilyInfo.
template <class T, template <class> class Projections>
std::shared_ptr<const Body<T>> make_deberta_body(const Config& config, Weights& weights) {
  return std::make_shared<const DebertaBody<T, Projections>>(config, weights);
}

}  // namespace xgrad::pretrained::detail
