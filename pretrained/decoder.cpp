#include "decoder.hpp"

#include <algorithm>
#include <utility>

#include "../models/detail/caches_guard.hpp"
#include "../models/detail/new_tokens.hpp"
#include "../ops/index/indexing.hpp"
#include "../ops/product/matmul_precision.hpp"
#include "../ops/shape/shapes.hpp"
#include "detail/bodies/body.hpp"

namespace xgrad::pretrained {
namespace {

std::string text_of(std::optional<std::size_t> window) {
  return window ? "a window of " + std::to_string(*window) : std::string("no window");
}

/// Throws for a cache of another model.
template <class T>
void check_cache(const Config& config, const KeyValueCache<T>& cache) {
  if (cache.layers() != config.num_hidden_layers)
    xgrad::detail::fail<ShapeError>("Decoder: a cache must be of the model's new_cache(), with ",
                                    config.num_hidden_layers, " layers, got ", cache.layers());
  for (std::size_t i = 0; i < cache.layers(); ++i) {
    if (cache.window(i) != config.window(i))
      xgrad::detail::fail<ShapeError>("Decoder: a cache must be of the model's new_cache(), with ",
                                      text_of(config.window(i)), " in layer ", i, ", got ",
                                      text_of(cache.window(i)));
  }
}

}  // namespace

template <class T>
Decoder<T>::Decoder(const Config& config, detail::Weights& weights)
    : BaseModel<T>(config, weights, is_causal) {
  this->eval();
}

template <class T>
DecoderOutput<T> Decoder<T>::operator()(const Input& input, OutputOptions options) const {
  const auto scope = this->scope();
  detail::check_input("Decoder", input, this->config().max_length());
  if (input.token_type_ids)
    throw ValueError("Decoder: token_type_ids must be absent, as tokens have no types");
  std::optional<MatmulPrecisionGuard> guard;
  if (this->rounds_products()) guard.emplace(MatmulPrecision::medium);
  DecoderOutput<T> output;
  detail::ForwardCall<T> call{.input = input, .mask = detail::key_mask<T>(input)};
  if (options.hidden_states) call.hidden_states = &output.hidden_states;
  if (options.attentions) call.attentions = &output.attentions;
  call.checkpoints = settings_->checkpoint_layers && !options.attentions;
  output.last_hidden_state = this->body()(call);
  call.keep(output.last_hidden_state);
  return output;
}

template <class T>
Variable<T> Decoder<T>::operator()(const Ids& tokens, std::span<const std::size_t> lengths,
                                   std::span<KeyValueCache<T>> caches) const {
  const auto scope = this->scope();
  xgrad::detail::check_new_tokens<T>("Decoder", tokens, lengths, caches, this->config().max_length());
  for (const KeyValueCache<T>& cache : caches) check_cache(this->config(), cache);
  std::optional<MatmulPrecisionGuard> guard;
  if (this->rounds_products()) guard.emplace(MatmulPrecision::medium);
  xgrad::detail::CachesGuard<T> caches_guard(caches);
  Variable<T> hidden;
  if (this->body().keys_depend_on_length()) {
    hidden = one_by_one(tokens, lengths, caches);
  } else {
    Ids row = tokens;
    row.reshape({std::size_t{1}, tokens.size()});
    hidden = flatten(this->body()(row, {.lengths = lengths, .caches = caches}), 0, 1);
  }
  caches_guard.succeeded();
  return hidden;
}

template <class T>
Variable<T> Decoder<T>::one_by_one(const Ids& tokens, std::span<const std::size_t> lengths,
                                   std::span<KeyValueCache<T>> caches) const {
  std::vector<Variable<T>> hidden;
  std::vector<std::pair<std::size_t, KeyValueCache<T>>> computed_anew;
  const std::int64_t* next = tokens.data();
  for (std::size_t i = 0; i < lengths.size(); ++i, next += lengths[i - 1]) {
    const std::span<const std::int64_t> fresh(next, lengths[i]);
    KeyValueCache<T>& cache = caches[i];
    const std::size_t before = cache.length();
    if (cache.tokens().size() != before)
      xgrad::detail::fail<ValueError>(
          "Decoder: a cache must have all tokens of its sequence from this model, ", before, ", got ",
          cache.tokens().size());
    if (before == 0 || this->body().keys_hold(before, before + fresh.size())) {
      hidden.push_back(next_hidden(fresh, cache));
      continue;
    }
    std::vector<std::int64_t> all = cache.tokens();
    all.insert(all.end(), fresh.begin(), fresh.end());
    KeyValueCache<T>& anew = computed_anew.emplace_back(i, new_cache()).second;
    hidden.push_back(narrow(next_hidden(all, anew), 0, before, fresh.size()));
  }
  Variable<T> all_hidden = hidden.size() == 1 ? hidden[0] : cat(hidden);
  for (auto& [i, cache] : computed_anew) caches[i] = std::move(cache);  // when nothing can throw any more
  return all_hidden;
}

template <class T>
Variable<T> Decoder<T>::next_hidden(std::span<const std::int64_t> tokens, KeyValueCache<T>& cache) const {
  Ids row = Ids::from_shape({std::size_t{1}, tokens.size()});
  std::ranges::copy(tokens, row.begin());
  const std::size_t length = tokens.size();
  const Variable<T> hidden = this->body()(row, {.lengths = {&length, 1}, .caches = {&cache, 1}});
  cache.note_tokens(tokens);
  return flatten(hidden, 0, 1);
}

template <class T>
KeyValueCache<T> Decoder<T>::new_cache() const {
  std::vector<std::optional<std::size_t>> windows;
  for (std::size_t i = 0; i < this->config().num_hidden_layers; ++i)
    windows.push_back(this->config().window(i));
  return KeyValueCache<T>(windows);
}

template class Decoder<float>;
template class Decoder<double>;

}  // namespace xgrad::pretrained
