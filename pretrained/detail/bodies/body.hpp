#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../../../models/attention/key_value_cache.hpp"
#include "../../../models/attention/rotary_tables.hpp"
#include "../../config.hpp"
#include "../../input.hpp"
#include "../body_options.hpp"
#include "assembled.hpp"

// Not installed: what runs between ids and hidden states.
namespace xgrad::pretrained::detail {

/// Throws ShapeError in the name of `model` for ids that are not (batch, length) with 1 to `most` tokens, and
/// for masks or types of another shape.
void check_input(const char* model, const Input& input, std::optional<std::size_t> most);

bool has_padding(const Input& input);

/// (batch, 1, 1, length), true for tokens; nothing if all may be attended to.
template <class T>
AttentionMask<T> key_mask(const Input& input);

/// A batch without its padding rows: the indices of the kept rows among batch * length, their number per
/// sequence, and the kept row for each row of the batch (any row for padding).
struct Packing {
  std::size_t batch, length;
  std::vector<std::size_t> lengths;
  Ids rows, places;

  /// Of the tokens that a mask (batch, length) shows.
  explicit Packing(const Ids& tokens);
};

/// One forward pass.
template <class T>
struct ForwardCall {
  const Input& input;
  AttentionMask<T> mask;                              ///< (batch, 1, 1, length), or none
  const Packing* packing = nullptr;                   ///< null unless the body packs
  bool checkpoints = false;                           ///< the graph keeps nothing of a layer but what it gets
  std::vector<Variable<T>>* hidden_states = nullptr;  ///< where they are kept, or null
  std::vector<Variable<T>>* attentions = nullptr;

  /// For the blocks of the body.
  ForwardContext<T> context() const {
    return {.mask = packing != nullptr ? AttentionMask<T>() : mask,  // which packed rows need not
            .packed_lengths = packing != nullptr ? packing->lengths : std::vector<std::size_t>(),
            .attentions = attentions};
  }

  void keep(const Variable<T>& hidden) const {
    if (hidden_states != nullptr) hidden_states->push_back(hidden);
  }
};

/// The mask of a call and a bias (heads, length, length), for an AttentionMask.
template <class T>
AttentionMask<T> with_bias(const AttentionMask<T>& mask, const Variable<T>& bias);

/// x (batch, length, size), 0 where the mask hides padding.
template <class T>
Variable<T> without_padding(const AttentionMask<T>& mask, const Variable<T>& x);

/// The tables of rotary positions for sequences of any length. Those of short ones are kept, where the length
/// does not change the angles.
template <class T>
class RotaryPositions {
 public:
  /// Throws ValueError as rotary_tables does.
  RotaryPositions(const RotaryConfig& config, std::size_t max_length);

  RotaryTables<T> operator()(std::size_t length) const;
  /// Those of `count` positions from `first` on.
  RotaryTables<T> operator()(std::size_t first, std::size_t count) const;
  /// (batch, length, dim / 2), of these positions, which are below `length_of_all`.
  RotaryTables<T> operator()(const Ids& positions, std::size_t length_of_all) const;

  /// Whether the angles of a sequence may be others where it is longer.
  bool depend_on_length() const;
  /// Whether sequences of both lengths have the same angles.
  bool are_same(std::size_t length, std::size_t other) const;

 private:
  RotaryConfig config_;
  RotaryTables<T> kept_;
};

/// New tokens of several sequences, one after the other, and what their sequences have before them.
template <class T>
struct CachedRows {
  std::span<const std::size_t> lengths;  ///< how many tokens of each
  std::span<KeyValueCache<T>> caches;
};

/// What layer i of a family is made of.
TransformerBlockOptions block_options(const Config& config, std::size_t i);

/// Embeddings, blocks and perhaps a last norm, as a config and the BodyOptions of its family say:
///
///   drop(project(norm(word_project(words + types + positions))))
///
/// and then the blocks in turn. The parameters have the names of Hugging Face's class without a head, but for
/// those that files have in one tensor.
template <class T>
class Body : public Assembled<T> {
 public:
  Body(const Config& config, Weights& weights);
  virtual ~Body() = default;
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;

  /// The last hidden states; keeps those of the embeddings and of each layer but the last.
  Variable<T> operator()(const ForwardCall<T>& call) const;

  /// The last hidden states (1, rows, size) of new tokens (1, rows).
  Variable<T> operator()(const Ids& ids, const CachedRows<T>& cached) const;

  /// The embeddings of words, whose weight is that of token prediction, too.
  const Embedding<T>& words() const { return *words_; }

  /// The names of what comes before the layers, and of the blocks of a layer, for freezing.
  const std::vector<std::string>& embedding_names() const { return embedding_names_; }
  std::vector<std::string> block_names(std::size_t layer) const;

  /// Whether it computes packed batches.
  bool packs() const;

  /// Whether keys of a sequence may not hold once it is longer, and whether they hold from one length to
  /// another.
  bool keys_depend_on_length() const;
  bool keys_hold(std::size_t length, std::size_t longer) const;

 protected:
  /// Makes layer i from the parameters of its name.
  using MakeBlock = std::function<std::shared_ptr<const TransformerBlock<T>>(const From&, std::size_t)>;
  /// For a body with blocks of its own, which do not pack.
  Body(const Config& config, Weights& weights, const MakeBlock& make_block);

  /// What the blocks need to know of positions.
  virtual void add_positions(const ForwardCall<T>& call, ForwardContext<T>& context) const;
  /// What the second block gets, x of the first or otherwise.
  virtual Variable<T> after_first(const ForwardCall<T>&, const Variable<T>& embedded,
                                  const Variable<T>& x) const;

  const Config& config() const { return config_; }
  void add_embedding_name(const std::string& name) { embedding_names_.push_back(name); }

 private:
  /// A module that holds the embeddings.
  class Group : public Module<T> {
   public:
    explicit Group(const char* type) : Module<T>(type) {}
    using Module<T>::child, Module<T>::scope;
  };

  void declare_embeddings(const From& from);
  Variable<T> positions(const ForwardCall<T>& call, const Ids* positions) const;
  Variable<T> normalized_embeddings(const ForwardCall<T>& call, const Ids* positions) const;
  Variable<T> embed(const ForwardCall<T>& call, const Ids* positions) const;
  Variable<T> blocks(const ForwardCall<T>& call, ForwardContext<T> context,
                     const Variable<T>& embedded) const;

  Config config_;
  const BodyOptions& options_;
  bool packs_ = true;
  std::vector<std::string> embedding_names_;
  std::optional<Group> group_;
  std::optional<Embedding<T>> words_, positions_, types_;
  std::optional<Linear<T>> word_project_, project_;
  std::optional<LayerNorm<T>> embedding_norm_;
  std::vector<std::shared_ptr<const TransformerBlock<T>>> blocks_;
  std::optional<Embedding<T>> position_bias_;  // declared after the layers, as in files
  std::optional<EitherNorm<T>> last_norm_;
  std::vector<RotaryPositions<T>> rotary_;  // and those of layers with a window, if they are others
};

}  // namespace xgrad::pretrained::detail
