#pragma once

#include <memory>
#include <optional>
#include <string>

#include "bodies/body.hpp"
#include "config/fields.hpp"
#include "weights/stored_as.hpp"

// Not installed: what a family of encoders says of itself, in a file of pretrained/families/.
namespace xgrad::pretrained::detail {

/// norm(act(dense(x))), before logits of tokens; both may be null.
struct TransformForm {
  const char *dense, *norm;
  Activation act;
  std::size_t out;
  bool dense_bias = true, norm_bias = true;
  bool logits_bias = true;                 ///< of the logits of tokens
  const char* logits_bias_name = nullptr;  ///< that of the family if null
};

/// What a sequence is classified by.
enum class SequencePool {
  pooler,  ///< tanh(W x_0 + b)
  first,   ///< x_0
  mean,    ///< of all tokens
  late,    ///< the mean of the logits of all tokens
};

/// classifier(drop(norm(act(dense(drop(pooled)))))), of which dense and norm may be absent.
struct SequenceForm {
  SequencePool pool;
  std::optional<TransformForm> transform = {};  ///< its norm may be null
  double drop_before = 0, drop_after = 0;
  const char* classifier = "classifier";
};

/// classifier(drop(x)), or of transformed x.
struct TokenForm {
  std::optional<TransformForm> transform = {};
  double drop = 0;
  const char* classifier = "classifier";
};

/// A family: names, a reader of its config.json, a body, and heads.
struct FamilyInfo {
  Family family;
  const char* model_type;                       ///< "bert"
  const char* class_name;                       ///< "Bert"
  const char* prefix;                           ///< "bert.", of a body's parameters in a model for a task
  const char* old_prefix = nullptr;             ///< another one, in files of other programs
  const char* pooler = nullptr;                 ///< "pooler.dense", null for families without
  bool pooler_alone = true;                     ///< a body without a head has the pooler, too
  bool narrow_embeddings = false;               ///< embedding_size is a field of its own
  bool free_heads = false;                      ///< the sizes of heads do not add up to hidden_size
  bool biased_by_distance = false;              ///< attention adds a bias for each distance of positions
  std::span<const StoredAs> stored_as = {};     ///< names in files, where they are others
  std::span<const Spelling> other_fields = {};  ///< second names of fields

  void (*defaults)(Config&) = nullptr;
  /// Names the fields beside those that all families have.
  void (*fields)(Fields&, Config&) = nullptr;
  /// The rule that a config breaks, or empty; may be null.
  std::string (*broken_rule)(const Config&) = nullptr;
  /// Positions in front of the first token.
  std::size_t (*first_position)(const Config&) = nullptr;

  std::shared_ptr<const Body<float>> (*float_body)(const Config&, Weights&) = nullptr;
  std::shared_ptr<const Body<double>> (*double_body)(const Config&, Weights&) = nullptr;

  // Heads; null for those that the family does not have.

  /// Prediction of tokens: the transform, the bias and, where weights are not tied, the decoder.
  TransformForm (*prediction)(const Config&) = nullptr;
  const char *prediction_bias = nullptr, *decoder = nullptr;
  SequenceForm (*sequences)(const Config&) = nullptr;
  TokenForm (*tokens)(const Config&) = nullptr;
  TokenForm (*answers)(const Config&) = nullptr;

  NamesInFiles names() const { return {.prefix = prefix, .old_prefix = old_prefix, .stored_as = stored_as}; }

  template <class T>
  std::shared_ptr<const Body<T>> body(const Config& config, Weights& weights) const {
    if constexpr (std::is_same_v<T, float>)
      return float_body(config, weights);
    else
      return double_body(config, weights);
  }
};

/// A maker of bodies, for FamilyInfo.
template <class T, template <class> class B>
std::shared_ptr<const Body<T>> make_body(const Config& config, Weights& weights) {
  return std::make_shared<const B<T>>(config, weights);
}

/// What only one family has in its config; a family derives its own.
struct FamilyOptions {
  virtual ~FamilyOptions() = default;
  /// JSON of what is read, and not written where nothing has changed.
  virtual std::string unnamed() const { return "null"; }
};

/// The options of a config, which `defaults` or `fields` have put there; the default ones without any.
template <class O>
const O& options_of(const Config& config) {
  static const O otherwise;
  const auto* const own = dynamic_cast<const O*>(config.own.get());
  return own != nullptr ? *own : otherwise;
}

/// The options, to be changed: a copy of those that are there, or the default ones.
template <class O>
O& changed_options(Config& config) {
  auto copy = std::make_shared<O>(options_of<O>(config));
  O& options = *copy;
  config.own = std::move(copy);
  return options;
}

const FamilyInfo& info_of(Family family);

/// All families, and the activation functions by name.
const std::vector<const FamilyInfo*>& all_families();
const Names<Activation>& activation_names();

// The families

extern const FamilyInfo albert, bert, camembert, deberta, deberta_v2, distilbert, electra, eurobert, gte,
    gte_new, jina_embeddings_v3, modernbert, mpnet, nomic_bert, roberta, t5, xlm_roberta;

// Shared by BERT and those that keep its layout

/// hidden_size and the other sizes, dropouts of the layers and the function by BERT's names.
void block_fields(Fields& fields, Config& config);
/// block_fields and the dropout of classifiers.
void bert_fields(Fields& fields, Config& config);
/// Refuses positions other than learned ones.
void absolute_positions(Fields& fields);
/// The pooler: BERT's head of sequences.
SequenceForm pooled_sequences(const Config& config);
/// x_0 through a layer of its own: RoBERTa's head of sequences.
SequenceForm dense_sequences(const Config& config, Activation act);
/// norm(gelu(dense(x))): RoBERTa's head of words.
TransformForm dense_prediction(const Config& config);
TokenForm plain_tokens(const Config& config);
TokenForm plain_answers(const Config& config);

}  // namespace xgrad::pretrained::detail
