#include "heads.hpp"

#include <algorithm>
#include <utility>

#include "../../ops/index/indexing.hpp"
#include "../../ops/loss/cross_entropy.hpp"
#include "../../ops/loss/losses.hpp"
#include "../../ops/pointwise/elementwise.hpp"
#include "../../ops/product/linear.hpp"
#include "../../ops/reduce/reductions.hpp"
#include "../../ops/shape/shapes.hpp"
#include "../detail/family.hpp"
#include "../detail/head_losses.hpp"

namespace xgrad::pretrained {
namespace {

using detail::class_loss, detail::FamilyInfo, detail::info_of, detail::labelled, detail::Part,
    detail::SequenceForm, detail::SequencePool, detail::Start, detail::TokenForm, detail::TransformForm,
    detail::Weights;

/// The config, if it is of the only family that has the head.
const Config& only(Family family, const Config& config, const char* head) {
  if (config.model_type != family)
    xgrad::detail::fail<ValueError>(head, ": needs ", family == Family::bert ? "a bert" : "an electra",
                                    " model, as no other has this head");
  return config;
}

/// The config of a model whose classes are the start and the end, which config.json has to say, too.
Config with_two_labels(Config config) {
  if (config.id2label.size() != 2) config.id2label = {"LABEL_0", "LABEL_1"};
  return config;
}

/// What a family says of a head. Throws ValueError if it has none.
template <class Form>
Form form_of(Form (*FamilyInfo::*head)(const Config&), const Config& config, const char* name) {
  const FamilyInfo& family = info_of(config.model_type);
  if (family.*head == nullptr)
    xgrad::detail::fail<ValueError>(name, ": is no head of ", family.model_type, " models");
  return (family.*head)(config);
}

SequenceForm sequence_form(const Config& config) {
  return form_of(&FamilyInfo::sequences, config, "SequenceClassifier");
}
TokenForm token_form(const Config& config) { return form_of(&FamilyInfo::tokens, config, "TokenClassifier"); }
TokenForm answer_form(const Config& config) {
  return form_of(&FamilyInfo::answers, config, "QuestionAnswerer");
}

/// The mean of the hidden states of a sequence's tokens.
template <class T>
Variable<T> mean_of_tokens(const Variable<T>& hidden, const Input& input) {
  if (!input.attention_mask) return mean(hidden, 1);
  const Variable<T> tokens(Array<T>(xt::cast<T>(*input.attention_mask)));
  return sum(hidden * unsqueeze(tokens, 2), 1) / sum(tokens, 1, {.keepdim = true});
}

}  // namespace

template <class T>
LanguageModel<T>::LanguageModel(const Config& config, Weights& weights, const char* task, Pooler pooler)
    : TaskModel<T, Encoder>(config, weights, task, pooler),
      transform_(this->transform(weights, form_of(&FamilyInfo::prediction, config, "MaskedLM"))),
      decoder_(this->encoder().word_embeddings()) {
  const FamilyInfo& family = info_of(config.model_type);
  const TransformForm form = family.prediction(config);
  if (form.logits_bias) {
    const char* const name =
        form.logits_bias_name != nullptr ? form.logits_bias_name : family.prediction_bias;
    bias_ = this->parameter(name, weights.take<T>(name, {config.vocab_size}, Start::zeros, Part::head));
  }
  if (config.tie_word_embeddings) {
    weights.forget(family.decoder);
  } else {
    decoder_ = this->parameter(family.decoder, weights.take<T>(family.decoder, {config.vocab_size, form.out},
                                                               Start::normal, Part::head));
  }
  this->eval();
}

template <class T>
Variable<T> LanguageModel<T>::token_logits(const Variable<T>& hidden) const {
  return linear(transform_(hidden), decoder_, bias_);
}

template <class T>
MaskedLM<T>::MaskedLM(const Config& config, Weights& weights)
    : LanguageModel<T>(config, weights, "ForMaskedLM") {}

template <class T>
Variable<T> MaskedLM<T>::operator()(const Input& input) const {
  const auto scope = this->scope();
  return this->token_logits(this->hidden(input));
}

template <class T>
Variable<T> MaskedLM<T>::loss(const Input& input, const Ids& labels, Reduction reduction) const {
  const auto [hidden, kept] = labelled(this->hidden(input), labels);
  return class_loss(this->token_logits(hidden), kept, reduction);
}

template <class T>
PreTraining<T>::PreTraining(const Config& config, Weights& weights)
    : LanguageModel<T>(only(Family::bert, config, "PreTraining"), weights, "ForPreTraining", Pooler::needed),
      next_(this->linear(weights, "cls.seq_relationship", config.hidden_size, 2)) {
  this->eval();
}

template <class T>
typename PreTraining<T>::Logits PreTraining<T>::operator()(const Input& input) const {
  const auto scope = this->scope();
  const EncoderOutput<T> output = this->encoder()(input);
  return {this->token_logits(output.last_hidden_state), next_(output.pooler_output)};
}

template <class T>
Variable<T> PreTraining<T>::loss(const Input& input, const Ids& tokens, const Ids& next) const {
  const EncoderOutput<T> output = this->encoder()(input);
  const auto [hidden, kept] = labelled(output.last_hidden_state, tokens);
  return class_loss(this->token_logits(hidden), kept) + class_loss(next_(output.pooler_output), next);
}

template <class T>
NextSentence<T>::NextSentence(const Config& config, Weights& weights)
    : TaskModel<T, Encoder>(only(Family::bert, config, "NextSentence"), weights, "ForNextSentencePrediction",
                            Pooler::needed),
      next_(this->linear(weights, "cls.seq_relationship", config.hidden_size, 2)) {
  this->eval();
}

template <class T>
Variable<T> NextSentence<T>::operator()(const Input& input) const {
  const auto scope = this->scope();
  return next_(this->encoder()(input).pooler_output);
}

template <class T>
Variable<T> NextSentence<T>::loss(const Input& input, const Ids& labels) const {
  return class_loss((*this)(input), labels);
}

template <class T>
SequenceClassifier<T>::SequenceClassifier(const Config& config, Weights& weights)
    : TaskModel<T, Encoder>(
          config, weights, "ForSequenceClassification",
          sequence_form(config).pool == SequencePool::pooler ? Pooler::needed : Pooler::none),
      transform_(sequence_form(config).transform
                     ? std::optional(this->transform(weights, *sequence_form(config).transform))
                     : std::nullopt),
      classifier_(this->linear(weights, sequence_form(config).classifier, config.hidden_size,
                               config.id2label.size())) {
  this->eval();
}

template <class T>
Variable<T> SequenceClassifier<T>::operator()(const Input& input) const {
  const auto scope = this->scope();
  const EncoderOutput<T> output = this->encoder()(input);
  const SequenceForm form = sequence_form(this->config());
  Variable<T> x = output.pooler_output;
  if (form.pool == SequencePool::first) x = select(output.last_hidden_state, 1, 0);
  if (form.pool == SequencePool::mean) x = mean_of_tokens(output.last_hidden_state, input);
  if (form.pool == SequencePool::late) x = output.last_hidden_state;
  x = this->drop(x, form.drop_before);
  if (transform_) x = (*transform_)(x);
  const Variable<T> logits = classifier_(this->drop(x, form.drop_after));
  return form.pool == SequencePool::late ? mean_of_tokens(logits, input) : logits;
}

template <class T>
Variable<T> SequenceClassifier<T>::loss(const Input& input, const Ids& labels, Reduction reduction) const {
  if (this->config().id2label.size() == 1)
    throw ValueError(
        "SequenceClassifier: a model with one label predicts a number: pass the targets as an Array");
  return class_loss((*this)(input), labels, reduction);
}

template <class T>
Variable<T> SequenceClassifier<T>::loss(const Input& input, const Array<T>& targets) const {
  const Config& config = this->config();
  return detail::target_loss((*this)(input), targets, config.id2label.size(), config.problem_type);
}

template <class T>
TokenClassifier<T>::TokenClassifier(const Config& config, Weights& weights)
    : TaskModel<T, Encoder>(config, weights, "ForTokenClassification"),
      transform_(token_form(config).transform
                     ? std::optional(this->transform(weights, *token_form(config).transform))
                     : std::nullopt),
      classifier_(
          this->linear(weights, token_form(config).classifier, config.hidden_size, config.id2label.size())) {
  this->eval();
}

template <class T>
Variable<T> TokenClassifier<T>::dropped(const Input& input) const {
  const Variable<T> hidden = this->hidden(input);
  return this->drop(transform_ ? (*transform_)(hidden) : hidden, token_form(this->config()).drop);
}

template <class T>
Variable<T> TokenClassifier<T>::operator()(const Input& input) const {
  const auto scope = this->scope();
  return classifier_(dropped(input));
}

template <class T>
Variable<T> TokenClassifier<T>::loss(const Input& input, const Ids& labels, Reduction reduction) const {
  const auto [hidden, kept] = labelled(dropped(input), labels);
  return class_loss(classifier_(hidden), kept, reduction);
}

template <class T>
QuestionAnswerer<T>::QuestionAnswerer(const Config& config, Weights& weights)
    : TaskModel<T, Encoder>(with_two_labels(config), weights, "ForQuestionAnswering"),
      transform_(answer_form(config).transform
                     ? std::optional(this->transform(weights, *answer_form(config).transform))
                     : std::nullopt),
      outputs_(this->linear(weights, answer_form(config).classifier, config.hidden_size, 2)) {
  this->eval();
}

template <class T>
typename QuestionAnswerer<T>::Logits QuestionAnswerer<T>::operator()(const Input& input) const {
  const auto scope = this->scope();
  const Variable<T> hidden = this->encoder()(input, {.padding = true}).last_hidden_state;
  const Variable<T> x =
      this->drop(transform_ ? (*transform_)(hidden) : hidden, answer_form(this->config()).drop);
  const Variable<T> logits = outputs_(x);
  return {select(logits, 2, 0), select(logits, 2, 1)};
}

template <class T>
Variable<T> QuestionAnswerer<T>::loss(const Input& input, const Ids& start, const Ids& end) const {
  const Logits logits = (*this)(input);
  const auto length = static_cast<std::int64_t>(logits.start.shape(1));
  const auto clamped = [length](Ids positions) {
    for (std::int64_t& position : positions) position = std::clamp<std::int64_t>(position, 0, length);
    return positions;
  };
  return (class_loss(logits.start, clamped(start), Reduction::mean, length) +
          class_loss(logits.end, clamped(end), Reduction::mean, length)) *
         T(0.5);
}

template <class T>
Discriminator<T>::Discriminator(const Config& config, Weights& weights)
    : TaskModel<T, Encoder>(only(Family::electra, config, "Discriminator"), weights, "ForPreTraining"),
      dense_(
          this->linear(weights, "discriminator_predictions.dense", config.hidden_size, config.hidden_size)),
      prediction_(
          this->linear(weights, "discriminator_predictions.dense_prediction", config.hidden_size, 1)) {
  this->eval();
}

template <class T>
Variable<T> Discriminator<T>::operator()(const Input& input) const {
  const auto scope = this->scope();
  const Variable<T> x = activate(this->config().hidden_act, dense_(this->hidden(input)));
  return squeeze(prediction_(x), 2);
}

template <class T>
Variable<T> Discriminator<T>::loss(const Input& input, const Ids& labels) const {
  const Variable<T> logits = (*this)(input);
  if (!same_shape(labels.shape(), logits.shape()))
    xgrad::detail::fail<ShapeError>("Discriminator: labels must be (batch, length), got ", labels.shape(),
                                    " for logits ", logits.shape());
  const Variable<T> weight(input.attention_mask ? Array<T>(xt::cast<T>(*input.attention_mask))
                                                : Array<T>(xt::ones<T>(logits.shape())));
  return binary_cross_entropy_with_logits(logits, Variable<T>(Array<T>(xt::cast<T>(labels))),
                                          {.weight = weight, .reduction = Reduction::sum}) /
         sum(weight);
}

#define XGRAD_INSTANTIATE(T)            \
  template class LanguageModel<T>;      \
  template class MaskedLM<T>;           \
  template class PreTraining<T>;        \
  template class NextSentence<T>;       \
  template class SequenceClassifier<T>; \
  template class TokenClassifier<T>;    \
  template class QuestionAnswerer<T>;   \
  template class Discriminator<T>;

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::pretrained
