#include "sentence_embedder.hpp"

#include <algorithm>
#include <numeric>

#include "../base/detail/folder_files.hpp"
#include "../base/detail/json_text.hpp"
#include "../base/error.hpp"
#include "../graph/grad_mode.hpp"
#include "batch.hpp"
#include "detail/sentence_modules.hpp"

namespace xgrad::pretrained {

using tokenizers::Encoding, tokenizers::Tokenizer;

namespace {

/// The prompt that goes before texts.
template <class T>
std::string prompt_of(const detail::SentenceModules<T>& modules, const EmbedOptions& options) {
  if (options.prompt) return *options.prompt;
  const std::optional<std::string>& name = options.prompt_name ? options.prompt_name : modules.default_prompt;
  if (!name) return "";
  const auto found = modules.prompts.find(*name);
  if (found != modules.prompts.end()) return found->second;
  std::string names;
  for (const auto& [known, text] : modules.prompts) names += (names.empty() ? "" : ", ") + known;
  xgrad::detail::fail<ValueError>("SentenceEmbedder: prompt_name must be ",
                                  names.empty() ? "empty, as there are no prompts" : "one of " + names,
                                  ", got ", xgrad::detail::in_quotes(*name));
}

}  // namespace

template <class T>
SentenceEmbedder<T>::SentenceEmbedder(Encoder<T> encoder, Tokenizer tokenizer,
                                      std::shared_ptr<const detail::SentenceModules<T>> modules)
    : encoder_(std::move(encoder)),
      tokenizer_(std::move(tokenizer)),
      max_length_(std::min(encoder_.config().max_length(),
                           modules->max_length.value_or(tokenizer_.max_length().value_or(SIZE_MAX)))),
      modules_(std::move(modules)) {}

template <class T>
SentenceEmbedder<T> SentenceEmbedder<T>::from_folder(const std::string& folder, const LoadOptions& options) {
  Encoder<T> encoder = Encoder<T>::from_folder(folder, options);
  auto modules = std::make_shared<const detail::SentenceModules<T>>(folder, encoder.config().hidden_size);
  Tokenizer tokenizer = Tokenizer::from_folder(folder, {.lowercase = modules->lowers});
  SentenceEmbedder embedder(std::move(encoder), std::move(tokenizer), std::move(modules));
  embedder.files_ = std::make_shared<const xgrad::detail::CopiedFiles>(folder, embedder.modules_->files);
  return embedder;
}

template <class T>
void SentenceEmbedder<T>::save(const std::string& folder) const {
  save_folder(encoder_, folder);
  tokenizer_.save(folder);
  files_->write(folder);
}

template <class T>
std::size_t SentenceEmbedder<T>::size() const {
  return modules_->size;
}

template <class T>
std::vector<Pooling> SentenceEmbedder<T>::poolings() const {
  return modules_->poolings;
}

template <class T>
std::map<std::string, std::string> SentenceEmbedder<T>::prompts() const {
  return modules_->prompts;
}

template <class T>
std::size_t SentenceEmbedder<T>::prompt_length(const std::string& prompt) const {
  if (prompt.empty()) return 0;
  const Encoding encoding = tokenizer_.encode(prompt, {.max_length = max_length_});
  return encoding.size() - (encoding.special.empty() || encoding.special.back() == 0 ? 0 : 1);
}

template <class T>
Variable<T> SentenceEmbedder<T>::embed(const Input& input, std::size_t prompt_length) const {
  Variable<T> vectors = pool(encoder_(input).last_hidden_state, input, std::span(modules_->poolings),
                             modules_->pools_prompt ? 0 : prompt_length);
  for (const detail::VectorModule<T>& module : modules_->vectors) vectors = detail::run(module, vectors);
  return vectors;
}

template <class T>
Array<T> SentenceEmbedder<T>::operator()(std::span<const std::string> texts,
                                         const EmbedOptions& options) const {
  const std::size_t batch_size = options.batch_size;
  if (batch_size == 0) throw ValueError("SentenceEmbedder: batch_size must be at least 1, got 0");
  const NoGrad guard;
  const std::string prompt = prompt_of(*modules_, options);
  const std::size_t of_prompt = prompt_length(prompt);
  std::vector<std::size_t> order(texts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return texts[i].size(); });
  Array<T> vectors = Array<T>::from_shape({texts.size(), size()});
  for (std::size_t begin = 0; begin < texts.size(); begin += batch_size) {
    const std::size_t count = std::min(batch_size, texts.size() - begin);
    std::vector<std::string> chosen;
    for (std::size_t i = 0; i < count; ++i) chosen.push_back(prompt + texts[order[begin + i]]);
    const Variable<T> rows = embed(encode(tokenizer_, chosen, {.max_length = max_length_}), of_prompt);
    for (std::size_t i = 0; i < count; ++i)
      std::copy_n(&rows.value()(i, 0), vectors.shape(1), &vectors(order[begin + i], 0));
  }
  return vectors;
}

template class SentenceEmbedder<float>;
template class SentenceEmbedder<double>;

}  // namespace xgrad::pretrained
