#include "sentence_embedder.hpp"

#include <algorithm>
#include <numeric>

#include "../base/error.hpp"
#include "../graph/grad_mode.hpp"
#include "../ops/index/indexing.hpp"
#include "../ops/pointwise/elementwise.hpp"
#include "../ops/product/matmul.hpp"
#include "../ops/reduce/reductions.hpp"
#include "../ops/shape/shapes.hpp"
#include "detail/folder_files.hpp"
#include "detail/json.hpp"
#include "detail/unicode.hpp"

namespace xgrad::pretrained {
namespace {

using detail::Json;

/// What follows the encoder.
struct Modules {
  Pooling pooling = Pooling::mean;
  bool normalizes = false;
  std::vector<std::string> files = {"modules.json", "sentence_bert_config.json"};
};

Pooling read_pooling(const Json& config) {
  std::optional<Pooling> pooling;
  for (const auto& [name, value] : config.members()) {
    if (!name.starts_with("pooling_mode_") || !value.boolean()) continue;
    if (pooling) value.refuse("the only pooling mode, as several modes are not supported");
    if (name == "pooling_mode_mean_tokens") {
      pooling = Pooling::mean;
    } else if (name == "pooling_mode_cls_token") {
      pooling = Pooling::cls_token;
    } else {
      value.refuse("false, as only the mean and the class token are supported");
    }
  }
  if (!pooling) config.fail("pooling_mode_mean_tokens or pooling_mode_cls_token must be true");
  return *pooling;
}

Modules read_modules(const std::string& folder) {
  Modules modules;
  if (!detail::exists(folder + "/modules.json")) return modules;
  const std::vector<Json> list = Json::read(folder + "/modules.json").items();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Json type = list[i].at("type");
    const std::string& name = type.text();
    if (name.ends_with(".Transformer") && i == 0) {
      if (const auto path = list[i].find("path"); path && !path->text().empty())
        path->refuse("empty, as the encoder has to be in this folder");
      continue;
    }
    if (name.ends_with(".Pooling") && i == 1) {
      const Json path = list[i].at("path");
      if (path.text().empty() || path.text().find("..") != std::string::npos || path.text().front() == '/')
        path.refuse("a folder inside this one");
      modules.files.push_back(path.text() + "/config.json");
      modules.pooling = read_pooling(Json::read(folder + "/" + modules.files.back()));
    } else if (name.ends_with(".Normalize") && i == 2) {
      modules.normalizes = true;
    } else {
      type.refuse("Transformer, Pooling or Normalize, in this order");
    }
  }
  return modules;
}

std::size_t read_max_length(const std::string& folder, const Tokenizer& tokenizer, std::size_t most) {
  const std::string path = folder + "/sentence_bert_config.json";
  if (!detail::exists(path)) return most;
  const Json config = Json::read(path);
  const auto lower = config.find("do_lower_case");
  if (lower && lower->boolean() && tokenizer.encode("A").ids != tokenizer.encode("a").ids)
    lower->refuse("false, as the tokenizer distinguishes upper and lower case");
  const auto length = config.find("max_seq_length");
  if (!length) return most;
  return std::min(most, static_cast<std::size_t>(length->integer(1, 1 << 30)));
}

/// Without white space at the ends, as sentence-transformers takes a text. One that is not UTF-8, which the
/// tokenizer refuses, stays.
std::string stripped(const std::string& text) {
  namespace unicode = detail::unicode;
  if (unicode::find_invalid_utf8(text) != text.npos) return text;
  std::string_view rest = unicode::without_spaces_at_the_end(text);
  while (!rest.empty() && unicode::is(unicode::first_of(rest), unicode::space))
    rest.remove_prefix(unicode::first_length(rest));
  return std::string(rest);
}

}  // namespace

template <class T>
SentenceEmbedder<T>::SentenceEmbedder(Encoder<T> encoder, Tokenizer tokenizer)
    : encoder_(std::move(encoder)),
      tokenizer_(std::move(tokenizer)),
      max_length_(std::min(encoder_.config().max_length(), tokenizer_.max_length().value_or(SIZE_MAX))) {}

template <class T>
SentenceEmbedder<T> SentenceEmbedder<T>::from_folder(const std::string& folder, const LoadOptions& options) {
  const Modules modules = read_modules(folder);
  SentenceEmbedder embedder(Encoder<T>::from_folder(folder, options), Tokenizer::from_folder(folder));
  embedder.files_ = std::make_shared<const detail::CopiedFiles>(folder, modules.files);
  embedder.pooling_ = modules.pooling;
  embedder.normalizes_ = modules.normalizes;
  embedder.max_length_ = read_max_length(folder, embedder.tokenizer_, embedder.max_length_);
  return embedder;
}

template <class T>
void SentenceEmbedder<T>::save(const std::string& folder) const {
  save_folder(encoder_, folder);
  tokenizer_.save(folder);
  files_->write(folder);
}

template <class T>
Variable<T> pool(const Variable<T>& hidden, const Input& input, Pooling pooling) {
  if (pooling == Pooling::cls_token) return select(hidden, 1, 0);
  const std::size_t batch = hidden.shape(0), length = hidden.shape(1);
  Array<T> weights(Shape{batch, 1, length}, T{1} / static_cast<T>(length));
  for (std::size_t row = 0; input.attention_mask && row < batch; ++row) {
    const std::int64_t* const tokens = &(*input.attention_mask)(row, 0);
    const auto count =
        static_cast<T>(length - static_cast<std::size_t>(std::count(tokens, tokens + length, 0)));
    std::transform(tokens, tokens + length, &weights(row, 0, 0),
                   [count](std::int64_t token) { return token == 0 ? T{0} : T{1} / count; });
  }
  return squeeze(matmul(Variable<T>(std::move(weights)), hidden), 1);
}

template <class T>
Variable<T> SentenceEmbedder<T>::embed(const Input& input) const {
  const Variable<T> vectors = pool(encoder_(input).last_hidden_state, input, pooling_);
  if (!normalizes_) return vectors;
  // As torch.nn.functional.normalize, for which a vector is never shorter than this.
  constexpr T shortest = T(1e-12);
  return vectors / clamp(sqrt(sum(square(vectors), {1}, {.keepdim = true})), shortest);
}

template <class T>
Array<T> SentenceEmbedder<T>::operator()(std::span<const std::string> texts, std::size_t batch_size) const {
  if (batch_size == 0) throw ValueError("SentenceEmbedder: batch_size must be at least 1, got 0");
  const NoGrad guard;
  std::vector<std::size_t> order(texts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return texts[i].size(); });
  Array<T> vectors = Array<T>::from_shape({texts.size(), encoder_.config().hidden_size});
  for (std::size_t begin = 0; begin < texts.size(); begin += batch_size) {
    const std::size_t count = std::min(batch_size, texts.size() - begin);
    std::vector<std::string> chosen;
    for (std::size_t i = 0; i < count; ++i) chosen.push_back(stripped(texts[order[begin + i]]));
    const Variable<T> rows = embed(tokenizer_.encode(chosen, {.max_length = max_length_}));
    for (std::size_t i = 0; i < count; ++i)
      std::copy_n(&rows.value()(i, 0), vectors.shape(1), &vectors(order[begin + i], 0));
  }
  return vectors;
}

template class SentenceEmbedder<float>;
template class SentenceEmbedder<double>;
template Variable<float> pool(const Variable<float>&, const Input&, Pooling);
template Variable<double> pool(const Variable<double>&, const Input&, Pooling);

}  // namespace xgrad::pretrained
