#include "cross_encoder.hpp"

#include <algorithm>

#include "../../base/detail/system/folder_files.hpp"
#include "../../base/error.hpp"
#include "../../base/folder.hpp"
#include "../../graph/grad_mode.hpp"
#include "../../ops/pointwise/elementwise.hpp"
#include "../batch.hpp"
#include "../detail/config/json.hpp"
#include "../detail/config/named_function.hpp"
#include "../detail/config/text_options.hpp"
#include "../detail/similar_lengths.hpp"

namespace xgrad::pretrained {

using tokenizers::Tokenizer;

namespace {

using detail::Json;

/// The name of the activation function, of the newest file that has one: sentence-transformers 6, 4, and
/// before.
std::optional<Json> activation_name(const std::string& folder) {
  const std::string newest = folder + "/config_sentence_transformers.json";
  if (xgrad::detail::exists(newest)) {
    if (auto name = Json::read(newest).find("activation_fn")) return name;
  }
  const Json config = Json::read(folder + "/config.json");
  if (const auto own = config.find("sentence_transformers")) {
    if (auto name = own->find("activation_fn")) return name;
  }
  return config.find("sbert_ce_default_activation_function");
}

template <class T>
detail::VectorFunction<T> activation_of(const std::string& folder, std::size_t labels) {
  if (const auto name = activation_name(folder)) return detail::function_named<T>(*name);
  if (labels == 1) return [](const Variable<T>& x) { return sigmoid(x); };
  return [](const Variable<T>& x) { return x; };
}

/// Throws FileError for modules beside the classifier.
void check_modules(const std::string& folder) {
  const std::string path = folder + "/modules.json";
  if (!xgrad::detail::exists(path)) return;
  const Json all = Json::read(path);
  const std::vector<Json> list = all.items();
  if (list.size() != 1) all.fail("must list Transformer alone, as other modules are not supported");
  const Json type = list[0].at("type");
  if (!type.text().ends_with(".Transformer")) type.refuse("Transformer");
  if (const auto place = list[0].find("path"); place && !place->text().empty())
    place->refuse("empty, as the classifier has to be in this folder");
}

}  // namespace

template <class T>
CrossEncoder<T>::CrossEncoder(SequenceClassifier<T> classifier, Tokenizer tokenizer, Activation activation,
                              std::shared_ptr<const detail::TextOptions> texts,
                              std::shared_ptr<const xgrad::detail::CopiedFiles> files)
    : classifier_(std::move(classifier)),
      tokenizer_(std::move(tokenizer)),
      activation_(activation),
      max_length_(texts->most_tokens(classifier_.config(), tokenizer_)),
      texts_(std::move(texts)),
      files_(std::move(files)) {}

template <class T>
CrossEncoder<T> CrossEncoder<T>::from_folder(const std::string& folder, const LoadOptions& options) {
  complete_folder(folder);
  check_modules(folder);
  auto texts = std::make_shared<const detail::TextOptions>(folder);
  auto classifier = SequenceClassifier<T>::from_folder(folder, options);
  const Activation activation = activation_of<T>(folder, classifier.config().id2label.size());
  Tokenizer tokenizer = Tokenizer::from_folder(folder, {.lowercase = texts->lowers, .note = options.note});
  check_vocabulary(tokenizer, classifier.config(), folder);
  std::vector<std::string> names = detail::TextOptions::files();
  names.emplace_back("modules.json");
  auto files = std::make_shared<const xgrad::detail::CopiedFiles>(folder, names);
  return {std::move(classifier), std::move(tokenizer), activation, std::move(texts), std::move(files)};
}

template <class T>
void CrossEncoder<T>::save(const std::string& folder) const {
  tokenizer_.check_save(folder);
  files_->check(folder);
  detail::refuse_other_weights(folder);
  write_folder(folder, [&](const std::string& other) {
    detail::save_with_modules(classifier_, other);
    tokenizer_.save(other);
    files_->write(other);
  });
}

template <class T>
Array<T> CrossEncoder<T>::operator()(std::span<const std::string> texts, std::span<const std::string> seconds,
                                     const ScoreOptions& options) const {
  if (texts.size() != seconds.size())
    xgrad::detail::fail<ValueError>("CrossEncoder: there must be as many second texts as texts, got ",
                                    seconds.size(), " and ", texts.size());
  if (options.batch_size == 0) throw ValueError("CrossEncoder: batch_size must be at least 1, got 0");
  const NoGrad guard;
  const std::string prompt = texts_->prompt("CrossEncoder", options.prompt, options.prompt_name);
  std::vector<std::size_t> lengths;
  for (std::size_t i = 0; i < texts.size(); ++i) lengths.push_back(texts[i].size() + seconds[i].size());
  Array<T> all = Array<T>::from_shape({texts.size(), classifier_.config().id2label.size()});
  std::size_t done = 0;
  detail::for_each_batch(lengths, options.batch_size, [&](std::span<const std::size_t> chosen) {
    std::vector<std::string> first, second;
    for (const std::size_t i : chosen) {
      first.push_back(prompt + texts[i]);
      second.push_back(seconds[i]);
    }
    const Variable<T> rows = scores(encode(tokenizer_, first, second, {.max_length = max_length_}));
    for (std::size_t i = 0; i < chosen.size(); ++i)
      std::copy_n(&rows.value()(i, 0), all.shape(1), &all(chosen[i], 0));
    done += chosen.size();
    if (options.progress) options.progress(done);
  });
  return all;
}

template <class T>
std::vector<std::pair<std::size_t, T>> CrossEncoder<T>::rank(const std::string& query,
                                                             std::span<const std::string> documents,
                                                             const ScoreOptions& options) const {
  const std::size_t labels = classifier_.config().id2label.size();
  if (labels != 1)
    xgrad::detail::fail<ValueError>("CrossEncoder: rank needs a model of one label, got ", labels);
  const std::vector<std::string> queries(documents.size(), query);
  const Array<T> scores = (*this)(queries, documents, options);
  std::vector<std::pair<std::size_t, T>> ranked;
  for (std::size_t i = 0; i < documents.size(); ++i) ranked.emplace_back(i, scores(i, 0));
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return ranked;
}

template class CrossEncoder<float>;
template class CrossEncoder<double>;

}  // namespace xgrad::pretrained
