#pragma once

#include <vector>

#include "../../../models/rotary_tables.hpp"
#include "../../../ops/attention/self_attention.hpp"
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

  void keep(const Variable<T>& hidden) const {
    if (hidden_states != nullptr) hidden_states->push_back(hidden);
  }
};

/// How queries see keys, beside their heads.
template <class T>
struct Sight {
  AttentionMask<T> mask = {};
  const RotaryTables<T>* rotary = nullptr;
  std::optional<std::size_t> window = {};  ///< to both sides, without those behind if causal
  bool is_causal = false;
};

/// The mask of a call and a bias (heads, length, length), for an AttentionMask.
template <class T>
AttentionMask<T> with_bias(const AttentionMask<T>& mask, const Variable<T>& bias);

/// x (batch, length, size), 0 where padding is.
template <class T>
Variable<T> without_padding(const EncoderCall<T>& call, const Variable<T>& x);

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

template <class T>
Projection<T> projection(const Linear<T>& linear) {
  const std::optional<Int8Weight>& integers = linear.int8_weight();
  return {linear.weight(), linear.bias(), integers ? &*integers : nullptr};
}
template <class T>
Projection<T> projection(Linear<T>&&) = delete;  // whose integers would not outlive it

/// Attention of queries to keys (batch, length, size) by heads; keeps the weights if the call wants them.
template <class T>
Variable<T> attend(const EncoderCall<T>& call, const AttentionMask<T>& mask, const Variable<T>& queries,
                   const Variable<T>& keys, const Variable<T>& values, const AttentionOptions& options);

/// The same as the sight says.
template <class T>
Variable<T> attend(const EncoderCall<T>& call, const Sight<T>& sight, const Variable<T>& queries,
                   const Variable<T>& keys, const Variable<T>& values, const AttentionOptions& options);

/// Attention of x (batch, length, size), or (rows, size) with a packing, to itself, by heads.
template <class T>
Variable<T> attend(const EncoderCall<T>& call, const Sight<T>& sight, const Variable<T>& x,
                   const Projection<T>& q, const Projection<T>& k, const Projection<T>& v,
                   const AttentionOptions& options);

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

/// Applies `act` to each element.
template <class T>
Variable<T> activation(HiddenAct act, const Variable<T>& x);

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

/// f(gate) x.
template <class T>
Variable<T> gated_activation(HiddenAct f, const Variable<T>& gate, const Variable<T>& x);

/// The names of the parts of a block.
struct BlockNames {
  const char *query, *key, *value, *out, *norm1, *up, *down, *norm2;
  const char* gate = nullptr;  ///< null: the feed-forward network is not gated
};

/// The parts of a block that have biases, beside the norms.
struct BlockBiases {
  bool attention = true, up = true, down = true;
};

/// The sizes of a block, its function, and where it drops.
struct BlockForm {
  std::size_t size, heads, inner;
  HiddenAct act;
  double eps;
  double drop_weights, drop_attention, drop_output;  ///< of attention weights, its output, the block's output
  double drop_inner = 0;                             ///< of what `down` gets
  std::size_t head_dim = 0;                          ///< 0: size / heads
  BlockBiases biases = {};
};

/// y = norm1(x + drop(out(context))), z = norm2(y + drop(down(drop(act(up(y)))))), or with act(gate(y)) up(y)
/// (Shazeer 2020, arXiv:2002.05202) for act(up(y)): what follows attention in a block (Devlin et al. 2019,
/// arXiv:1810.04805), whose base class this is.
template <class T>
class AfterAttention : public Assembled<T> {
 protected:
  struct Layers {
    Linear<T> out;
    LayerNorm<T> norm1;
    std::optional<Linear<T>> gate;
    Linear<T> up, down;
    LayerNorm<T> norm2;
  };

  explicit AfterAttention(const BlockForm& form) : Assembled<T>("EncoderLayer"), form_(form) {}

  /// Declares the layers, after those of attention, as in files.
  Layers layers(const From& from, const BlockNames& names);
  Variable<T> after_attention(const Layers& layers, const Variable<T>& context, const Variable<T>& x) const;

  /// Of attention, without a scale.
  AttentionOptions attention_options() const;

 private:
  BlockForm form_;
};

/// A block of attention by heads and what follows it.
template <class T>
class PostNormBlock : public AfterAttention<T> {
 public:
  PostNormBlock(const BlockForm& form, const From& from, const BlockNames& names);

  Variable<T> operator()(const EncoderCall<T>& call, const Sight<T>& sight, const Variable<T>& x) const;

 private:
  Linear<T> query_, key_, value_;
  typename AfterAttention<T>::Layers layers_;
};

}  // namespace xgrad::pretrained::detail
