#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../models/activation.hpp"

namespace xgrad::pretrained {

namespace detail {
struct FamilyOptions;
}

/// Encoder families, each of which a file of pretrained/families/ describes: BERT (Devlin et al. 2019,
/// arXiv:1810.04805; MiniLM, bge, e5 and gte have its layout), DistilBERT (Sanh et al. 2019,
/// arXiv:1910.01108), RoBERTa (Liu et al. 2019, arXiv:1907.11692), XLM-RoBERTa (Conneau et al. 2020,
/// arXiv:1911.02116), CamemBERT (Martin et al. 2020, arXiv:1911.03894), ELECTRA (Clark et al. 2020,
/// arXiv:2003.10555), MPNet (Song et al. 2020, arXiv:2004.09297), ALBERT (Lan et al. 2020, arXiv:1909.11942),
/// DeBERTa (He et al. 2020, arXiv:2006.03654), DeBERTa v2 and v3 (He et al. 2021, arXiv:2111.09543),
/// ModernBERT (Warner et al. 2024, arXiv:2412.13663), EuroBERT (Boizard et al. 2025, arXiv:2503.05500), the
/// encoder of T5 (Raffel et al. 2020, arXiv:1910.10683), Nomic BERT (Nussbaum et al. 2024, arXiv:2402.01613),
/// GTE (Zhang et al. 2024, arXiv:2407.19669) as Hugging Face's class and, gte_new, as the code on the hub
/// spells it, and Jina Embeddings v3 (Sturua et al. 2024, arXiv:2409.10173).
enum class Family {
  bert,
  distilbert,
  roberta,
  electra,
  xlm_roberta,
  camembert,
  mpnet,
  albert,
  deberta,
  deberta_v2,
  modernbert,
  eurobert,
  t5,
  nomic_bert,
  gte,
  gte_new,
  jina_embeddings_v3
};

/// Kind of a sequence's labels.
enum class ProblemType {
  regression,                   ///< numbers
  single_label_classification,  ///< exactly one class
  multi_label_classification,   ///< any number of classes
};

/// The config.json of a model folder, with Hugging Face's names and defaults. DistilBERT's dim, n_layers,
/// n_heads, hidden_dim, dropout, attention_dropout, activation and seq_classif_dropout have BERT's names
/// here. https://huggingface.co/docs/transformers/model_doc/bert#transformers.BertConfig
struct Config {
  Family model_type = Family::bert;
  std::size_t vocab_size = 30522;
  std::size_t hidden_size = 768;
  std::size_t embedding_size = 768;  ///< equals hidden_size except in ALBERT, DeBERTa and ELECTRA
  std::size_t num_hidden_layers = 12;
  std::size_t num_attention_heads = 12;  ///< must divide hidden_size, unless heads have a size of their own
  std::size_t intermediate_size = 3072;
  std::size_t max_position_embeddings = 512;
  std::size_t type_vocab_size = 2;  ///< 0: no types (DistilBERT)
  std::optional<std::int64_t> pad_token_id = 0;
  double layer_norm_eps = 1e-12;
  Activation hidden_act = Activation::gelu;
  double hidden_dropout_prob = 0.1;
  double attention_probs_dropout_prob = 0.1;
  double classifier_dropout = 0.1;  ///< of sequences; of tokens except in DistilBERT and DeBERTa
  double qa_dropout = 0.1;          ///< DistilBERT's, before the output of question answering
  double initializer_range = 0.02;  ///< standard deviation of newly initialized weights
  bool tie_word_embeddings = true;  ///< use the word embeddings as output weights of token prediction
  std::vector<std::string> id2label = {"LABEL_0", "LABEL_1"};
  std::optional<ProblemType> problem_type = {};
  std::string architecture = {};  ///< the saved class, "BertForMaskedLM"; empty if missing in config.json
  bool int8_weights = false;      ///< the folder has weights of 8-bit integers (quantization_config)
  std::shared_ptr<const detail::FamilyOptions> own = {};  ///< what its family alone has

  /// The default config of a family.
  static Config of(Family family);

  /// Throws ValueError for inconsistent sizes. Every loaded config is checked.
  void check() const;

  /// Reads config.json of a folder. A file without model_type has that of the class in `architectures`.
  /// Throws FileError for a missing or invalid field, for a path that is no folder of a model, and for
  /// unsupported models, with the reason:
  /// "model/config.json: model_type must be albert, bert, [...] or xlm-roberta, as it is a decoder, which
  /// CausalLM loads, got "gpt2"".
  static Config from_folder(const std::string& folder);

  /// The maximum number of tokens of a sequence: max_position_embeddings, or less in RoBERTa, whose positions
  /// begin after pad_token_id.
  std::size_t max_length() const;

  /// Whether attention adds a bias for each distance of positions, as in MPNet and T5.
  bool is_biased_by_distance() const;

  /// config.json for a model of the class "BertForMaskedLM" and the dtype "float32": the file that this
  /// config was read from, updated with the fields of this object; with this quantization_config, or without
  /// one.
  std::string json(const std::string& architecture, const std::string& dtype,
                   const std::string& quantization = "") const;

 private:
  std::string read_;  // content of the file
};

}  // namespace xgrad::pretrained
