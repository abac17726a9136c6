#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../base/detail/by_name.hpp"
#include "../models/embedding.hpp"
#include "../models/layer_norm.hpp"
#include "../models/linear.hpp"
#include "../ops/attention/attention.hpp"
#include "input.hpp"
#include "model.hpp"

namespace xgrad::pretrained {

/// Optional outputs of an encoder.
struct OutputOptions {
  xgrad::detail::ByName by_name = {};
  bool hidden_states = false;
  bool attentions = false;
  bool padding = false;  ///< compute hidden states of padding even with skip_padding()
};

template <class T>
struct EncoderOutput {
  Variable<T> last_hidden_state;           ///< (batch, length, hidden_size)
  Variable<T> pooler_output;               ///< (batch, hidden_size), undefined without a pooler
  std::vector<Variable<T>> hidden_states;  ///< of the embeddings, then of each layer, if requested
  std::vector<Variable<T>> attentions;     ///< of each layer (batch, heads, length, length), if requested
};

/// Whether an encoder has a pooler, tanh(W x_0 + b) of the first token: never, always, or if it is stored.
enum class Pooler { none, needed, if_stored };

namespace detail {

/// A batch without its padding rows: the indices of the kept rows among batch * length, their number per
/// sequence, and the kept row for each row of the batch (any row for padding).
struct Packing {
  std::size_t batch, length;
  std::vector<std::size_t> lengths;
  Ids rows, places;
};

/// y = LayerNorm(x + dropout(dense(attention(x)))), z = LayerNorm(y + dropout(dense(act(dense(y))))), all
/// with biases (Devlin et al. 2019, arXiv:1810.04805).
template <class T>
class EncoderLayer : public Module<T> {
 public:
  EncoderLayer(const Config& config, Weights& weights, const std::string& name);

  /// x (batch, length, hidden_size), or (rows, hidden_size) with a packing. Stores the weights in `attention`
  /// unless it is null.
  Variable<T> operator()(const Variable<T>& x, const AttentionMask<T>& mask, const Packing* packing,
                         Variable<T>* attention) const;

 private:
  Linear<T> linear(Weights& weights, const std::string& layer, const char* name, std::size_t in,
                   std::size_t out);
  LayerNorm<T> norm(Weights& weights, const std::string& layer, const char* name);
  Variable<T> drop(const Variable<T>& x) const;

  Config config_;
  Linear<T> query_, key_, value_, out_;
  LayerNorm<T> norm1_;
  Linear<T> up_, down_;
  LayerNorm<T> norm2_;
};

/// Applies `act` to each element.
template <class T>
Variable<T> activation(HiddenAct act, const Variable<T>& x);

}  // namespace detail

/// BERT's encoder, or that of a related family: embeddings of words, positions and types, and layers of
/// attention and feed-forward networks, each followed by a LayerNorm. Results equal those of Hugging Face's
/// modules, including the order of random draws in training.
/// https://huggingface.co/docs/transformers/model_doc/bert#transformers.BertModel
template <class T>
class Encoder : public Model<T> {
 public:
  /// Reads config.json and model.safetensors of a folder. Throws FileError.
  static Encoder from_folder(const std::string& folder, const LoadOptions& options = {}) {
    return detail::from_folder<Encoder>(folder, options);
  }

  /// With newly initialized parameters: weights from N(0, initializer_range), biases 0.
  explicit Encoder(const Config& config) : Encoder(detail::fresh<Encoder>(config)) {}

  Encoder(const Config& config, detail::Weights& weights, Pooler pooler = Pooler::if_stored);

  /// Throws ShapeError for ids that are not (batch, length) with 1 to max_length() tokens, and for masks or
  /// types of another shape, IndexError for ids out of range.
  EncoderOutput<T> operator()(const Input& input, OutputOptions options = {}) const;

  /// tanh(W x_0 + b) of hidden states (batch, length, hidden_size). Throws ValueError without a pooler.
  Variable<T> pool(const Variable<T>& hidden) const;
  bool has_pooler() const { return pooler_.has_value(); }

  /// Freezes the embeddings and the first `layers` layers, which then get no gradients, and lets the other
  /// layers be trained; without a number, all of them. Applies to all copies. Throws ValueError for more
  /// layers than the encoder has.
  void freeze(std::optional<std::size_t> layers) const;

  /// Enables or disables setting hidden states of padding to 0 instead of computing them, in batches whose
  /// sequences begin with tokens. The other hidden states are unchanged, except for other random draws in
  /// training. Default: off, so that all results equal Hugging Face's. Applies to all copies, and must not be
  /// called while another thread computes.
  void skip_padding(bool on = true) const { settings_->skip_padding = on; }

  const Variable<T>& word_embeddings() const& { return words_.weight(); }
  Variable<T> word_embeddings() && { return words_.weight(); }

 private:
  struct Settings {
    bool skip_padding = false;
  };

  Variable<T> embed(const Input& input, const detail::Packing* packing) const;
  Variable<T> positions(const Ids& ids, const detail::Packing* packing) const;

  Embedding<T> words_, positions_;
  std::optional<Embedding<T>> types_;
  LayerNorm<T> norm_;
  std::optional<Linear<T>> project_;
  std::vector<detail::EncoderLayer<T>> layers_;
  std::optional<Linear<T>> pooler_;
  std::shared_ptr<Settings> settings_ = std::make_shared<Settings>();
};

}  // namespace xgrad::pretrained
