#include "../../ops/pointwise/arithmetic.hpp"
#include "../../ops/shape/shapes.hpp"
#include "../detail/bodies/deberta_body.hpp"

// DeBERTa (He et al. 2020, arXiv:2006.03654): BERT's blocks, and scores of contents with relative positions.
namespace xgrad::pretrained::detail {
namespace {

/// One projection holds queries, keys and values, head by head; keys have no bias.
template <class T>
class DebertaProjections : public Assembled<T> {
 public:
  DebertaProjections(const Config& config, const From& from)
      : Assembled<T>("SelfAttention"),
        config_(config),
        query_bias_(bias(from, "q_bias")),
        value_bias_(bias(from, "v_bias")),
        in_(this->linear(from, "in_proj", {config.hidden_size, 3 * config.hidden_size, false})) {
    if (!own().relative_attention) return;
    const std::size_t size = config.hidden_size;
    if (own().c2p) position_keys_ = this->linear(from, "pos_proj", {size, size, false});
    if (own().p2c) position_queries_ = this->linear(from, "pos_q_proj", {size, size});
  }

  Disentangled<T> operator()(const Variable<T>& x, const Variable<T>& positions) const {
    const auto scope = this->scope();
    const std::size_t heads = config_.num_attention_heads;
    const Variable<T> all = reshape(in_(x), {x.shape(0), x.shape(1), heads, 3, config_.hidden_size / heads});
    const auto part = [&](std::size_t i) { return reshape(select(all, 3, i), x.shape()); };
    return {.queries = part(0) + query_bias_,
            .keys = part(1),
            .values = part(2) + value_bias_,
            .pos_k = position_keys_ ? (*position_keys_)(positions) : Variable<T>(),
            .pos_q = position_queries_ ? (*position_queries_)(positions) : Variable<T>()};
  }

 private:
  const DebertaOptions& own() const { return options_of<DebertaOptions>(config_); }
  Variable<T> bias(const From& from, const char* name) {
    return this->parameter(
        name, from.weights.take<T>(from.prefix + name, {config_.hidden_size}, Start::zeros, from.part));
  }

  Config config_;
  Variable<T> query_bias_, value_bias_;
  Linear<T> in_;
  std::optional<Linear<T>> position_keys_, position_queries_;
};

}  // namespace

const FamilyInfo deberta{.family = Family::deberta,
                         .model_type = "deberta",
                         .class_name = "Deberta",
                         .files = {.prefix = "deberta."},
                         .body = deberta_body,
                         .narrow_embeddings = true,
                         .defaults =
                             [](Config& config) {
                               config.vocab_size = 50265;
                               deberta_defaults(config);
                             },
                         .fields =
                             [](Fields& fields, Config& config) {
                               deberta_fields(fields, config, changed_options<DebertaOptions>(config));
                               fields.must_be("talking_head", false, "heads are not mixed");
                             },
                         .broken_rule = deberta_rule,
                         .float_body = make_deberta_body<float, DebertaProjections>,
                         .double_body = make_deberta_body<double, DebertaProjections>,
                         .prediction = deberta_prediction,
                         .prediction_bias = "cls.predictions.bias",
                         .decoder = "cls.predictions.decoder.weight",
                         .sequences = deberta_sequences,
                         .tokens = deberta_tokens,
                         .answers = plain_answers};

}  // namespace xgrad::pretrained::detail
