#include "causal_lm.hpp"

#include <algorithm>

#include "../../models/detail/caches_guard.hpp"
#include "../../models/detail/new_tokens.hpp"
#include "../../ops/loss/linear_cross_entropy.hpp"
#include "../../ops/product/linear.hpp"
#include "../detail/family.hpp"
#include "../detail/head_losses.hpp"

namespace xgrad::pretrained {
namespace {

using detail::info_of, detail::Part, detail::Weights;

constexpr const char* head_name = "lm_head.weight";

/// The label of the next token of each; none of the last.
Ids of_next_tokens(const Ids& labels) {
  Ids next = labels;
  const std::size_t length = labels.dimension() == 2 ? labels.shape(1) : 0;
  for (std::size_t row = 0; length > 0 && row < labels.shape(0); ++row) {
    std::copy_n(labels.data() + row * length + 1, length - 1, next.data() + row * length);
    next(row, length - 1) = detail::ignored_label;
  }
  return next;
}

/// The last token of each row that is not padding, or the first; the last of all without padding.
std::vector<std::int64_t> last_tokens(const Ids& ids, std::optional<std::int64_t> pad) {
  const std::size_t batch = ids.shape(0), length = ids.shape(1);
  if (!pad && batch > 1)
    xgrad::detail::fail<ValueError>(
        "CausalSequenceClassifier: pad_token_id of the config must tell the ends of ", batch,
        " sequences, got none");
  std::vector<std::int64_t> last(batch);
  for (std::size_t row = 0; row < batch; ++row) {
    std::size_t at = length - 1;
    while (pad && at > 0 && ids(row, at) == *pad) --at;
    last[row] = static_cast<std::int64_t>(row * length + at);
  }
  return last;
}

}  // namespace

template <class T>
CausalLM<T>::CausalLM(const Config& config, Weights& weights)
    : TaskModel<T, Decoder>(config, weights, info_of(config.model_type).language_model),
      head_(this->decoder().stored_word_embeddings()) {
  const std::string words = info_of(config.model_type).body.words + std::string(".weight");
  if (config.tie_word_embeddings && !weights.differ(words, head_name)) {
    weights.forget(head_name);
    return;
  }
  head_ = this->weight(head_name,
                       weights.take_rows<T>(head_name, {config.vocab_size, config.hidden_size}, Part::head));
}

template <class T>
Variable<T> CausalLM<T>::token_logits(const Variable<T>& hidden) const {
  return linear(hidden, head_, {});
}

template <class T>
Variable<T> CausalLM<T>::operator()(const Input& input) const {
  const auto scope = this->scope();
  return token_logits(this->decoder()(input).last_hidden_state);
}

template <class T>
Variable<T> CausalLM<T>::loss(const Input& input, const Ids& labels, Reduction reduction) const {
  const auto scope = this->scope();
  const auto [hidden, kept] =
      detail::labelled(this->decoder()(input).last_hidden_state, of_next_tokens(labels));
  return linear_cross_entropy(hidden, head_, kept,
                              {.ignore_index = detail::ignored_label, .reduction = reduction});
}

template <class T>
Variable<T> CausalLM<T>::next_logits(const Ids& tokens, std::span<const std::size_t> lengths,
                                     std::span<KeyValueCache<T>> caches) const {
  const auto scope = this->scope();
  xgrad::detail::CachesGuard<T> caches_guard(caches);
  const Variable<T> hidden = this->decoder()(tokens, lengths, caches);
  Variable<T> logits = token_logits(xgrad::detail::last_of_each(hidden, lengths));
  caches_guard.succeeded();
  return logits;
}

template <class T>
CausalSequenceClassifier<T>::CausalSequenceClassifier(const Config& config, Weights& weights)
    : TaskModel<T, Decoder>(config, weights, "ForSequenceClassification"),
      score_(this->linear(weights, "score", config.hidden_size, config.id2label.size(), false)) {
  this->eval();
}

template <class T>
Variable<T> CausalSequenceClassifier<T>::operator()(const Input& input) const {
  const auto scope = this->scope();
  const Variable<T> hidden = flatten(this->decoder()(input).last_hidden_state, 0, 1);
  const std::vector<std::int64_t> last = last_tokens(input.input_ids, this->config().pad_token_id);
  return score_(
      index_select(hidden, 0, xgrad::detail::array_of<std::int64_t>(std::span<const std::int64_t>(last))));
}

template <class T>
Variable<T> CausalSequenceClassifier<T>::loss(const Input& input, const Ids& labels,
                                              Reduction reduction) const {
  if (this->config().id2label.size() == 1)
    throw ValueError(
        "CausalSequenceClassifier: a model with one label predicts a number: pass the targets as an Array");
  return detail::class_loss((*this)(input), labels, reduction);
}

template <class T>
Variable<T> CausalSequenceClassifier<T>::loss(const Input& input, const Array<T>& targets) const {
  const Config& config = this->config();
  return detail::target_loss((*this)(input), targets, config.id2label.size(), config.problem_type);
}

#define XGRAD_INSTANTIATE(T)  \
  template class CausalLM<T>; \
  template class CausalSequenceClassifier<T>;

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::pretrained
