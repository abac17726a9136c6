#pragma once

#include "../ops/loss/losses.hpp"
#include "encoder.hpp"

namespace xgrad::pretrained {

/// An encoder with a head for a task. https://huggingface.co/docs/transformers/model_doc/bert
template <class T>
class TaskModel : public Model<T> {
 public:
  const Encoder<T>& encoder() const { return encoder_; }

  /// The parameters that are not frozen by encoder().freeze().
  std::vector<NamedParameter<T>> trainable_parameters() const;

 protected:
  TaskModel(const Config& config, detail::Weights& weights, const char* task, Pooler pooler = Pooler::none);

  Variable<T> hidden(const Input& input) const { return encoder_(input).last_hidden_state; }
  Variable<T> drop(const Variable<T>& x, double probability) const;
  Linear<T> linear(detail::Weights& weights, const std::string& name, std::size_t in_features,
                   std::size_t out_features);

 private:
  Encoder<T> encoder_;
};

/// What predicts tokens from hidden states: LayerNorm(act(dense(x))) W^T + bias, where W embeds the words,
/// too, unless config.json says otherwise.
template <class T>
class LanguageModel : public TaskModel<T> {
 protected:
  LanguageModel(const Config& config, detail::Weights& weights, const char* task,
                Pooler pooler = Pooler::none);

  Variable<T> token_logits(const Variable<T>& hidden) const;

 private:
  Linear<T> dense_;
  LayerNorm<T> norm_;
  Variable<T> bias_, decoder_;
};

/// Predicts the tokens that a mask hides. In ELECTRA it is the generator.
template <class T>
class MaskedLM : public LanguageModel<T> {
 public:
  static MaskedLM from_folder(const std::string& folder, const LoadOptions& options = {}) {
    return detail::from_folder<MaskedLM>(folder, options);
  }
  explicit MaskedLM(const Config& config) : MaskedLM(detail::fresh<MaskedLM>(config)) {}
  MaskedLM(const Config& config, detail::Weights& weights);

  /// Logits of all tokens, (batch, length, vocab_size).
  Variable<T> operator()(const Input& input) const;

  /// The mean or the sum of the cross-entropies of the labels (batch, length) that are not -100.
  Variable<T> loss(const Input& input, const Ids& labels, Reduction reduction = Reduction::mean) const;
};

/// BERT's two tasks: hidden tokens, and whether the second text follows the first (class 0) or not (class 1).
template <class T>
class PreTraining : public LanguageModel<T> {
 public:
  struct Logits {
    Variable<T> tokens;  ///< (batch, length, vocab_size)
    Variable<T> next;    ///< (batch, 2)
  };

  static PreTraining from_folder(const std::string& folder, const LoadOptions& options = {}) {
    return detail::from_folder<PreTraining>(folder, options);
  }
  explicit PreTraining(const Config& config) : PreTraining(detail::fresh<PreTraining>(config)) {}
  PreTraining(const Config& config, detail::Weights& weights);

  Logits operator()(const Input& input) const;

  /// The sum of both cross-entropies; labels of tokens (batch, length) are ignored where they are -100, those
  /// of texts are (batch).
  Variable<T> loss(const Input& input, const Ids& tokens, const Ids& next) const;

 private:
  Linear<T> next_;
};

/// Whether the second text follows the first (class 0) or not (class 1). Only BERT has it.
template <class T>
class NextSentence : public TaskModel<T> {
 public:
  static NextSentence from_folder(const std::string& folder, const LoadOptions& options = {}) {
    return detail::from_folder<NextSentence>(folder, options);
  }
  explicit NextSentence(const Config& config) : NextSentence(detail::fresh<NextSentence>(config)) {}
  NextSentence(const Config& config, detail::Weights& weights);

  /// (batch, 2).
  Variable<T> operator()(const Input& input) const;

  /// The mean cross-entropy of labels (batch).
  Variable<T> loss(const Input& input, const Ids& labels) const;

 private:
  Linear<T> next_;
};

/// A class, several classes, or a number of each sequence, as config().problem_type says.
template <class T>
class SequenceClassifier : public TaskModel<T> {
 public:
  static SequenceClassifier from_folder(const std::string& folder, const LoadOptions& options = {}) {
    return detail::from_folder<SequenceClassifier>(folder, options, "classifier.");
  }
  explicit SequenceClassifier(const Config& config)
      : SequenceClassifier(detail::fresh<SequenceClassifier>(config)) {}
  SequenceClassifier(const Config& config, detail::Weights& weights);

  /// (batch, labels).
  Variable<T> operator()(const Input& input) const;

  /// The mean or the sum of the cross-entropies of classes (batch).
  Variable<T> loss(const Input& input, const Ids& labels, Reduction reduction = Reduction::mean) const;
  /// Of targets (batch, labels), or (batch) for one label: the mean squared error for regression, else the
  /// mean binary cross-entropy.
  Variable<T> loss(const Input& input, const Array<T>& targets) const;

 private:
  std::optional<Linear<T>> dense_;
  Linear<T> classifier_;
};

/// A class of each token.
template <class T>
class TokenClassifier : public TaskModel<T> {
 public:
  static TokenClassifier from_folder(const std::string& folder, const LoadOptions& options = {}) {
    return detail::from_folder<TokenClassifier>(folder, options, "classifier.");
  }
  explicit TokenClassifier(const Config& config) : TokenClassifier(detail::fresh<TokenClassifier>(config)) {}
  TokenClassifier(const Config& config, detail::Weights& weights);

  /// (batch, length, labels).
  Variable<T> operator()(const Input& input) const;

  /// The mean or the sum of the cross-entropies of the labels (batch, length) that are not -100.
  Variable<T> loss(const Input& input, const Ids& labels, Reduction reduction = Reduction::mean) const;

 private:
  Variable<T> dropped(const Input& input) const;
  Linear<T> classifier_;
};

/// Where the answer to a question begins and ends in a text.
template <class T>
class QuestionAnswerer : public TaskModel<T> {
 public:
  struct Logits {
    Variable<T> start, end;  ///< (batch, length)
  };

  static QuestionAnswerer from_folder(const std::string& folder, const LoadOptions& options = {}) {
    return detail::from_folder<QuestionAnswerer>(folder, options);
  }
  explicit QuestionAnswerer(const Config& config)
      : QuestionAnswerer(detail::fresh<QuestionAnswerer>(config)) {}
  QuestionAnswerer(const Config& config, detail::Weights& weights);

  Logits operator()(const Input& input) const;

  /// Half the sum of both cross-entropies, over all places, those of padding, too, as Hugging Face has it;
  /// positions (batch) beyond the length are ignored.
  Variable<T> loss(const Input& input, const Ids& start, const Ids& end) const;

 private:
  Linear<T> outputs_;
};

/// ELECTRA's discriminator: whether a token was replaced.
template <class T>
class Discriminator : public TaskModel<T> {
 public:
  static Discriminator from_folder(const std::string& folder, const LoadOptions& options = {}) {
    return detail::from_folder<Discriminator>(folder, options);
  }
  explicit Discriminator(const Config& config) : Discriminator(detail::fresh<Discriminator>(config)) {}
  Discriminator(const Config& config, detail::Weights& weights);

  /// (batch, length); above 0 where a token was replaced.
  Variable<T> operator()(const Input& input) const;

  /// The mean binary cross-entropy over the tokens that are no padding; labels (batch, length) are 0 or 1.
  Variable<T> loss(const Input& input, const Ids& labels) const;

 private:
  Linear<T> dense_, prediction_;
};

}  // namespace xgrad::pretrained
