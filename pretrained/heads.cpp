#include "heads.hpp"

#include <algorithm>
#include <utility>

#include "../ops/index/indexing.hpp"
#include "../ops/loss/cross_entropy.hpp"
#include "../ops/loss/losses.hpp"
#include "../ops/pointwise/dropout.hpp"
#include "../ops/pointwise/elementwise.hpp"
#include "../ops/product/linear.hpp"
#include "../ops/reduce/reductions.hpp"
#include "../ops/shape/shapes.hpp"
#include "detail/ids.hpp"
#include "detail/weights.hpp"

namespace xgrad::pretrained {
namespace {

using detail::Part, detail::Start, detail::take_linear, detail::take_norm, detail::Weights;

constexpr std::int64_t ignored_label = -100;

/// How a family spells what predicts tokens.
struct PredictorNames {
  const char *dense, *norm, *bias, *decoder;
};

PredictorNames names_of(const Config& config) {
  switch (config.model_type) {
    case Family::bert:
      return {"cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm",
              "cls.predictions.bias", "cls.predictions.decoder.weight"};
    case Family::distilbert:
      return {"vocab_transform", "vocab_layer_norm", "vocab_projector.bias", "vocab_projector.weight"};
    case Family::roberta:
      return {"lm_head.dense", "lm_head.layer_norm", "lm_head.bias", "lm_head.decoder.weight"};
    case Family::electra:
      break;
  }
  return {"generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head.bias",
          "generator_lm_head.weight"};
}

/// The family's name, under which its encoder stands in a model for a task.
std::string encoder_name(Family family) {
  std::string name = detail::prefix_of(family);
  name.pop_back();
  return name;
}

/// The config, if it is of the only family that has the head.
const Config& only(Family family, const Config& config, const char* head) {
  if (config.model_type != family)
    xgrad::detail::fail<ValueError>(head, ": needs ", family == Family::bert ? "a bert" : "an electra",
                                    " model, as no other has this head");
  return config;
}

/// The rows of hidden states (batch, length, size) that have a label, and the labels: what is ignored need
/// not be computed. Without any label all rows.
template <class T>
std::pair<Variable<T>, Ids> labelled(const Variable<T>& hidden, const Ids& labels) {
  if (labels.dimension() != 2 || labels.shape(0) != hidden.shape(0) || labels.shape(1) != hidden.shape(1))
    xgrad::detail::fail<ShapeError>("loss: labels must be (batch, length), got ", labels.shape(),
                                    " for hidden states ", hidden.shape());
  const std::span<const std::int64_t> all(labels.data(), labels.size());
  std::vector<std::int64_t> rows, kept;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] == ignored_label) continue;
    rows.push_back(static_cast<std::int64_t>(i));
    kept.push_back(all[i]);
  }
  const Variable<T> flat = flatten(hidden, 0, 1);
  if (rows.empty() || rows.size() == labels.size()) return {flat, detail::ids_of(all)};
  return {index_select(flat, 0, detail::ids_of(rows)), detail::ids_of(kept)};
}

/// The reduced cross-entropy of logits (..., classes) and labels of the shape in front.
template <class T>
Variable<T> class_loss(const Variable<T>& logits, const Ids& labels, Reduction reduction = Reduction::mean,
                       std::int64_t ignored = ignored_label) {
  const std::size_t classes = logits.shape(logits.dimension() - 1);
  Ids flat = labels;
  flat.reshape({labels.size()});
  return cross_entropy(reshape(logits, {-1, static_cast<std::ptrdiff_t>(classes)}), flat,
                       {.ignore_index = ignored, .reduction = reduction});
}

}  // namespace

template <class T>
TaskModel<T>::TaskModel(const Config& config, Weights& weights, const char* task, Pooler pooler)
    : Model<T>(config, task),
      encoder_(this->child(encoder_name(config.model_type), Encoder<T>(config, weights, pooler))) {
  this->eval();
}

template <class T>
std::vector<NamedParameter<T>> TaskModel<T>::trainable_parameters() const {
  std::vector<NamedParameter<T>> list = this->named_parameters();
  std::erase_if(list, [](const NamedParameter<T>& entry) { return !entry.second.requires_grad(); });
  const std::string prefix = detail::prefix_of(this->config().model_type);
  std::ranges::stable_partition(
      list, [&](const NamedParameter<T>& entry) { return entry.first.starts_with(prefix); });
  return list;
}

template <class T>
Variable<T> TaskModel<T>::drop(const Variable<T>& x, double probability) const {
  return xgrad::detail::dropout_if_training(x, probability, this->training());
}

template <class T>
Linear<T> TaskModel<T>::linear(Weights& weights, const std::string& name, std::size_t in_features,
                               std::size_t out_features) {
  return this->child(name, take_linear<T>(weights, name, in_features, out_features, Part::head));
}

template <class T>
LanguageModel<T>::LanguageModel(const Config& config, Weights& weights, const char* task, Pooler pooler)
    : TaskModel<T>(config, weights, task, pooler),
      dense_(this->linear(weights, names_of(config).dense, config.hidden_size, config.embedding_size)),
      norm_(this->child(names_of(config).norm,
                        take_norm<T>(weights, names_of(config).norm, config.embedding_size,
                                     config.layer_norm_eps, Part::head))),
      bias_(this->parameter(names_of(config).bias, weights.take<T>(names_of(config).bias, {config.vocab_size},
                                                                   Start::zeros, Part::head))),
      decoder_(this->encoder().word_embeddings()) {
  const char* const name = names_of(config).decoder;
  if (config.tie_word_embeddings) {
    weights.forget(name);
  } else {
    decoder_ = this->parameter(
        name, weights.take<T>(name, {config.vocab_size, config.embedding_size}, Start::normal, Part::head));
  }
  this->eval();
}

template <class T>
Variable<T> LanguageModel<T>::token_logits(const Variable<T>& hidden) const {
  const Family family = this->config().model_type;
  const bool gelu_always = family == Family::roberta || family == Family::electra;
  const HiddenAct act = gelu_always ? HiddenAct::gelu : this->config().hidden_act;
  return linear(norm_(detail::activation(act, dense_(hidden))), decoder_, bias_);
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
    : TaskModel<T>(only(Family::bert, config, "NextSentence"), weights, "ForNextSentencePrediction",
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
    : TaskModel<T>(config, weights, "ForSequenceClassification",
                   config.model_type == Family::bert ? Pooler::needed : Pooler::none),
      dense_(
          config.model_type == Family::bert
              ? std::nullopt
              : std::optional(this->linear(
                    weights, config.model_type == Family::distilbert ? "pre_classifier" : "classifier.dense",
                    config.hidden_size, config.hidden_size))),
      classifier_(this->linear(weights,
                               config.model_type == Family::bert || config.model_type == Family::distilbert
                                   ? "classifier"
                                   : "classifier.out_proj",
                               config.hidden_size, config.id2label.size())) {
  this->eval();
}

template <class T>
Variable<T> SequenceClassifier<T>::operator()(const Input& input) const {
  const auto scope = this->scope();
  const EncoderOutput<T> output = this->encoder()(input);
  const double p = this->config().classifier_dropout;
  if (!dense_) return classifier_(this->drop(output.pooler_output, p));
  const Variable<T> first = select(output.last_hidden_state, 1, 0);
  switch (this->config().model_type) {
    case Family::distilbert:
      return classifier_(this->drop(relu((*dense_)(first)), p));
    case Family::roberta:
      return classifier_(this->drop(tanh((*dense_)(this->drop(first, p))), p));
    default:
      return classifier_(this->drop(gelu((*dense_)(this->drop(first, p))), p));
  }
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
  const Variable<T> logits = (*this)(input);
  const bool one = this->config().id2label.size() == 1;
  const bool fits =
      same_shape(targets.shape(), logits.shape()) || (one && same_shape(targets.shape(), {logits.shape(0)}));
  if (!fits)
    xgrad::detail::fail<ShapeError>("SequenceClassifier: targets must be (batch, labels), got ",
                                    targets.shape(), " for logits ", logits.shape());
  const Variable<T> wanted = reshape(Variable<T>(targets), logits.shape());
  const ProblemType problem = this->config().problem_type.value_or(
      one ? ProblemType::regression : ProblemType::multi_label_classification);
  return problem == ProblemType::regression ? mse_loss(logits, wanted)
                                            : binary_cross_entropy_with_logits(logits, wanted);
}

template <class T>
TokenClassifier<T>::TokenClassifier(const Config& config, Weights& weights)
    : TaskModel<T>(config, weights, "ForTokenClassification"),
      classifier_(this->linear(weights, "classifier", config.hidden_size, config.id2label.size())) {
  this->eval();
}

template <class T>
Variable<T> TokenClassifier<T>::dropped(const Input& input) const {
  const Config& config = this->config();
  const double p =
      config.model_type == Family::distilbert ? config.hidden_dropout_prob : config.classifier_dropout;
  return this->drop(this->hidden(input), p);
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
    : TaskModel<T>(config, weights, "ForQuestionAnswering"),
      outputs_(this->linear(weights, "qa_outputs", config.hidden_size, 2)) {
  this->eval();
}

template <class T>
typename QuestionAnswerer<T>::Logits QuestionAnswerer<T>::operator()(const Input& input) const {
  const auto scope = this->scope();
  const double p = this->config().model_type == Family::distilbert ? this->config().qa_dropout : 0;
  const Variable<T> hidden = this->encoder()(input, {.padding = true}).last_hidden_state;
  const Variable<T> logits = outputs_(this->drop(hidden, p));
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
    : TaskModel<T>(only(Family::electra, config, "Discriminator"), weights, "ForPreTraining"),
      dense_(
          this->linear(weights, "discriminator_predictions.dense", config.hidden_size, config.hidden_size)),
      prediction_(
          this->linear(weights, "discriminator_predictions.dense_prediction", config.hidden_size, 1)) {
  this->eval();
}

template <class T>
Variable<T> Discriminator<T>::operator()(const Input& input) const {
  const auto scope = this->scope();
  const Variable<T> x = detail::activation(this->config().hidden_act, dense_(this->hidden(input)));
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
  template class TaskModel<T>;          \
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
