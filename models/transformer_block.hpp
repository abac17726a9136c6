#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "../ops/attention/attention.hpp"
#include "forward_context.hpp"
#include "layers/activation.hpp"
#include "layers/embedding.hpp"
#include "layers/layer_norm.hpp"
#include "layers/linear.hpp"
#include "layers/rms_norm.hpp"

namespace xgrad {

/// Where a block has its norms, for f(x), attention or the feed-forward network.
enum class Residual {
  none,         ///< norm(f(x)), to see what the connection is for
  post_norm,    ///< norm(x + f(x)) (Vaswani et al. 2017, arXiv:1706.03762): BERT
  pre_norm,     ///< x + f(norm(x)) (Xiong et al. 2020, arXiv:2002.04745): GPT-2, Llama
  output_norm,  ///< x + norm(f(x)): OLMo 2
  both_norms,   ///< x + norm(f(norm(x))): Gemma 2 and 3
};

enum class NormKind { layer, rms };

/// Norms of queries and keys: none, of each head by itself, or over all heads.
enum class QueryKeyNorm { none, head, all };

/// What a block is made of, for the names of its parameters.
enum class BlockPart {
  attention,  ///< a module that has the parts of attention, the names of which come after it
  query,
  key,
  value,
  query_key_value,  ///< the three in one matrix
  out,
  query_norm,
  key_norm,
  position_bias,  ///< a table of biases of scores by distance, (rows, heads)
  attention_norm,
  attention_output_norm,
  // of the attention to ForwardContext::memory
  memory_attention,
  memory_query,
  memory_key,
  memory_value,
  memory_out,
  memory_norm,
  memory_output_norm,
  feed_forward,  ///< a module that has the parts of the feed-forward network
  gate,
  up,
  gate_up,  ///< both in one matrix
  down,
  feed_forward_norm,
  feed_forward_output_norm,
};

/// The names of parts in the order of their declaration, which decides initial draws and the order of
/// parameters; those that the options leave out may be among them.
struct NamedPart {
  BlockPart part;
  const char* name;
};
using BlockNames = std::span<const NamedPart>;

inline bool names_part(BlockNames names, BlockPart part) {
  return std::any_of(names.begin(), names.end(), [part](const NamedPart& one) { return one.part == part; });
}

struct TransformerBlockOptions {
  detail::ByName by_name = {};
  std::size_t d_model = 0;  ///< width of a token's vector
  std::size_t num_heads = 0;
  std::size_t num_kv_heads = 0;  ///< heads of keys and values; 0: num_heads
  std::size_t head_dim = 0;      ///< 0: d_model / num_heads
  std::size_t d_ff = 0;          ///< inner width of the feed-forward network

  Residual residual = Residual::post_norm;
  NormKind norm = NormKind::layer;
  double eps = 1e-5;           ///< of the norms
  double norm_offset = 0;      ///< added to the weights of RMS norms: 1 in Gemma
  bool norm_bias = true;       ///< of layer norms
  bool attention_norm = true;  ///< false: attention gets x as it is

  bool qkv_bias = true, out_bias = true, up_bias = true, down_bias = true;  ///< up_bias: of the gate, too

  QueryKeyNorm query_key_norm = QueryKeyNorm::none;
  std::optional<double> scale = {};        ///< of scores; 1 / sqrt(head_dim) if absent
  std::optional<double> softcap = {};      ///< of scores
  std::optional<std::size_t> window = {};  ///< keys to both sides, or before the query if causal
  bool is_causal = false;
  bool has_memory = false;                 ///< a second attention, to ForwardContext::memory
  std::optional<std::size_t> rotary = {};  ///< index of the table in ForwardContext::rotary; none if absent
  std::size_t position_bias_rows = 0;      ///< of a table that position_bias() gives for masks; 0: none

  Activation activation = Activation::relu;
  bool is_gated = false;  ///< down(activation(gate(x)) up(x)) for down(activation(up(x)))

  // Dropout probabilities
  double attention_dropout = 0;         ///< of attention weights
  double attention_output_dropout = 0;  ///< of out(attention)
  double inner_dropout = 0;             ///< of what `down` gets
  double output_dropout = 0;            ///< of what `down` gives
};

/// Makes the layers of a block: newly initialized, or of the parameters of a file.
template <class T>
class LayerSource {
 public:
  virtual ~LayerSource() = default;

  virtual Linear<T> linear(const std::string& name, std::size_t in, std::size_t out, bool bias) = 0;
  virtual LayerNorm<T> layer_norm(const std::string& name, std::size_t size, double eps, bool bias) = 0;
  virtual RMSNorm<T> rms_norm(const std::string& name, std::size_t size, double eps, double offset) = 0;
  virtual Embedding<T> embedding(const std::string& name, std::size_t rows, std::size_t size) = 0;
};

/// Newly initialized layers, as their constructors draw them.
template <class T>
class InitialLayers : public LayerSource<T> {
 public:
  Linear<T> linear(const std::string&, std::size_t in, std::size_t out, bool bias) override {
    return Linear<T>(in, out, bias);
  }
  LayerNorm<T> layer_norm(const std::string&, std::size_t size, double eps, bool bias) override {
    Array<T> weight = xt::ones<T>({size});
    return LayerNorm<T>(std::move(weight),
                        bias ? std::optional<Array<T>>(xt::zeros<T>({size})) : std::nullopt, eps);
  }
  RMSNorm<T> rms_norm(const std::string&, std::size_t size, double eps, double offset) override {
    return RMSNorm<T>(Dims{size}, eps, offset);
  }
  Embedding<T> embedding(const std::string&, std::size_t rows, std::size_t size) override {
    return Embedding<T>(rows, size);
  }
};

/// A LayerNorm or an RMSNorm.
template <class T>
class EitherNorm {
 public:
  EitherNorm(LayerNorm<T> norm) : norm_(std::move(norm)) {}
  EitherNorm(RMSNorm<T> norm) : norm_(std::move(norm)) {}

  Variable<T> operator()(const Variable<T>& x) const;
  /// Of x + residual.
  Variable<T> operator()(const Variable<T>& x, const Variable<T>& residual) const;

  const LayerNorm<T>* layer() const& { return std::get_if<LayerNorm<T>>(&norm_); }

 private:
  std::variant<LayerNorm<T>, RMSNorm<T>> norm_;
};

/// Attention and a feed-forward network, each with a residual connection, and between the two an attention to
/// the memory, if there is one:
///
///   attention(x) = out(scaled_dot_product_attention(rotary(norm(query(x))), rotary(norm(key(x))), value(x)))
///   feed_forward(x) = down(activation(up(x))), or down(activation(gate(x)) up(x))
///
/// x and the result are (batch, length, d_model), or as ForwardContext says for packed rows and caches; the
/// memory is (batch, its length, d_model). Throws ShapeError for other shapes.
template <class T>
class TransformerBlock : public Module<T> {
 public:
  /// Throws ValueError for options that contradict each other, and for a part without a name.
  TransformerBlock(const TransformerBlockOptions& options, BlockNames names, LayerSource<T>& source);
  virtual ~TransformerBlock() = default;
  TransformerBlock(const TransformerBlock&) = default;
  TransformerBlock& operator=(const TransformerBlock&) = default;

  Variable<T> operator()(const ForwardContext<T>& context, const Variable<T>& x) const;

  const TransformerBlockOptions& options() const { return options_; }
  /// The table of biases by distance, undefined without one.
  Variable<T> position_bias() const { return position_bias_ ? position_bias_->weight() : Variable<T>(); }

 protected:
  /// For a block of another type, or whose attention() has layers of its own, which it declares before it
  /// calls declare().
  TransformerBlock(const char* type, const TransformerBlockOptions& options);
  void declare(BlockNames names, LayerSource<T>& source, bool has_projections = true);

  /// The heads' results (batch, length, num_heads head_dim), before `out`.
  virtual Variable<T> attention(const ForwardContext<T>& context, const Variable<T>& x) const;

  /// Attention of queries to keys by heads; keeps the weights where they are wanted.
  static Variable<T> attend(std::vector<Variable<T>>* weights, const AttentionMask<T>& mask,
                            const Variable<T>& queries, const Variable<T>& keys, const Variable<T>& values,
                            const AttentionOptions& options);

  /// Of the heads, with dropout in training.
  AttentionOptions attention_options() const;
  Variable<T> drop(const Variable<T>& x, double probability) const;

 private:
  /// A module that holds parts of the block.
  class Group : public Module<T> {
   public:
    explicit Group(const char* type) : Module<T>(type) {}
    using Module<T>::child, Module<T>::scope;
  };
  struct Norms {
    std::optional<EitherNorm<T>> input, output;
  };
  struct Attention {
    std::optional<Group> group = {};
    std::string name = {};  // of the group
    std::optional<Linear<T>> query = {}, key = {}, value = {}, query_key_value = {}, out = {};
    std::optional<RMSNorm<T>> query_norm = {}, key_norm = {};
    Norms norms = {};
  };
  struct FeedForward {
    std::optional<Group> group = {};
    std::string name = {};  // of the group
    std::optional<Linear<T>> gate = {}, up = {}, gate_up = {}, down = {};
    Norms norms = {};
  };

  std::size_t width() const { return options_.num_heads * head_dim(); }
  std::size_t num_kv_heads() const {
    return options_.num_kv_heads > 0 ? options_.num_kv_heads : options_.num_heads;
  }
  std::size_t kv_width() const { return num_kv_heads() * head_dim(); }
  std::size_t head_dim() const {
    return options_.head_dim > 0 ? options_.head_dim : options_.d_model / options_.num_heads;
  }
  bool needs(BlockPart part, bool has_projections) const;
  void check_inputs(const ForwardContext<T>& context, const Variable<T>& x) const;
  void check_shape(const char* name, const Variable<T>& x, std::size_t rank) const;
  /// Whether one op projects x and attends.
  bool has_fused_attention(const ForwardContext<T>& context) const;
  void declare(const NamedPart& named, LayerSource<T>& source);

  Variable<T> head_norm(const RMSNorm<T>& norm, const Variable<T>& x) const;
  Variable<T> attend_with_caches(const ForwardContext<T>& context, const Variable<T>& queries,
                                 const Variable<T>& keys, const Variable<T>& values,
                                 const AttentionOptions& options) const;
  Variable<T> attend_to_memory(const ForwardContext<T>& context, const Variable<T>& x) const;
  Variable<T> feed_forward(const Variable<T>& x) const;
  template <class F>
  Variable<T> residual(const Norms& norms, const Variable<T>& x, const F& f, double dropout) const;

  TransformerBlockOptions options_;
  Attention attention_, memory_attention_;
  std::optional<Embedding<T>> position_bias_;
  FeedForward feed_forward_;
};

}  // namespace xgrad
