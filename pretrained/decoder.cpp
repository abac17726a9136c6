#include "decoder.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "../base/detail/json_text.hpp"
#include "../graph/grad_mode.hpp"
#include "../ops/index/indexing.hpp"
#include "../ops/product/matmul_precision.hpp"
#include "../ops/shape/shapes.hpp"
#include "detail/bodies/causal_body.hpp"
#include "detail/caches_guard.hpp"
#include "detail/weights/halves.hpp"

namespace xgrad::pretrained {
namespace {

const char* dtype_name(DType dtype) {
  switch (dtype) {
    case DType::F32:
      return "float32";
    case DType::F64:
      return "float64";
    case DType::BF16:
      return "bfloat16";
    case DType::F16:
      return "float16";
    default:
      xgrad::detail::fail<ValueError>("save_folder: dtype must be F32, F64, BF16 or F16, got ",
                                      to_string(dtype));
  }
}

/// The bytes of an array as numbers of another type.
template <class To, class T, class Round>
std::vector<std::byte> rounded(const Array<T>& array, const Round& round) {
  std::vector<std::byte> bytes(array.size() * sizeof(To));
  for (std::size_t i = 0; i < array.size(); ++i) {
    const To number = round(array.data()[i]);
    std::memcpy(bytes.data() + i * sizeof(To), &number, sizeof(To));
  }
  return bytes;
}

template <class T>
std::vector<std::byte> as_dtype(const std::string& name, const Array<T>& array, DType dtype) {
  const auto checked = [&](T x) {
    const auto number = static_cast<float>(x);
    const bool fits = dtype == DType::F16 ? detail::fits_half(number) : std::isfinite(number);
    if (!fits)
      xgrad::detail::fail<ValueError>("save_folder: ", xgrad::detail::in_quotes(name), " has ", x,
                                      ", which is too large for ", to_string(dtype));
    return number;
  };
  switch (dtype) {
    case DType::BF16:
      return rounded<std::uint16_t>(array, [&](T x) { return detail::bfloat16_of(checked(x)); });
    case DType::F16:
      return rounded<std::uint16_t>(array, [&](T x) { return detail::half_of(checked(x)); });
    case DType::F32:
      return rounded<float>(array, checked);
    default:
      return rounded<double>(array, [](T x) { return static_cast<double>(x); });
  }
}

/// The numbers of matrices by their names in files, and the views of their bytes.
class Halves {
 public:
  template <class T>
  Halves(const CausalModel<T>& model, const detail::NamesInFiles& files) {
    StateDict<std::uint16_t> all;
    for (const auto& [name, weight] : model.named_bfloat16_weights()) {
      Array<std::uint16_t> bits = Array<std::uint16_t>::from_shape(weight.shape());
      std::copy(weight.bits().begin(), weight.bits().end(), bits.begin());
      all.emplace(name, std::move(bits));
    }
    bits_ = detail::as_stored(files.stored_as, files.prefix, std::move(all));
  }

  bool empty() const { return bits_.empty(); }

  void add_views(std::vector<TensorView>& views) const {
    for (const auto& [name, bits] : bits_) {
      const std::span<const std::uint16_t> numbers(bits.data(), bits.size());
      views.push_back({name, DType::BF16, bits.shape(), std::as_bytes(numbers)});
    }
  }

 private:
  StateDict<std::uint16_t> bits_;
};

std::string text_of(std::optional<std::size_t> window) {
  return window ? "a window of " + std::to_string(*window) : std::string("no window");
}

/// Throws for a cache of another model.
template <class T>
void check_cache(const CausalConfig& config, const KeyValueCache<T>& cache) {
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
void save_folder(const CausalModel<T>& model, const std::string& folder, CausalSaveOptions options) {
  check_save(folder);
  const detail::NamesInFiles& files = detail::info_of(model.config().model_type).files;
  const Halves halves(model, files);
  const DType dtype = options.dtype.value_or(halves.empty() ? dtype_of<T> : DType::BF16);
  const std::string text = model.config().json(model.architecture(), dtype_name(dtype));
  StateDict<T> parameters;
  for (const auto& [name, parameter] : model.named_parameters()) parameters.emplace(name, parameter.value());
  const StateDict<T> state = detail::as_stored(files.stored_as, files.prefix, std::move(parameters));
  std::vector<TensorView> tensors;
  std::vector<std::vector<std::byte>> bytes;
  bytes.reserve(state.size());
  for (const auto& [name, array] : state) {
    tensors.push_back(view_of(name, array));
    if (dtype == dtype_of<T>) continue;
    bytes.push_back(as_dtype(name, array, dtype));
    tensors.back().dtype = dtype;
    tensors.back().bytes = bytes.back();
  }
  halves.add_views(tensors);
  detail::write_model(folder, text, std::move(tensors));
}

template <class T>
Decoder<T>::Decoder(const CausalConfig& config, detail::Weights& weights)
    : Decoder(config, weights, std::make_shared<const detail::CausalBody<T>>(config, weights)) {}

template <class T>
Decoder<T>::Decoder(const CausalConfig& config, detail::Weights& weights,
                    std::shared_ptr<const detail::CausalBody<T>> body)
    : CausalModel<T>(config, *body),
      body_(std::move(body)),
      rounds_to_bfloat16_(weights.precision() == Precision::bfloat16) {
  const Precision precision = weights.precision().value_or(Precision::float32);
  if (precision == Precision::int8)
    throw ValueError("Decoder: the precision must be float32 or bfloat16, got int8");
  if (!std::is_same_v<T, float> && precision != Precision::float32)
    throw ValueError("Decoder: the precision of a model of double must be float32");
  this->eval();
}

template <class T>
DecoderOutput<T> Decoder<T>::operator()(const Input& input, OutputOptions options) const {
  const auto scope = this->scope();
  detail::check_input("Decoder", input, this->config().max_length());
  if (input.token_type_ids)
    throw ValueError("Decoder: token_type_ids must be absent, as tokens have no types");
  std::optional<MatmulPrecisionGuard> guard;
  if (rounds_to_bfloat16_) guard.emplace(MatmulPrecision::medium);
  DecoderOutput<T> output;
  detail::EncoderCall<T> call{.input = input, .mask = detail::key_mask<T>(input)};
  if (options.hidden_states) call.hidden_states = &output.hidden_states;
  if (options.attentions) call.attentions = &output.attentions;
  output.last_hidden_state = (*body_)(call, settings_->checkpoint_layers && !options.attentions);
  call.keep(output.last_hidden_state);
  return output;
}

template <class T>
Variable<T> Decoder<T>::operator()(const Ids& tokens, std::span<const std::size_t> lengths,
                                   std::span<KeyValueCache<T>> caches) const {
  const auto scope = this->scope();
  if (grad_enabled()) throw GraphError("Decoder: caches keep no gradients: call it under NoGrad");
  const std::size_t rows = tokens.size();
  std::size_t left = rows;
  const bool are_parts = std::ranges::all_of(lengths, [&](std::size_t length) {
    const bool fits = length > 0 && length <= left;
    left -= fits ? length : 0;
    return fits;
  });
  if (tokens.dimension() != 1 || rows == 0 || !are_parts || left > 0 || lengths.size() != caches.size())
    xgrad::detail::fail<ShapeError>(
        "Decoder: lengths must be those of tokens (rows), at least 1 each, one for "
        "each cache, got ",
        lengths.size(), " lengths for ", caches.size(), " caches, and tokens ", tokens.shape());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    check_cache(this->config(), caches[i]);
    const std::optional<std::size_t> most = this->config().max_length();
    if (most && caches[i].length() + lengths[i] > *most)
      xgrad::detail::fail<ShapeError>("Decoder: a sequence must have at most ", *most, " tokens, got ",
                                      caches[i].length(), " and ", lengths[i], " more");
  }
  std::optional<MatmulPrecisionGuard> guard;
  if (rounds_to_bfloat16_) guard.emplace(MatmulPrecision::medium);
  detail::CachesGuard<T> caches_guard(caches);
  Variable<T> hidden;
  if (body_->keys_depend_on_length()) {
    hidden = one_by_one(tokens, lengths, caches);
  } else {
    Ids row = tokens;
    row.reshape({std::size_t{1}, rows});
    hidden = flatten((*body_)(row, {.lengths = lengths, .caches = caches}), 0, 1);
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
    if (before == 0 || body_->keys_hold(before, before + fresh.size())) {
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
  const Variable<T> hidden = (*body_)(row, {.lengths = {&length, 1}, .caches = {&cache, 1}});
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

template <class T>
void Decoder<T>::freeze(std::optional<std::size_t> layers) const {
  const std::size_t count = this->config().num_hidden_layers;
  if (layers && *layers > count)
    xgrad::detail::fail<ValueError>("Decoder: freeze must name at most the ", count, " layers, got ",
                                    *layers);
  for (const std::string& name : body_->embedding_names()) this->requires_grad(name, !layers);
  for (std::size_t i = 0; i < count; ++i) this->requires_grad(body_->layer_name(i), !layers || i >= *layers);
}

template <class T>
Variable<T> Decoder<T>::word_embeddings() const {
  return body_->words().weight();
}

template <class T>
std::optional<Bfloat16Weight> Decoder<T>::bfloat16_word_embeddings() const {
  return body_->words().bfloat16_weight();
}

template class Decoder<float>;
template class Decoder<double>;
template void save_folder(const CausalModel<float>&, const std::string&, CausalSaveOptions);
template void save_folder(const CausalModel<double>&, const std::string&, CausalSaveOptions);

}  // namespace xgrad::pretrained
