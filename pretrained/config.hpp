#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace xgrad::pretrained {

/// Encoders that differ in names and details: BERT (Devlin et al. 2019, arXiv:1810.04805; MiniLM, bge, e5 and
/// gte have its layout), DistilBERT (Sanh et al. 2019, arXiv:1910.01108), RoBERTa (Liu et al. 2019,
/// arXiv:1907.11692), ELECTRA (Clark et al. 2020, arXiv:2003.10555).
enum class Family { bert, distilbert, roberta, electra };

/// The function inside of a feed-forward network, as `hidden_act` names it.
enum class HiddenAct {
  gelu,       ///< x Phi(x)
  gelu_tanh,  ///< gelu_new, gelu_pytorch_tanh: x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
  gelu_fast,  ///< the same with 0.7978845608 for sqrt(2 / pi)
  relu,
  silu,  ///< silu, swish: x sigmoid(x)
};

/// What the labels of a sequence are.
enum class ProblemType {
  regression,                   ///< numbers
  single_label_classification,  ///< one class
  multi_label_classification,   ///< any number of classes
};

/// What a model folder's config.json says, with Hugging Face's names and defaults. DistilBERT's dim,
/// n_layers, n_heads, hidden_dim, dropout, attention_dropout, activation and seq_classif_dropout stand here
/// under the names that BERT has.
/// https://huggingface.co/docs/transformers/model_doc/bert#transformers.BertConfig
struct Config {
  Family model_type = Family::bert;
  std::size_t vocab_size = 30522;
  std::size_t hidden_size = 768;
  std::size_t embedding_size = 768;  ///< hidden_size but in ELECTRA
  std::size_t num_hidden_layers = 12;
  std::size_t num_attention_heads = 12;  ///< they divide hidden_size
  std::size_t intermediate_size = 3072;
  std::size_t max_position_embeddings = 512;
  std::size_t type_vocab_size = 2;  ///< 0: no types (DistilBERT)
  std::optional<std::int64_t> pad_token_id = 0;
  double layer_norm_eps = 1e-12;
  HiddenAct hidden_act = HiddenAct::gelu;
  double hidden_dropout_prob = 0.1;
  double attention_probs_dropout_prob = 0.1;
  double classifier_dropout = 0.1;  ///< before the classifier of sequences; of tokens but in DistilBERT
  double qa_dropout = 0.1;          ///< DistilBERT's, before the answers of questions
  double initializer_range = 0.02;  ///< standard deviation of weights that start fresh
  bool tie_word_embeddings = true;  ///< predict tokens with the matrix that embeds them
  std::vector<std::string> id2label = {"LABEL_0", "LABEL_1"};
  std::optional<ProblemType> problem_type = {};
  std::string architecture =
      {};  ///< the class that was saved, "BertForMaskedLM"; empty if config.json does not say

  /// The defaults of a family.
  static Config of(Family family);

  /// Throws ValueError unless the sizes fit each other, as in every config that is read.
  void check() const;

  /// Reads config.json of a folder. Throws FileError for a field that is missing or out of its range, and for
  /// what cannot be loaded, with the reason: "model/config.json: model_type must be bert, distilbert, roberta
  /// or electra, got "deberta-v2": its attention to relative positions is not built".
  static Config from_folder(const std::string& folder);

  /// The most tokens of a sequence: max_position_embeddings, but in RoBERTa, whose positions begin after
  /// pad_token_id.
  std::size_t max_length() const;

  /// config.json for a model of that class, "BertForMaskedLM", with the given dtype, "float32": what this
  /// config was read from, with the fields of this object.
  std::string json(const std::string& architecture, const std::string& dtype) const;

 private:
  std::string read_;  // the file
};

}  // namespace xgrad::pretrained
