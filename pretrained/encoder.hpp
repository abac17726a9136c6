#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../base/detail/by_name.hpp"
#include "../models/layers/embedding.hpp"
#include "../models/layers/layer_norm.hpp"
#include "../models/layers/linear.hpp"
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
struct [[nodiscard]] EncoderOutput {
  Variable<T> last_hidden_state;           ///< (batch, length, hidden_size)
  Variable<T> pooler_output;               ///< (batch, hidden_size), undefined without a pooler
  std::vector<Variable<T>> hidden_states;  ///< of the embeddings, then of each layer, if requested
  std::vector<Variable<T>> attentions;     ///< of each layer (batch, heads, length, length), if requested
};

/// Whether an encoder has a pooler, tanh(W x_0 + b) of the first token: never, always, or if it is stored.
enum class Pooler { none, needed, if_stored };

/// The encoder of a family: embeddings, and layers of attention and feed-forward networks. Results equal
/// those of Hugging Face's modules, including the order of random draws in training.
/// https://huggingface.co/docs/transformers/model_doc/bert#transformers.BertModel
template <class T>
class Encoder : public BaseModel<T> {
 public:
  static constexpr bool is_causal = false;

  /// Reads config.json and the weights of a folder, model.safetensors or pytorch_model.bin, each also in
  /// parts with an index. Throws FileError.
  static Encoder from_folder(const std::string& folder, const LoadOptions& options = {}) {
    return detail::from_folder<Encoder>(folder, options);
  }

  /// With newly initialized parameters: weights from N(0, initializer_range), biases 0.
  explicit Encoder(const Config& config) : Encoder(detail::fresh<Encoder>(config)) {}

  Encoder(const Config& config, detail::Weights& weights, Pooler pooler = Pooler::if_stored);

  /// Learned positions count padding in front of a text, as in Hugging Face; encode() puts it behind the
  /// texts. Throws ShapeError for ids that are not (batch, length) with 1 to max_length() tokens, and for
  /// masks or types of another shape, IndexError for ids out of range.
  EncoderOutput<T> operator()(const Input& input, OutputOptions options = {}) const;

  /// tanh(W x_0 + b) of hidden states (batch, length, hidden_size). Throws ValueError without a pooler.
  Variable<T> pool(const Variable<T>& hidden) const;
  bool has_pooler() const { return pooler_.has_value(); }

  /// Enables or disables setting hidden states of padding to 0 instead of computing them, in batches whose
  /// sequences begin with tokens. The other hidden states are unchanged, except for other random draws in
  /// training. Default: off, so that all results equal Hugging Face's. Applies to all copies, and must not be
  /// called while another thread computes.
  void skip_padding(bool on = true) const { settings_->skip_padding = on; }

 private:
  struct Settings {
    bool skip_padding = false;
  };

  std::optional<Linear<T>> pooler_;
  std::shared_ptr<Settings> settings_ = std::make_shared<Settings>();
};

}  // namespace xgrad::pretrained
