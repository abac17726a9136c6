#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../files/tensor_view.hpp"
#include "../models/key_value_cache.hpp"
#include "causal_config.hpp"
#include "encoder.hpp"
#include "input.hpp"
#include "model.hpp"

namespace xgrad::pretrained {

/// Base class of pretrained decoders: a config, and parameters with Hugging Face's names, but for GPT-2's
/// queries, keys and values (`h.0.attn.q_proj.weight`), which its files have in one matrix, and whose
/// matrices are (out, in) here as those of every Linear.
template <class T>
class CausalModel : public Module<T> {
 public:
  const CausalConfig& config() const& { return config_; }
  CausalConfig config() && { return config_; }

  /// Hugging Face's name of this class, "LlamaForCausalLM".
  const std::string& architecture() const& { return this->type(); }
  std::string architecture() && { return this->type(); }

 protected:
  CausalModel(const CausalConfig& config, const std::string& architecture)
      : Module<T>(architecture), config_(config) {}
  /// A body without a task.
  CausalModel(const CausalConfig& config, const Module<T>& body) : Module<T>(body), config_(config) {}

 private:
  CausalConfig config_;
};

struct CausalSaveOptions {
  xgrad::detail::ByName by_name = {};
  /// F32, F64, BF16 or F16, to whose nearest numbers weights are rounded; that of T if absent, or BF16 with
  /// LoadOptions::bfloat16_weights.
  std::optional<DType> dtype = {};
};

/// Writes config.json and model.safetensors ({"format": "pt"}) for transformers, in the layout of the
/// family's files; files of other names stay. Matrices of bfloat16 numbers stay as they are. Throws
/// FileError, also as check_save() does, and ValueError for another type, for a number that is too large for
/// it and for a config that config.json cannot say; if it fails, the folder's model is still there.
template <class T>
void save_folder(const CausalModel<T>& model, const std::string& folder, CausalSaveOptions options = {});

template <class T>
struct [[nodiscard]] DecoderOutput {
  Variable<T> last_hidden_state;           ///< (batch, length, hidden_size)
  std::vector<Variable<T>> hidden_states;  ///< of the embeddings, then of each layer, if requested
  std::vector<Variable<T>> attentions;     ///< of each layer (batch, heads, length, length), if requested
};

namespace detail {
template <class T>
class CausalBody;
}

/// The decoder of a family without a head: embeddings, layers in which each token attends to itself and those
/// before it, and a last norm. Results equal those of Hugging Face's modules, including the order of random
/// draws in training. https://huggingface.co/docs/transformers/model_doc/llama#transformers.LlamaModel
template <class T>
class Decoder : public CausalModel<T> {
 public:
  /// Reads config.json and the weights of a folder as Encoder does, or a GGUF file, whose weights of any type
  /// become those of T, or bfloat16 numbers with LoadOptions::bfloat16_weights. Throws FileError.
  static Decoder from_folder(const std::string& folder, const LoadOptions& options = {}) {
    return detail::from_folder<Decoder, CausalConfig>(folder, options);
  }

  /// With newly initialized parameters: weights from N(0, initializer_range), biases 0.
  explicit Decoder(const CausalConfig& config) : Decoder(detail::fresh<Decoder>(config)) {}

  Decoder(const CausalConfig& config, detail::Weights& weights);

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

  /// Freezes the embeddings and the first `layers` layers as Encoder::freeze does.
  void freeze(std::optional<std::size_t> layers) const;

  /// Enables or disables checkpoints in training: the graph keeps nothing of a layer but what it gets, and
  /// the backward computes the layer again, with the same bits, as xgrad::checkpoint says. That needs memory
  /// for one layer's values instead of all layers', and takes one more forward pass of the layers. Calls that
  /// ask for attentions have none. Default: off. Applies to all copies, and must not be called while another
  /// thread computes.
  void checkpoint_layers(bool on = true) const { settings_->checkpoint_layers = on; }

  /// Undefined with bfloat16_weights.
  Variable<T> word_embeddings() const;
  /// Of the word embeddings with bfloat16_weights.
  std::optional<Bfloat16Weight> bfloat16_word_embeddings() const;

 private:
  struct Settings {
    bool checkpoint_layers = false;
  };

  Decoder(const CausalConfig& config, detail::Weights& weights,
          std::shared_ptr<const detail::CausalBody<T>> body);

  /// operator() of one sequence after the other, for positions whose angles depend on the length.
  Variable<T> one_by_one(const Ids& tokens, std::span<const std::size_t> lengths,
                         std::span<KeyValueCache<T>> caches) const;
  /// The hidden states of new tokens of a sequence.
  Variable<T> next_hidden(std::span<const std::int64_t> tokens, KeyValueCache<T>& cache) const;

  std::shared_ptr<const detail::CausalBody<T>> body_;
  bool rounds_to_bfloat16_;
  std::shared_ptr<Settings> settings_ = std::make_shared<Settings>();
};

}  // namespace xgrad::pretrained
