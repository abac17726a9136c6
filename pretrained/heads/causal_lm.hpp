#pragma once

#include "../../models/autoregressive_model.hpp"
#include "../../ops/loss/losses.hpp"
#include "task_model.hpp"

namespace xgrad::pretrained {

/// Predicts the next token: logits = x W^T of the hidden states x, where W is the word embedding matrix if
/// config.json ties them, unless the folder has another one nevertheless, as in transformers 5.
/// https://huggingface.co/docs/transformers/model_doc/llama#transformers.LlamaForCausalLM
template <class T>
class CausalLM : public TaskModel<T, Decoder>, public AutoregressiveModel<T> {
 public:
  /// Reads a folder, or a GGUF file of llama.cpp. Throws FileError.
  static CausalLM from_folder(const std::string& folder, const LoadOptions& options = {}) {
    return detail::from_folder<CausalLM>(folder, options);
  }
  explicit CausalLM(const Config& config) : CausalLM(detail::fresh<CausalLM>(config)) {}
  CausalLM(const Config& config, detail::Weights& weights);

  /// Logits of the token behind each, (batch, length, vocab_size).
  Variable<T> operator()(const Input& input) const;

  /// The mean or the sum of the cross-entropies of the labels (batch, length), each by the logits of the
  /// token before it; those of the first tokens and those that are -100 do not count. The labels of a text
  /// are its own ids.
  Variable<T> loss(const Input& input, const Ids& labels, Reduction reduction = Reduction::mean) const;
  /// Labels are integers: xt::cast<std::int64_t>(labels).
  template <xgrad::detail::NoIds E>
  Variable<T> loss(const Input& input, const E& labels, Reduction reduction = Reduction::mean) const = delete;

  KeyValueCache<T> new_cache() const override { return this->decoder().new_cache(); }
  /// Logits (sequences, vocab_size) of the tokens after new ones, as Decoder takes them.
  Variable<T> next_logits(const Ids& tokens, std::span<const std::size_t> lengths,
                          std::span<KeyValueCache<T>> caches) const override;
  std::optional<std::size_t> max_length() const override { return this->config().max_length(); }
  std::vector<std::int64_t> eos_token_ids() const override { return this->config().eos_token_ids; }

  /// Those of hidden states (..., hidden_size).
  Variable<T> token_logits(const Variable<T>& hidden) const;

 private:
  Weight<T> head_;
};

/// Predicts a class, several classes or a number of a sequence by the hidden state of its last token, the
/// last whose id is not pad_token_id, whatever the attention mask says.
/// https://huggingface.co/docs/transformers/model_doc/llama#transformers.LlamaForSequenceClassification
template <class T>
class CausalSequenceClassifier : public TaskModel<T, Decoder> {
 public:
  /// Throws FileError.
  static CausalSequenceClassifier from_folder(const std::string& folder, const LoadOptions& options = {}) {
    return detail::from_folder<CausalSequenceClassifier>(folder, options, "score.");
  }
  explicit CausalSequenceClassifier(const Config& config)
      : CausalSequenceClassifier(detail::fresh<CausalSequenceClassifier>(config)) {}
  CausalSequenceClassifier(const Config& config, detail::Weights& weights);

  /// Logits, (batch, labels). Throws ValueError for several sequences if the config has no pad_token_id.
  Variable<T> operator()(const Input& input) const;

  /// The mean or the sum of the cross-entropies of classes (batch).
  Variable<T> loss(const Input& input, const Ids& labels, Reduction reduction = Reduction::mean) const;
  /// Loss of targets (batch, labels), or (batch) for one label: the mean squared error for regression, else
  /// the mean binary cross-entropy.
  Variable<T> loss(const Input& input, const Array<T>& targets) const;

 private:
  Linear<T> score_;
};

}  // namespace xgrad::pretrained
