#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../models/attention/key_value_cache.hpp"
#include "encoder.hpp"
#include "input.hpp"
#include "model.hpp"

namespace xgrad::pretrained {

template <class T>
struct [[nodiscard]] DecoderOutput {
  Variable<T> last_hidden_state;           ///< (batch, length, hidden_size)
  std::vector<Variable<T>> hidden_states;  ///< of the embeddings, then of each layer, if requested
  std::vector<Variable<T>> attentions;     ///< of each layer (batch, heads, length, length), if requested
};

/// The decoder of a family without a head: embeddings, layers in which each token attends to itself and those
/// before it, and a last norm. Results equal those of Hugging Face's modules, including the order of random
/// draws in training. https://huggingface.co/docs/transformers/model_doc/llama#transformers.LlamaModel
template <class T>
class Decoder : public BaseModel<T> {
 public:
  static constexpr bool is_causal = true;

  /// Reads config.json and the weights of a folder as Encoder does, or a GGUF file, whose weights of any type
  /// become those of T, or as LoadOptions::dtype says. Throws FileError.
  static Decoder from_folder(const std::string& folder, const LoadOptions& options = {}) {
    return detail::from_folder<Decoder>(folder, options);
  }

  /// With newly initialized parameters: weights from N(0, initializer_range), biases 0.
  explicit Decoder(const Config& config) : Decoder(detail::fresh<Decoder>(config)) {}

  Decoder(const Config& config, detail::Weights& weights);

  /// The positions of a sequence begin behind padding in front of it; padding between tokens counts. Throws
  /// ShapeError for ids that are not (batch, length), for more than max_length() of them and for masks of
  /// another shape, IndexError for ids out of range, ValueError for token_type_ids.
  DecoderOutput<T> operator()(const Input& input, OutputOptions options = {}) const;

  /// The hidden states (rows, hidden_size) of new tokens (rows) of several sequences, one sequence after the
  /// other: lengths[i] of them follow those whose keys and values caches[i] has, which it then has of the new
  /// ones, too. No padding is needed, and none of a sequence's numbers depends on the others. Where the
  /// sequence gets so long that its rotary positions have other angles (longrope beyond the original length,
  /// dynamic at each token beyond it), its cache is computed anew from its tokens. Throws
  /// GraphError except under NoGrad, ShapeError for lengths that do not fit and for sequences of more than
  /// max_length() tokens, IndexError for ids out of range. A call that throws has changed no cache.
  Variable<T> operator()(const Ids& tokens, std::span<const std::size_t> lengths,
                         std::span<KeyValueCache<T>> caches) const;

  /// An empty cache for one sequence.
  KeyValueCache<T> new_cache() const;

  /// Enables or disables checkpoints in training: the graph keeps nothing of a layer but what it gets, and
  /// the backward computes the layer again, with the same bits, as xgrad::checkpoint says. That needs memory
  /// for one layer's values instead of all layers', and takes one more forward pass of the layers. Calls that
  /// ask for attentions have none. Default: off. Applies to all copies, and must not be called while another
  /// thread computes.
  void checkpoint_layers(bool on = true) const { settings_->checkpoint_layers = on; }

 private:
  struct Settings {
    bool checkpoint_layers = false;
  };

  /// operator() of one sequence after the other, for positions whose angles depend on the length.
  Variable<T> one_by_one(const Ids& tokens, std::span<const std::size_t> lengths,
                         std::span<KeyValueCache<T>> caches) const;
  /// The hidden states of new tokens of a sequence.
  Variable<T> next_hidden(std::span<const std::int64_t> tokens, KeyValueCache<T>& cache) const;

  std::shared_ptr<Settings> settings_ = std::make_shared<Settings>();
};

}  // namespace xgrad::pretrained
