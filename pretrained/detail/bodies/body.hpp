#pragma once

#include <vector>

#include "../../../models/rotary_tables.hpp"
#include "../../input.hpp"
#include "assembled.hpp"

// Not installed: what the families of encoders are made of.
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

/// The ids of tokens, without those of padding; all without a packing.
Ids packed(const Ids& ids, const Packing* packing);

/// (batch, length), 0 to length - 1 in each row.
Ids counted_positions(const Ids& ids);
/// (batch, length): pad for the token pad, else pad plus how many other tokens there are up to here.
Ids positions_after_padding(const Ids& ids, std::int64_t pad);

/// One forward pass.
template <class T>
struct EncoderCall {
  const Input& input;
  AttentionMask<T> mask;                              ///< (batch, 1, 1, length), or none
  const Packing* packing = nullptr;                   ///< null unless the body packs
  std::vector<Variable<T>>* hidden_states = nullptr;  ///< where they are kept, or null
  std::vector<Variable<T>>* attentions = nullptr;

  /// For the blocks of the body.
  ForwardContext<T> context() const {
    return {.mask = mask,
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

/// What runs between ids and hidden states. Its parameters have the names of Hugging Face's class without a
/// head.
template <class T>
class Body : public Assembled<T> {
 public:
  virtual ~Body() = default;
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;

  /// The last hidden states; keeps those of the embeddings and of each layer but the last.
  virtual Variable<T> operator()(const EncoderCall<T>& call) const = 0;

  /// The embeddings of words, whose weight is that of token prediction, too.
  virtual const Embedding<T>& words() const = 0;

  /// The names of what comes before the layers, and of layer i, for freezing.
  virtual std::vector<std::string> embedding_names() const = 0;
  virtual std::string layer_name(std::size_t i) const = 0;

  /// Whether it computes packed batches.
  virtual bool packs() const { return false; }

 protected:
  explicit Body(const Config& config);
};

/// Where the positions of tokens are.
enum class Positions {
  counted,        ///< learned, from 0
  after_padding,  ///< learned, behind that of padding, which has one of its own
  rotary,         ///< in attention
  none,           ///< not in the embeddings
};

/// How embeddings of tokens differ.
struct EmbeddingsForm {
  Positions positions = Positions::counted;
  const char* project = nullptr;  ///< to the width of the layers, in front of the norm
  bool hides_padding = false;     ///< is 0 where padding is
};

/// drop(norm(project(words + types + positions))), each of which is learned; all but the words and the norm
/// may be absent.
template <class T>
class TokenEmbeddings : public Assembled<T> {
 public:
  TokenEmbeddings(const Config& config, const From& from, const EmbeddingsForm& form);

  Variable<T> operator()(const EncoderCall<T>& call) const;
  const Embedding<T>& words() const { return words_; }

 private:
  Variable<T> positions(const EncoderCall<T>& call) const;

  EmbeddingsForm form_;
  std::int64_t pad_;
  double drop_;
  Embedding<T> words_;
  std::optional<Embedding<T>> positions_, types_;
  std::optional<Linear<T>> project_;
  LayerNorm<T> norm_;
};

}  // namespace xgrad::pretrained::detail
