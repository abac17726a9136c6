#include "encoder.hpp"

#include <algorithm>
#include <optional>

#include "../ops/index/indexing.hpp"
#include "../ops/pointwise/arithmetic.hpp"
#include "../ops/pointwise/dropout.hpp"
#include "../ops/pointwise/elementwise.hpp"
#include "../ops/product/matmul_precision.hpp"
#include "../ops/shape/shapes.hpp"
#include "detail/family.hpp"

namespace xgrad::pretrained {
namespace {

using detail::Packing, detail::Weights;

/// Whether the first of each sequence, which stands for all of it in some heads, is a token.
bool begins_with_tokens(const Ids& tokens) {
  for (std::size_t row = 0; row < tokens.shape(0); ++row) {
    if (tokens(row, 0) == 0) return false;
  }
  return true;
}

/// (batch, length, size) from (rows, size).
template <class T>
Variable<T> unpacked(const Variable<T>& x, const Packing& packing) {
  return reshape(index_select(x, 0, packing.places), {packing.batch, packing.length, x.shape(1)});
}

}  // namespace

template <class T>
Encoder<T>::Encoder(const Config& config, Weights& weights, Pooler pooler)
    : BaseModel<T>(config, weights, is_causal) {
  const detail::FamilyInfo& family = detail::info_of(config.model_type);
  const char* const name = family.pooler;
  const bool stored = name != nullptr && family.pooler_alone && weights.offers(std::string(name) + ".weight");
  if (name != nullptr && (pooler == Pooler::needed || (pooler == Pooler::if_stored && stored)))
    pooler_ = this->child(name, detail::take_linear<T>({weights, "", detail::Part::head}, name,
                                                       {config.hidden_size, config.hidden_size}));
  if (this->has_integers()) this->requires_grad(false);
  this->eval();
}

template <class T>
EncoderOutput<T> Encoder<T>::operator()(const Input& input, OutputOptions options) const {
  const auto scope = this->scope();
  detail::check_input("Encoder", input, this->config().max_length());
  std::optional<MatmulPrecisionGuard> guard;
  if (this->rounds_products()) guard.emplace(MatmulPrecision::medium);
  std::optional<Packing> packing;
  if (settings_->skip_padding && this->body().packs() && detail::has_padding(input) &&
      begins_with_tokens(*input.attention_mask) && !options.hidden_states && !options.attentions &&
      !options.padding)
    packing.emplace(*input.attention_mask);
  EncoderOutput<T> output;
  detail::ForwardCall<T> call{.input = input, .mask = detail::key_mask<T>(input)};
  if (packing) call.packing = &*packing;
  if (options.hidden_states) call.hidden_states = &output.hidden_states;
  if (options.attentions) call.attentions = &output.attentions;
  Variable<T> x = this->body()(call);
  if (packing) {
    const Array<T> tokens = xt::cast<T>(xt::not_equal(xt::expand_dims(*input.attention_mask, 2), 0));
    x = unpacked(x, *packing) * Variable<T>(tokens);
  }
  call.keep(x);
  if (pooler_) output.pooler_output = pool(x);
  output.last_hidden_state = std::move(x);
  return output;
}

template <class T>
Variable<T> Encoder<T>::pool(const Variable<T>& hidden) const {
  if (!pooler_) throw ValueError("Encoder: pool needs a pooler, which this one does not have");
  return tanh((*pooler_)(select(hidden, 1, 0)));
}

template class Encoder<float>;
template class Encoder<double>;

}  // namespace xgrad::pretrained
