#include "sentence_embedder.hpp"

#include <algorithm>

#include "../../base/detail/system/folder_files.hpp"
#include "../../base/detail/tell.hpp"
#include "../../base/error.hpp"
#include "../../base/folder.hpp"
#include "../../graph/grad_mode.hpp"
#include "../../ops/index/indexing.hpp"
#include "../batch.hpp"
#include "../detail/config/text_options.hpp"
#include "../detail/sentence_modules.hpp"
#include "../detail/similar_lengths.hpp"
#include "../detail/weights/folder_digest.hpp"

namespace xgrad::pretrained {

using tokenizers::Encoding, tokenizers::Tokenizer;

namespace {

/// The first numbers of each vector.
template <class T>
Variable<T> first_numbers(const Variable<T>& vectors, std::size_t count) {
  return count < vectors.shape()[1] ? narrow(vectors, 1, 0, count) : vectors;
}

}  // namespace

template <class T>
SentenceEmbedder<T>::SentenceEmbedder(Encoder<T> encoder, Tokenizer tokenizer,
                                      std::shared_ptr<const detail::TextOptions> texts,
                                      std::shared_ptr<const detail::SentenceModules<T>> modules)
    : encoder_(std::move(encoder)),
      tokenizer_(std::move(tokenizer)),
      max_length_(texts->most_tokens(encoder_.config(), tokenizer_)),
      texts_(std::move(texts)),
      modules_(std::move(modules)) {}

template <class T>
SentenceEmbedder<T> SentenceEmbedder<T>::from_folder(const std::string& folder, const LoadOptions& options) {
  Encoder<T> encoder = Encoder<T>::from_folder(folder, options);
  auto modules = std::make_shared<const detail::SentenceModules<T>>(folder, encoder.config().hidden_size);
  if (modules->files.empty())
    xgrad::detail::tell(options.note,
                        folder + ": without modules.json, a vector is the mean of the text's tokens");
  for (const std::string& note : modules->notes) xgrad::detail::tell(options.note, note);
  auto texts = std::make_shared<const detail::TextOptions>(folder);
  Tokenizer tokenizer = Tokenizer::from_folder(folder, {.lowercase = texts->lowers, .note = options.note});
  check_vocabulary(tokenizer, encoder.config(), folder);
  std::vector<std::string> names = modules->files;
  names.insert(names.end(), detail::TextOptions::files().begin(), detail::TextOptions::files().end());
  SentenceEmbedder embedder(std::move(encoder), std::move(tokenizer), std::move(texts), std::move(modules));
  embedder.folder_ = folder;
  embedder.files_ = std::make_shared<const xgrad::detail::CopiedFiles>(folder, names);
  return embedder;
}

template <class T>
void SentenceEmbedder<T>::save(const std::string& folder) const {
  tokenizer_.check_save(folder);
  files_->check(folder);
  detail::refuse_other_weights(folder);
  write_folder(folder, [&](const std::string& other) {
    detail::save_with_modules(encoder_, other);
    tokenizer_.save(other);
    files_->write(other);
    modules_->save(other, encoder_.config().hidden_size);
  });
}

template <class T>
std::vector<NamedParameter<T>> SentenceEmbedder<T>::trainable_parameters() const {
  std::vector<NamedParameter<T>> list = encoder_.named_parameters();
  std::erase_if(list, [](const NamedParameter<T>& entry) { return !entry.second.requires_grad(); });
  const std::vector<NamedParameter<T>> of_modules = modules_->parameters();
  list.insert(list.end(), of_modules.begin(), of_modules.end());
  return list;
}

template <class T>
std::size_t SentenceEmbedder<T>::size() const {
  return std::min(modules_->size, texts_->truncate_dim.value_or(SIZE_MAX));
}

template <class T>
std::vector<Pooling> SentenceEmbedder<T>::poolings() const {
  return modules_->poolings;
}

template <class T>
std::map<std::string, std::string> SentenceEmbedder<T>::prompts() const {
  return texts_->prompts;
}

template <class T>
std::optional<std::string> SentenceEmbedder<T>::query_prompt() const {
  return texts_->first_prompt({"query"});
}

template <class T>
std::optional<std::string> SentenceEmbedder<T>::document_prompt() const {
  return texts_->first_prompt({"document", "passage", "corpus"});
}

template <class T>
Similarity SentenceEmbedder<T>::similarity() const {
  return texts_->similarity;
}

template <class T>
std::string SentenceEmbedder<T>::digest() const {
  return detail::digest_of_folder(folder_, modules_->files);
}

template <class T>
std::size_t SentenceEmbedder<T>::prompt_length(const std::string& prompt) const {
  if (prompt.empty()) return 0;
  const Encoding encoding = tokenizer_.encode(prompt, {.max_length = max_length_});
  return encoding.size() - (encoding.special.empty() || encoding.special.back() == 0 ? 0 : 1);
}

template <class T>
Variable<T> SentenceEmbedder<T>::full_vectors(const Input& input, std::size_t prompt_length) const {
  Variable<T> vectors = pool(encoder_(input).last_hidden_state, input, std::span(modules_->poolings),
                             modules_->pools_prompt ? 0 : prompt_length);
  for (const detail::NamedModule<T>& one : modules_->vectors) vectors = detail::run(one.module, vectors);
  return vectors;
}

template <class T>
Variable<T> SentenceEmbedder<T>::embed(const Input& input, std::size_t prompt_length) const {
  return first_numbers(full_vectors(input, prompt_length), size());
}

template <class T>
Array<T> SentenceEmbedder<T>::operator()(std::span<const std::string> texts,
                                         const EmbedOptions& options) const {
  if (options.batch_size == 0) throw ValueError("SentenceEmbedder: batch_size must be at least 1, got 0");
  const std::size_t dim = options.truncate_dim.value_or(size());
  if (dim == 0 || dim > modules_->size)
    xgrad::detail::fail<ValueError>("SentenceEmbedder: truncate_dim must be from 1 to ", modules_->size,
                                    ", got ", dim);
  const NoGrad guard;
  const std::string prompt = texts_->prompt("SentenceEmbedder", options.prompt, options.prompt_name);
  const std::size_t of_prompt = prompt_length(prompt);
  std::vector<std::size_t> lengths;
  for (const std::string& text : texts) lengths.push_back(text.size());
  Array<T> vectors = Array<T>::from_shape({texts.size(), dim});
  std::size_t done = 0;
  detail::for_each_batch(lengths, options.batch_size, [&](std::span<const std::size_t> chosen) {
    std::vector<std::string> batch;
    for (const std::size_t i : chosen) batch.push_back(prompt + texts[i]);
    Variable<T> rows =
        first_numbers(full_vectors(encode(tokenizer_, batch, {.max_length = max_length_}), of_prompt), dim);
    if (options.normalize) rows = detail::run<T>(detail::NormalizeModule(), rows);
    for (std::size_t i = 0; i < chosen.size(); ++i)
      std::copy_n(&rows.value()(i, 0), vectors.shape(1), &vectors(chosen[i], 0));
    done += chosen.size();
    if (options.progress) options.progress(done);
  });
  return vectors;
}

template class SentenceEmbedder<float>;
template class SentenceEmbedder<double>;

}  // namespace xgrad::pretrained
