#include "encoder.hpp"

#include <algorithm>
#include <optional>

#include "../graph/grad_mode.hpp"
#include "../ops/attention/attention_with_weights.hpp"
#include "../ops/attention/detail/packed_self_attention.hpp"
#include "../ops/attention/self_attention.hpp"
#include "../ops/index/indexing.hpp"
#include "../ops/pointwise/dropout.hpp"
#include "../ops/pointwise/elementwise.hpp"
#include "../ops/shape/shapes.hpp"
#include "detail/ids.hpp"
#include "detail/weights.hpp"

namespace xgrad::pretrained {
namespace {

using detail::Part, detail::Start, detail::take_linear, detail::take_norm, detail::Weights;

/// How a family spells the parts of a layer.
struct LayerNames {
  const char *layers, *query, *key, *value, *out, *norm1, *up, *down, *norm2;
};

LayerNames names_of(Family family) {
  if (family == Family::distilbert) {
    return {"transformer.layer.", "attention.q_lin",   "attention.k_lin",
            "attention.v_lin",    "attention.out_lin", "sa_layer_norm",
            "ffn.lin1",           "ffn.lin2",          "output_layer_norm"};
  }
  return {"encoder.layer.",       "attention.self.query",   "attention.self.key",
          "attention.self.value", "attention.output.dense", "attention.output.LayerNorm",
          "intermediate.dense",   "output.dense",           "output.LayerNorm"};
}

template <class T>
Embedding<T> take_embedding(Weights& weights, const char* name, std::size_t count, std::size_t size,
                            std::optional<std::int64_t> padding) {
  Array<T> weight = weights.take<T>("embeddings." + std::string(name) + ".weight", {count, size},
                                    Start::normal, Part::encoder);
  return Embedding<T>(std::move(weight), {.padding_idx = padding});
}

template <class T>
Projection<T> projection(const Linear<T>& linear) {
  return {linear.weight(), linear.bias()};
}

void check(const Input& input, std::size_t most) {
  const Shape& shape = input.input_ids.shape();
  if (shape.size() != 2 || shape[1] == 0)
    xgrad::detail::fail<ShapeError>("Encoder: input_ids must be (batch, length), got ", shape);
  if (shape[1] > most)
    xgrad::detail::fail<ShapeError>("Encoder: input_ids must have at most ", most, " positions, got ", shape);
  const auto check_shape = [&](const char* name, const std::optional<Ids>& ids) {
    if (ids && !same_shape(ids->shape(), shape))
      xgrad::detail::fail<ShapeError>("Encoder: ", name, " must have the shape of input_ids, got ",
                                      ids->shape(), " and ", shape);
  };
  check_shape("attention_mask", input.attention_mask);
  check_shape("token_type_ids", input.token_type_ids);
}

bool has_padding(const Input& input) {
  return input.attention_mask && std::ranges::find(*input.attention_mask, 0) != input.attention_mask->end();
}

/// (batch, 1, 1, length), true for tokens; nothing if all may be attended to.
template <class T>
AttentionMask<T> mask_of(const Input& input) {
  if (!has_padding(input)) return {};
  const Ids& tokens = *input.attention_mask;
  Mask allowed = Mask::from_shape({tokens.shape(0), 1, 1, tokens.shape(1)});
  std::ranges::transform(tokens, allowed.begin(), [](std::int64_t number) { return number != 0; });
  return allowed;
}

/// Whether the first of each sequence, which stands for all of it in some heads, is a token.
bool begins_with_tokens(const Ids& tokens) {
  for (std::size_t row = 0; row < tokens.shape(0); ++row) {
    if (tokens(row, 0) == 0) return false;
  }
  return true;
}

detail::Packing packing_of(const Ids& tokens) {
  const std::size_t length = tokens.shape(1);
  std::vector<std::size_t> lengths(tokens.shape(0));
  std::vector<std::int64_t> rows;
  Ids places = Ids::from_shape({tokens.size()});
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const bool is_token = tokens.data()[i] != 0;
    places(i) = is_token ? static_cast<std::int64_t>(rows.size()) : 0;
    if (!is_token) continue;
    rows.push_back(static_cast<std::int64_t>(i));
    ++lengths[i / length];
  }
  return {tokens.shape(0), length, std::move(lengths), detail::ids_of(rows), std::move(places)};
}

/// The ids of tokens, without those of padding.
Ids packed(const Ids& ids, const detail::Packing* packing) {
  if (packing == nullptr) return ids;
  Ids left = Ids::from_shape(packing->rows.shape());
  std::ranges::transform(packing->rows, left.begin(), [&](std::int64_t row) { return ids.data()[row]; });
  return left;
}

/// (batch, length, size) from (rows, size).
template <class T>
Variable<T> unpacked(const Variable<T>& x, const detail::Packing& packing) {
  return reshape(index_select(x, 0, packing.places), {packing.batch, packing.length, x.shape(1)});
}

}  // namespace

template <class T>
Variable<T> detail::activation(HiddenAct act, const Variable<T>& x) {
  switch (act) {
    case HiddenAct::relu:
      return relu(x);
    case HiddenAct::silu:
      return silu(x);
    case HiddenAct::gelu_tanh:
      return gelu(x, Gelu::tanh);
    case HiddenAct::gelu_fast:
      return x * sigmoid((x * T(2 * 0.7978845608)) * (square(x) * T(0.044715) + T(1)));
    case HiddenAct::gelu:
      break;
  }
  return gelu(x);
}

template <class T>
detail::EncoderLayer<T>::EncoderLayer(const Config& config, Weights& weights, const std::string& name)
    : Module<T>("EncoderLayer"),
      config_(config),
      query_(
          linear(weights, name, names_of(config.model_type).query, config.hidden_size, config.hidden_size)),
      key_(linear(weights, name, names_of(config.model_type).key, config.hidden_size, config.hidden_size)),
      value_(
          linear(weights, name, names_of(config.model_type).value, config.hidden_size, config.hidden_size)),
      out_(linear(weights, name, names_of(config.model_type).out, config.hidden_size, config.hidden_size)),
      norm1_(norm(weights, name, names_of(config.model_type).norm1)),
      up_(linear(weights, name, names_of(config.model_type).up, config.hidden_size,
                 config.intermediate_size)),
      down_(linear(weights, name, names_of(config.model_type).down, config.intermediate_size,
                   config.hidden_size)),
      norm2_(norm(weights, name, names_of(config.model_type).norm2)) {}

template <class T>
Linear<T> detail::EncoderLayer<T>::linear(Weights& weights, const std::string& layer, const char* name,
                                          std::size_t in, std::size_t out) {
  return this->child(name, take_linear<T>(weights, layer + name, in, out, Part::encoder));
}

template <class T>
LayerNorm<T> detail::EncoderLayer<T>::norm(Weights& weights, const std::string& layer, const char* name) {
  return this->child(
      name, take_norm<T>(weights, layer + name, config_.hidden_size, config_.layer_norm_eps, Part::encoder));
}

template <class T>
Variable<T> detail::EncoderLayer<T>::drop(const Variable<T>& x) const {
  return xgrad::detail::dropout_if_training(x, config_.hidden_dropout_prob, this->training());
}

template <class T>
Variable<T> detail::EncoderLayer<T>::operator()(const Variable<T>& x, const AttentionMask<T>& mask,
                                                const Packing* packing, Variable<T>* attention) const {
  const auto scope = this->scope();
  const AttentionOptions options{.dropout_p = this->training() ? config_.attention_probs_dropout_prob : 0,
                                 .num_heads = config_.num_attention_heads};
  Variable<T> context;
  if (attention != nullptr) {
    const Variable<T> queries = query_(x), keys = key_(x);
    AttentionResult<T> result = attention_with_weights(queries, keys, value_(x), mask, options);
    context = std::move(result.output);
    *attention = std::move(result.weights);
  } else if (packing != nullptr) {
    context = xgrad::detail::packed_self_attention(x, projection(query_), projection(key_),
                                                   projection(value_), packing->lengths, options);
  } else {
    context = self_attention(x, projection(query_), projection(key_), projection(value_), mask, options);
  }
  const bool drops_attention = config_.model_type != Family::distilbert;
  const Variable<T> attended = out_(context);
  const Variable<T> y = norm1_(drops_attention ? drop(attended) : attended, x);
  return norm2_(drop(down_(activation(config_.hidden_act, up_(y)))), y);
}

template <class T>
Encoder<T>::Encoder(const Config& config, Weights& weights, Pooler pooler)
    : Model<T>(config, "Model"),
      words_(this->child("embeddings.word_embeddings",
                         take_embedding<T>(weights, "word_embeddings", config.vocab_size,
                                           config.embedding_size, config.pad_token_id))),
      positions_(this->child(
          "embeddings.position_embeddings",
          take_embedding<T>(weights, "position_embeddings", config.max_position_embeddings,
                            config.embedding_size,
                            config.model_type == Family::roberta ? config.pad_token_id : std::nullopt))),
      types_(config.type_vocab_size == 0
                 ? std::nullopt
                 : std::optional(
                       this->child("embeddings.token_type_embeddings",
                                   take_embedding<T>(weights, "token_type_embeddings", config.type_vocab_size,
                                                     config.embedding_size, {})))),
      norm_(this->child("embeddings.LayerNorm",
                        take_norm<T>(weights, "embeddings.LayerNorm", config.embedding_size,
                                     config.layer_norm_eps, Part::encoder))) {
  if (config.embedding_size != config.hidden_size) {
    project_ =
        this->child("embeddings_project", take_linear<T>(weights, "embeddings_project", config.embedding_size,
                                                         config.hidden_size, Part::encoder));
  }
  for (std::size_t i = 0; i < config.num_hidden_layers; ++i) {
    const std::string name = names_of(config.model_type).layers + std::to_string(i);
    layers_.push_back(this->child(name, detail::EncoderLayer<T>(config, weights, name + ".")));
  }
  const bool families_own = config.model_type == Family::bert || config.model_type == Family::roberta;
  if (pooler == Pooler::needed ||
      (pooler == Pooler::if_stored && families_own && weights.offers("pooler.dense.weight"))) {
    pooler_ = this->child("pooler.dense", take_linear<T>(weights, "pooler.dense", config.hidden_size,
                                                         config.hidden_size, Part::head));
  }
  this->eval();
}

template <class T>
Variable<T> Encoder<T>::positions(const Ids& ids, const detail::Packing* packing) const {
  const std::size_t length = ids.shape(1);
  const bool counts_tokens = this->config().model_type == Family::roberta;
  if (!counts_tokens && packing == nullptr)
    return narrow(positions_.weight(), 0, 0, static_cast<std::ptrdiff_t>(length));
  const std::int64_t pad = this->config().pad_token_id.value_or(0);
  Ids numbers = Ids::from_shape(ids.shape());
  for (std::size_t row = 0; row < ids.shape(0); ++row) {
    std::int64_t last = pad;
    for (std::size_t i = 0; i < length; ++i) {
      if (counts_tokens) {
        numbers(row, i) = ids(row, i) == pad ? pad : ++last;
      } else {
        numbers(row, i) = static_cast<std::int64_t>(i);
      }
    }
  }
  return positions_(packed(numbers, packing));
}

template <class T>
Variable<T> Encoder<T>::embed(const Input& input, const detail::Packing* packing) const {
  Variable<T> sum = words_(packed(input.input_ids, packing));
  if (types_) {
    sum = sum + (input.token_type_ids ? (*types_)(packed(*input.token_type_ids, packing))
                                      : select(types_->weight(), 0, 0));
  }
  const Variable<T> x = xgrad::detail::dropout_if_training(
      norm_(sum + positions(input.input_ids, packing)), this->config().hidden_dropout_prob, this->training());
  return project_ ? (*project_)(x) : x;
}

template <class T>
EncoderOutput<T> Encoder<T>::operator()(const Input& input, OutputOptions options) const {
  const auto scope = this->scope();
  check(input, this->config().max_length());
  const AttentionMask<T> mask = mask_of<T>(input);
  std::optional<detail::Packing> packing;
  if (settings_->skip_padding && has_padding(input) && begins_with_tokens(*input.attention_mask) &&
      !options.hidden_states && !options.attentions && !options.padding)
    packing = packing_of(*input.attention_mask);
  const detail::Packing* const packed = packing ? &*packing : nullptr;
  EncoderOutput<T> output;
  Variable<T> x = embed(input, packed);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (options.hidden_states) output.hidden_states.push_back(x);
    Variable<T>* const attention = options.attentions ? &output.attentions.emplace_back() : nullptr;
    x = layers_[i](x, mask, packed, attention);
  }
  if (packed != nullptr) {
    const Array<T> tokens = xt::cast<T>(xt::not_equal(xt::expand_dims(*input.attention_mask, 2), 0));
    x = unpacked(x, *packed) * Variable<T>(tokens);
  }
  if (options.hidden_states) output.hidden_states.push_back(x);
  if (pooler_) output.pooler_output = pool(x);
  output.last_hidden_state = std::move(x);
  return output;
}

template <class T>
Variable<T> Encoder<T>::pool(const Variable<T>& hidden) const {
  if (!pooler_) throw ValueError("Encoder: pool needs a pooler, which this one does not have");
  return tanh((*pooler_)(select(hidden, 1, 0)));
}

template <class T>
void Encoder<T>::freeze(std::optional<std::size_t> layers) const {
  if (layers && *layers > layers_.size())
    xgrad::detail::fail<ValueError>("Encoder: freeze must name at most the ", layers_.size(), " layers, got ",
                                    *layers);
  const bool embeddings = !layers;
  for (const Embedding<T>* const table : {&words_, &positions_}) table->requires_grad(embeddings);
  if (types_) types_->requires_grad(embeddings);
  norm_.requires_grad(embeddings);
  if (project_) project_->requires_grad(embeddings);
  for (std::size_t i = 0; i < layers_.size(); ++i) layers_[i].requires_grad(!layers || i >= *layers);
}

template Variable<float> detail::activation(HiddenAct, const Variable<float>&);
template Variable<double> detail::activation(HiddenAct, const Variable<double>&);
template class detail::EncoderLayer<float>;
template class detail::EncoderLayer<double>;
template class Encoder<float>;
template class Encoder<double>;

}  // namespace xgrad::pretrained
