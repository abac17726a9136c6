#pragma once

#include "../../ops/loss/losses.hpp"
#include "task_model.hpp"

namespace xgrad::pretrained {

/// Predicts tokens from hidden states: LayerNorm(act(dense(x))) W^T + bias, where W is the word embedding
/// matrix unless config.json disables tying.
template <class T>
class LanguageModel : public TaskModel<T, Encoder> {
 protected:
  LanguageModel(const Config& config, detail::Weights& weights, const char* task,
                Pooler pooler = Pooler::none);

  Variable<T> token_logits(const Variable<T>& hidden) const;

 private:
  detail::Transform<T> transform_;
  Variable<T> bias_, decoder_;
};

/// Masked language modelling: predicts masked tokens. In ELECTRA it is the generator.
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
  /// Labels are integers: xt::cast<std::int64_t>(labels).
  template <xgrad::detail::NoIds E>
  Variable<T> loss(const Input& input, const E& labels, Reduction reduction = Reduction::mean) const = delete;
};

/// BERT's two pre-training tasks: masked tokens, and whether the second text follows the first (class 0) or
/// not (class 1).
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

  /// The sum of both cross-entropies, for labels of tokens (batch, length), ignored where -100, and of text
  /// pairs (batch).
  Variable<T> loss(const Input& input, const Ids& tokens, const Ids& next) const;
  /// Labels are integers: xt::cast<std::int64_t>(labels).
  template <class A, class B>
  requires(xgrad::detail::NoIds<A> ||
           xgrad::detail::NoIds<B>) Variable<T> loss(const Input& input, const A& tokens, const B& next)
  const = delete;

 private:
  Linear<T> next_;
};

/// Predicts whether the second text follows the first (class 0) or not (class 1). BERT only.
template <class T>
class NextSentence : public TaskModel<T, Encoder> {
 public:
  static NextSentence from_folder(const std::string& folder, const LoadOptions& options = {}) {
    return detail::from_folder<NextSentence>(folder, options);
  }
  explicit NextSentence(const Config& config) : NextSentence(detail::fresh<NextSentence>(config)) {}
  NextSentence(const Config& config, detail::Weights& weights);

  /// Logits, (batch, 2).
  Variable<T> operator()(const Input& input) const;

  /// The mean cross-entropy of labels (batch).
  Variable<T> loss(const Input& input, const Ids& labels) const;
  /// Labels are integers: xt::cast<std::int64_t>(labels).
  template <xgrad::detail::NoIds E>
  Variable<T> loss(const Input& input, const E& labels) const = delete;

 private:
  Linear<T> next_;
};

/// Predicts a class, several classes, or a number for each sequence, according to config().problem_type.
template <class T>
class SequenceClassifier : public TaskModel<T, Encoder> {
 public:
  static SequenceClassifier from_folder(const std::string& folder, const LoadOptions& options = {}) {
    return detail::from_folder<SequenceClassifier>(folder, options, "classifier.");
  }
  explicit SequenceClassifier(const Config& config)
      : SequenceClassifier(detail::fresh<SequenceClassifier>(config)) {}
  SequenceClassifier(const Config& config, detail::Weights& weights);

  /// Logits, (batch, labels).
  Variable<T> operator()(const Input& input) const;

  /// The mean or the sum of the cross-entropies of classes (batch).
  Variable<T> loss(const Input& input, const Ids& labels, Reduction reduction = Reduction::mean) const;
  /// Loss of targets (batch, labels), or (batch) for one label: the mean squared error for regression, else
  /// the mean binary cross-entropy.
  Variable<T> loss(const Input& input, const Array<T>& targets) const;

 private:
  std::optional<detail::Transform<T>> transform_;
  Linear<T> classifier_;
};

/// Predicts a class for each token.
template <class T>
class TokenClassifier : public TaskModel<T, Encoder> {
 public:
  static TokenClassifier from_folder(const std::string& folder, const LoadOptions& options = {}) {
    return detail::from_folder<TokenClassifier>(folder, options, "classifier.");
  }
  explicit TokenClassifier(const Config& config) : TokenClassifier(detail::fresh<TokenClassifier>(config)) {}
  TokenClassifier(const Config& config, detail::Weights& weights);

  /// Logits, (batch, length, labels).
  Variable<T> operator()(const Input& input) const;

  /// The mean or the sum of the cross-entropies of the labels (batch, length) that are not -100.
  Variable<T> loss(const Input& input, const Ids& labels, Reduction reduction = Reduction::mean) const;
  /// Labels are integers: xt::cast<std::int64_t>(labels).
  template <xgrad::detail::NoIds E>
  Variable<T> loss(const Input& input, const E& labels, Reduction reduction = Reduction::mean) const = delete;

 private:
  Variable<T> dropped(const Input& input) const;

  std::optional<detail::Transform<T>> transform_;
  Linear<T> classifier_;
};

/// Predicts the start and end of the answer to a question in a text.
template <class T>
class QuestionAnswerer : public TaskModel<T, Encoder> {
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

  /// Half the sum of both cross-entropies, over all positions including padding, as in Hugging Face; ignores
  /// labels (batch) beyond the length.
  Variable<T> loss(const Input& input, const Ids& start, const Ids& end) const;
  /// Labels are integers: xt::cast<std::int64_t>(labels).
  template <class A, class B>
  requires(xgrad::detail::NoIds<A> || xgrad::detail::NoIds<B>) Variable<T> loss(const Input& input,
                                                                                const A& start, const B& end)
  const = delete;

 private:
  std::optional<detail::Transform<T>> transform_;
  Linear<T> outputs_;
};

/// ELECTRA's discriminator: predicts whether a token was replaced.
template <class T>
class Discriminator : public TaskModel<T, Encoder> {
 public:
  static Discriminator from_folder(const std::string& folder, const LoadOptions& options = {}) {
    return detail::from_folder<Discriminator>(folder, options);
  }
  explicit Discriminator(const Config& config) : Discriminator(detail::fresh<Discriminator>(config)) {}
  Discriminator(const Config& config, detail::Weights& weights);

  /// Logits, (batch, length); positive for replaced tokens.
  Variable<T> operator()(const Input& input) const;

  /// The mean binary cross-entropy over all tokens except padding; labels (batch, length) are 0 or 1.
  Variable<T> loss(const Input& input, const Ids& labels) const;
  /// Labels are integers: xt::cast<std::int64_t>(labels).
  template <xgrad::detail::NoIds E>
  Variable<T> loss(const Input& input, const E& labels) const = delete;

 private:
  Linear<T> dense_, prediction_;
};

}  // namespace xgrad::pretrained
