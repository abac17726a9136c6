#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../../tokenizers/tokenizer.hpp"
#include "heads.hpp"

namespace xgrad::detail {
class CopiedFiles;
}

namespace xgrad::pretrained {

namespace detail {
struct TextOptions;
}

struct ScoreOptions {
  xgrad::detail::ByName by_name = {};
  std::size_t batch_size = 32;  ///< pairs at a time
  /// Name of the prompt that goes before each first text. Empty: the folder's default prompt, if it has one.
  std::optional<std::string> prompt_name = {};
  /// The prompt itself, instead of one with a name; "" for none.
  std::optional<std::string> prompt = {};
  /// Is called after each batch with the number of pairs that are done; what it throws ends the call.
  std::function<void(std::size_t)> progress = {};
};

/// Scores pairs of texts, such as a question and a document, with a folder of sentence-transformers'
/// CrossEncoder: a classifier of both texts together, whose logits go through an activation function
/// (Nogueira and Cho 2019, arXiv:1901.04085). https://sbert.net
template <class T>
class CrossEncoder {
 public:
  /// Reads a classifier and its tokenizer, prompts and the maximum length. The activation function is
  /// `activation_fn` of config_sentence_transformers.json, or `sentence_transformers.activation_fn` or
  /// `sbert_ce_default_activation_function` of config.json, or else Sigmoid for one label and Identity for
  /// several. Throws FileError for unreadable files and for unknown functions and modules.
  static CrossEncoder from_folder(const std::string& folder, const LoadOptions& options = {});

  /// The scores (pairs, labels) of texts[i] with seconds[i]. Encodes pairs of similar length together,
  /// without recording gradients, and truncates the longer text of a long pair. Throws ValueError for
  /// different numbers of both, a text that is not UTF-8, a batch_size of 0 and an unknown prompt_name.
  Array<T> operator()(std::span<const std::string> texts, std::span<const std::string> seconds,
                      const ScoreOptions& options = {}) const;

  /// The indices of documents and their scores with a query, the highest score first. Also throws ValueError
  /// for a model of several labels.
  std::vector<std::pair<std::size_t, T>> rank(const std::string& query,
                                              std::span<const std::string> documents,
                                              const ScoreOptions& options = {}) const;

  /// The differentiable scores (batch, labels) of tokens.
  Variable<T> scores(const Input& input) const { return activation_(classifier_(input)); }

  /// Writes the classifier, the tokenizer and the files of sentence-transformers into a folder. Throws
  /// FileError.
  void save(const std::string& folder) const;

  const SequenceClassifier<T>& classifier() const& { return classifier_; }
  SequenceClassifier<T> classifier() && { return classifier_; }
  const tokenizers::Tokenizer& tokenizer() const& { return tokenizer_; }
  tokenizers::Tokenizer tokenizer() && { return tokenizer_; }
  /// Maximum number of tokens of a pair, including special tokens.
  std::size_t max_length() const { return max_length_; }

 private:
  using Activation = Variable<T> (*)(const Variable<T>&);

  CrossEncoder(SequenceClassifier<T> classifier, tokenizers::Tokenizer tokenizer, Activation activation,
               std::shared_ptr<const detail::TextOptions> texts,
               std::shared_ptr<const xgrad::detail::CopiedFiles> files);

  SequenceClassifier<T> classifier_;
  tokenizers::Tokenizer tokenizer_;
  Activation activation_;
  std::size_t max_length_;
  std::shared_ptr<const detail::TextOptions> texts_;
  std::shared_ptr<const xgrad::detail::CopiedFiles> files_;
};

}  // namespace xgrad::pretrained
