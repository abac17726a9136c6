#include "body.hpp"

#include <algorithm>
#include <limits>
#include <variant>

#include "../../../ops/index/embedding.hpp"
#include "../../../ops/index/indexing.hpp"
#include "../../../ops/pointwise/arithmetic.hpp"
#include "../../../ops/pointwise/masked_fill.hpp"
#include "../family.hpp"
#include "../ids.hpp"

namespace xgrad::pretrained::detail {
namespace {

constexpr std::size_t most_kept_angles = std::size_t{1} << 22;

}  // namespace

void check_input(const char* model, const Input& input, std::optional<std::size_t> most) {
  const Shape& shape = input.input_ids.shape();
  if (shape.size() != 2 || shape[1] == 0)
    xgrad::detail::fail<ShapeError>(model, ": input_ids must be (batch, length), got ", shape);
  if (most && shape[1] > *most)
    xgrad::detail::fail<ShapeError>(model, ": input_ids must have at most ", *most, " positions, got ",
                                    shape);
  const auto check_shape = [&](const char* name, const std::optional<Ids>& ids) {
    if (ids && !same_shape(ids->shape(), shape))
      xgrad::detail::fail<ShapeError>(model, ": ", name, " must have the shape of input_ids, got ",
                                      ids->shape(), " and ", shape);
  };
  check_shape("attention_mask", input.attention_mask);
  check_shape("token_type_ids", input.token_type_ids);
  if (!input.attention_mask) return;
  for (const std::int64_t number : *input.attention_mask) {
    if (number != 0 && number != 1)
      xgrad::detail::fail<ValueError>(model, ": attention_mask must be 1 for tokens and 0 for padding, got ",
                                      number);
  }
}

bool has_padding(const Input& input) {
  return input.attention_mask && std::ranges::find(*input.attention_mask, 0) != input.attention_mask->end();
}

template <class T>
AttentionMask<T> key_mask(const Input& input) {
  if (!has_padding(input)) return {};
  const Ids& tokens = *input.attention_mask;
  Mask allowed = Mask::from_shape({tokens.shape(0), 1, 1, tokens.shape(1)});
  std::ranges::transform(tokens, allowed.begin(), [](std::int64_t number) { return number != 0; });
  return allowed;
}

Packing::Packing(const Ids& tokens) : batch(tokens.shape(0)), length(tokens.shape(1)), lengths(batch) {
  std::vector<std::int64_t> kept;
  places = Ids::from_shape({tokens.size()});
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const bool is_token = tokens.data()[i] != 0;
    places(i) = is_token ? static_cast<std::int64_t>(kept.size()) : 0;
    if (!is_token) continue;
    kept.push_back(static_cast<std::int64_t>(i));
    ++lengths[i / length];
  }
  rows = ids_of(kept);
}

Ids packed(const Ids& ids, const Packing* packing) {
  if (packing == nullptr) return ids;
  Ids left = Ids::from_shape(packing->rows.shape());
  std::ranges::transform(packing->rows, left.begin(), [&](std::int64_t row) { return ids.data()[row]; });
  return left;
}

Ids counted_positions(const Ids& ids) {
  Ids numbers = Ids::from_shape(ids.shape());
  for (std::size_t i = 0; i < ids.size(); ++i)
    numbers.data()[i] = static_cast<std::int64_t>(i % ids.shape(1));
  return numbers;
}

Ids positions_after_padding(const Ids& ids, std::int64_t pad) {
  Ids numbers = Ids::from_shape(ids.shape());
  for (std::size_t row = 0; row < ids.shape(0); ++row) {
    std::int64_t last = pad;
    for (std::size_t i = 0; i < ids.shape(1); ++i) numbers(row, i) = ids(row, i) == pad ? pad : ++last;
  }
  return numbers;
}

template <class T>
AttentionMask<T> with_bias(const AttentionMask<T>& mask, const Variable<T>& bias) {
  if (mask.allowed() == nullptr) return bias;
  return masked_fill(bias, Mask(!*mask.allowed()), -std::numeric_limits<T>::infinity());
}

template <class T>
Variable<T> without_padding(const AttentionMask<T>& mask, const Variable<T>& x) {
  if (mask.allowed() == nullptr) return x;
  Shape rows{x.shape(0), x.shape(1), 1};
  Array<T> tokens = Array<T>::from_shape(rows);
  std::copy(mask.allowed()->begin(), mask.allowed()->end(), tokens.begin());
  return x * Variable<T>(std::move(tokens));
}

template <class T>
RotaryPositions<T>::RotaryPositions(const RotaryConfig& config, std::size_t max_length) : config_(config) {
  const std::size_t rows = most_kept_angles / std::max<std::size_t>(config.dim, 1);
  kept_ = rotary_tables<T>(config, depend_on_length() ? 0 : std::min(max_length, rows));
}

template <class T>
bool RotaryPositions<T>::depend_on_length() const {
  return std::holds_alternative<DynamicScaling>(config_.scaling) ||
         std::holds_alternative<LongScaling>(config_.scaling);
}

template <class T>
bool RotaryPositions<T>::are_same(std::size_t length, std::size_t other) const {
  if (const auto* const dynamic = std::get_if<DynamicScaling>(&config_.scaling))
    return std::max(length, dynamic->max_positions) == std::max(other, dynamic->max_positions);
  if (const auto* const longer = std::get_if<LongScaling>(&config_.scaling))
    return (length > longer->original_max_positions) == (other > longer->original_max_positions);
  return true;
}

template <class T>
RotaryTables<T> RotaryPositions<T>::operator()(std::size_t length) const {
  if (length > kept_.cos.shape(0)) return rotary_tables<T>(config_, length);
  return {narrow(kept_.cos, 0, 0, length), narrow(kept_.sin, 0, 0, length)};
}

template <class T>
RotaryTables<T> RotaryPositions<T>::operator()(std::size_t first, std::size_t count) const {
  if (first + count > kept_.cos.shape(0)) return rotary_tables<T>(config_, count, first);
  return {narrow(kept_.cos, 0, first, count), narrow(kept_.sin, 0, first, count)};
}

template <class T>
RotaryTables<T> RotaryPositions<T>::operator()(const Ids& positions, std::size_t length_of_all) const {
  const RotaryTables<T> all =
      length_of_all > kept_.cos.shape(0) ? rotary_tables<T>(config_, length_of_all) : kept_;
  return {embedding(positions, all.cos), embedding(positions, all.sin)};
}

template <class T>
Body<T>::Body(const Config& config)
    : Assembled<T>(info_of(config.model_type).class_name + std::string("Model")) {}

template <class T>
TokenEmbeddings<T>::TokenEmbeddings(const Config& config, const From& from, const EmbeddingsForm& form)
    : Assembled<T>("Embeddings"),
      form_(form),
      pad_(config.pad_token_id.value_or(0)),
      drop_(config.hidden_dropout_prob),
      words_(this->embedding(from, "word_embeddings", config.vocab_size, config.embedding_size,
                             config.pad_token_id)),
      positions_(form.positions == Positions::counted || form.positions == Positions::after_padding
                     ? std::optional(this->embedding(
                           from, "position_embeddings", config.max_position_embeddings, config.embedding_size,
                           form.positions == Positions::after_padding ? config.pad_token_id : std::nullopt))
                     : std::nullopt),
      types_(config.type_vocab_size == 0
                 ? std::nullopt
                 : std::optional(this->embedding(from, "token_type_embeddings", config.type_vocab_size,
                                                 config.embedding_size))),
      project_(form.project == nullptr
                   ? std::nullopt
                   : std::optional(this->linear(from, form.project,
                                                {config.embedding_size, config.hidden_size, false}))),
      norm_(this->norm(from, "LayerNorm",
                       form.project == nullptr ? config.embedding_size : config.hidden_size,
                       config.layer_norm_eps)) {}

template <class T>
Variable<T> TokenEmbeddings<T>::positions(const EncoderCall<T>& call) const {
  const Ids& ids = call.input.input_ids;
  if (form_.positions == Positions::after_padding)
    return (*positions_)(packed(positions_after_padding(ids, pad_), call.packing));
  if (call.packing != nullptr) return (*positions_)(packed(counted_positions(ids), call.packing));
  return narrow(positions_->weight(), 0, 0, ids.shape(1));
}

template <class T>
Variable<T> TokenEmbeddings<T>::operator()(const EncoderCall<T>& call) const {
  const auto scope = this->scope();
  Variable<T> sum = words_(packed(call.input.input_ids, call.packing));
  if (types_) {
    sum = sum + (call.input.token_type_ids ? (*types_)(packed(*call.input.token_type_ids, call.packing))
                                           : select(types_->weight(), 0, 0));
  }
  if (positions_) sum = sum + positions(call);
  Variable<T> x = norm_(project_ ? (*project_)(sum) : sum);
  if (form_.hides_padding) x = without_padding(call.mask, x);
  return this->drop(x, drop_);
}

#define XGRAD_INSTANTIATE(T)                                                         \
  template AttentionMask<T> key_mask(const Input&);                                  \
  template class RotaryPositions<T>;                                                 \
  template AttentionMask<T> with_bias(const AttentionMask<T>&, const Variable<T>&);  \
  template Variable<T> without_padding(const AttentionMask<T>&, const Variable<T>&); \
  template class Body<T>;                                                            \
  template class TokenEmbeddings<T>;

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::pretrained::detail
