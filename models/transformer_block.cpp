#include "transformer_block.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "../base/error.hpp"
#include "../ops/attention/attention_with_weights.hpp"
#include "../ops/attention/detail/int8_after_attention.hpp"
#include "../ops/attention/detail/packed_self_attention.hpp"
#include "../ops/attention/rotary.hpp"
#include "../ops/index/indexing.hpp"
#include "../ops/pointwise/arithmetic.hpp"
#include "../ops/pointwise/dropout.hpp"
#include "../ops/product/linear.hpp"
#include "../ops/shape/rearrange.hpp"
#include "../ops/shape/shapes.hpp"
#include "detail/sizes.hpp"

namespace xgrad {
namespace {

bool normalizes_input(Residual form) { return form == Residual::pre_norm || form == Residual::both_norms; }
bool normalizes_output(Residual form) {
  return form == Residual::output_norm || form == Residual::both_norms;
}

void check(const char* type, const TransformerBlockOptions& options) {
  detail::checked_size(type, "d_model", options.d_model);
  detail::checked_size(type, "num_heads", options.num_heads);
  detail::checked_size(type, "d_ff", options.d_ff);
  if (options.head_dim == 0 && options.d_model % options.num_heads != 0)
    detail::fail<ValueError>(type, ": d_model must be divisible by num_heads, got ", options.d_model, " and ",
                             options.num_heads);
  if (options.num_kv_heads > 0 && options.num_heads % options.num_kv_heads != 0)
    detail::fail<ValueError>(type, ": num_kv_heads must divide num_heads, got ", options.num_kv_heads,
                             " and ", options.num_heads);
  if (options.norm_offset != 0 && options.norm != NormKind::rms)
    detail::fail<ValueError>(type, ": norm_offset must be 0 unless norm is NormKind::rms, got ",
                             options.norm_offset);
  for (const auto& [name, probability] : {std::pair("attention_dropout", options.attention_dropout),
                                          {"attention_output_dropout", options.attention_output_dropout},
                                          {"inner_dropout", options.inner_dropout},
                                          {"output_dropout", options.output_dropout}})
    detail::checked_probability(type, name, probability);
}

}  // namespace

template <class T>
Variable<T> EitherNorm<T>::operator()(const Variable<T>& x) const {
  return std::visit([&](const auto& norm) { return norm(x); }, norm_);
}

template <class T>
Variable<T> EitherNorm<T>::operator()(const Variable<T>& x, const Variable<T>& residual) const {
  if (const LayerNorm<T>* const norm = layer()) return (*norm)(x, residual);
  return (*this)(x + residual);
}

template <class T>
TransformerBlock<T>::TransformerBlock(const char* type, const TransformerBlockOptions& options)
    : Module<T>(type), options_(options) {
  check(type, options);
}

template <class T>
TransformerBlock<T>::TransformerBlock(const TransformerBlockOptions& options, BlockNames names,
                                      LayerSource<T>& source)
    : TransformerBlock("TransformerBlock", options) {
  declare(names, source);
}

template <class T>
bool TransformerBlock<T>::needs(BlockPart part, bool has_projections) const {
  const bool has_output_norms = normalizes_output(options_.residual);
  switch (part) {
    case BlockPart::attention:
    case BlockPart::out:
    case BlockPart::feed_forward:
    case BlockPart::up:
    case BlockPart::down:
      return true;
    case BlockPart::query:
    case BlockPart::key:
    case BlockPart::value:
    case BlockPart::query_key_value:
      return has_projections;
    case BlockPart::query_norm:
    case BlockPart::key_norm:
      return has_projections && options_.query_key_norm != QueryKeyNorm::none;
    case BlockPart::position_bias:
      return options_.position_bias_rows > 0;
    case BlockPart::attention_norm:
      return options_.attention_norm && options_.residual != Residual::output_norm;
    case BlockPart::attention_output_norm:
    case BlockPart::feed_forward_output_norm:
      return has_output_norms;
    case BlockPart::memory_attention:
    case BlockPart::memory_query:
    case BlockPart::memory_key:
    case BlockPart::memory_value:
    case BlockPart::memory_out:
      return options_.has_memory;
    case BlockPart::memory_norm:
      return options_.has_memory && options_.residual != Residual::output_norm;
    case BlockPart::memory_output_norm:
      return options_.has_memory && has_output_norms;
    case BlockPart::gate:
    case BlockPart::gate_up:
      return options_.is_gated;
    case BlockPart::feed_forward_norm:
      break;
  }
  return options_.residual != Residual::output_norm;
}

template <class T>
void TransformerBlock<T>::declare(BlockNames names, LayerSource<T>& source, bool has_projections) {
  std::vector<BlockPart> named;
  for (const NamedPart& one : names) {
    if (!needs(one.part, has_projections)) continue;
    declare(one, source);
    named.push_back(one.part);
  }
  const auto has = [&](std::initializer_list<BlockPart> parts) {
    return std::all_of(parts.begin(), parts.end(), [&](BlockPart part) {
      return !needs(part, has_projections) || std::find(named.begin(), named.end(), part) != named.end();
    });
  };
  using enum BlockPart;
  const auto fail = [this](const char* what) { detail::fail<ValueError>(this->type(), ": ", what); };
  if (has_projections && has({query, key, value}) == has({query_key_value}))
    fail("either query, key and value must have names, or query_key_value");
  if (options_.is_gated && has({gate, up}) == has({gate_up}))
    fail("either gate and up must have names, or gate_up");
  if (!options_.is_gated && !has({up})) fail("up must have a name");
  const std::pair<BlockPart, const char*> others[]{{out, "out"},
                                                   {down, "down"},
                                                   {query_norm, "query_norm"},
                                                   {key_norm, "key_norm"},
                                                   {position_bias, "position_bias"},
                                                   {attention_norm, "attention_norm"},
                                                   {attention_output_norm, "attention_output_norm"},
                                                   {memory_query, "memory_query"},
                                                   {memory_key, "memory_key"},
                                                   {memory_value, "memory_value"},
                                                   {memory_out, "memory_out"},
                                                   {memory_norm, "memory_norm"},
                                                   {memory_output_norm, "memory_output_norm"},
                                                   {feed_forward_norm, "feed_forward_norm"},
                                                   {feed_forward_output_norm, "feed_forward_output_norm"}};
  for (const auto& [part, name] : others)
    if (!has({part})) fail((std::string(name) + " must have a name").c_str());
}

template <class T>
void TransformerBlock<T>::declare(const NamedPart& named, LayerSource<T>& source) {
  const TransformerBlockOptions& o = options_;
  const BlockPart part = named.part;
  const std::string name = named.name;
  const bool is_of_memory = part >= BlockPart::memory_attention && part <= BlockPart::memory_output_norm;
  Attention& attention = is_of_memory ? memory_attention_ : attention_;
  FeedForward& network = feed_forward_;
  // In the module that holds the part, if there is one; make() gets the name in the block.
  const auto declared = [&](const auto& holder, const auto& make) {
    if (!holder.group) return this->child(name, make(name));
    return Group(*holder.group).child(name, make(detail::join({holder.name, ".", name})));
  };
  const auto linear = [&](const auto& holder, std::size_t in, std::size_t out, bool bias) {
    return declared(holder, [&](const std::string& full) { return source.linear(full, in, out, bias); });
  };
  const auto norm = [&]() -> EitherNorm<T> {
    if (o.norm == NormKind::rms)
      return this->child(name, source.rms_norm(name, o.d_model, o.eps, o.norm_offset));
    return this->child(name, source.layer_norm(name, o.d_model, o.eps, o.norm_bias));
  };
  const auto query_key_norm = [&](std::size_t all) {
    return declared(attention, [&](const std::string& full) {
      return source.rms_norm(full, o.query_key_norm == QueryKeyNorm::head ? head_dim() : all, o.eps,
                             o.norm_offset);
    });
  };
  switch (part) {
    case BlockPart::attention:
    case BlockPart::memory_attention:
      attention.group = this->child(name, Group("MultiHeadAttention"));
      attention.name = name;
      break;
    case BlockPart::query:
    case BlockPart::memory_query:
      attention.query = linear(attention, o.d_model, width(), o.qkv_bias);
      break;
    case BlockPart::key:
    case BlockPart::memory_key:
      attention.key = linear(attention, o.d_model, kv_width(), o.qkv_bias);
      break;
    case BlockPart::value:
    case BlockPart::memory_value:
      attention.value = linear(attention, o.d_model, kv_width(), o.qkv_bias);
      break;
    case BlockPart::query_key_value:
      attention.query_key_value = linear(attention, o.d_model, width() + 2 * kv_width(), o.qkv_bias);
      break;
    case BlockPart::out:
    case BlockPart::memory_out:
      attention.out = linear(attention, width(), o.d_model, o.out_bias);
      break;
    case BlockPart::query_norm:
      attention.query_norm = query_key_norm(width());
      break;
    case BlockPart::key_norm:
      attention.key_norm = query_key_norm(kv_width());
      break;
    case BlockPart::position_bias:
      position_bias_ = this->child(name, source.embedding(name, o.position_bias_rows, o.num_heads));
      break;
    case BlockPart::attention_norm:
    case BlockPart::memory_norm:
      attention.norms.input = norm();
      break;
    case BlockPart::attention_output_norm:
    case BlockPart::memory_output_norm:
      attention.norms.output = norm();
      break;
    case BlockPart::feed_forward:
      network.group = this->child(name, Group("FeedForward"));
      network.name = name;
      break;
    case BlockPart::gate:
      network.gate = linear(network, o.d_model, o.d_ff, o.up_bias);
      break;
    case BlockPart::up:
      network.up = linear(network, o.d_model, o.d_ff, o.up_bias);
      break;
    case BlockPart::gate_up:
      network.gate_up = linear(network, o.d_model, 2 * o.d_ff, o.up_bias);
      break;
    case BlockPart::down:
      network.down = linear(network, o.d_ff, o.d_model, o.down_bias);
      break;
    case BlockPart::feed_forward_norm:
      network.norms.input = norm();
      break;
    case BlockPart::feed_forward_output_norm:
      network.norms.output = norm();
      break;
  }
}

template <class T>
void TransformerBlock<T>::check_inputs(const ForwardContext<T>& context, const Variable<T>& x) const {
  const bool is_packed = !context.packed_lengths.empty();
  const bool is_cached = !context.caches.empty() || !context.new_tokens.empty();
  check_shape("x", x, is_packed ? 2 : 3);
  if (options_.has_memory) check_shape("memory", context.memory, 3);
  if (options_.rotary && *options_.rotary >= context.rotary.size())
    detail::fail<ValueError>(this->type(), ": the context must have the rotary table ", *options_.rotary,
                             ", got ", context.rotary.size(), " tables");
  if (is_packed) {
    const auto& lengths = context.packed_lengths;
    if (is_cached || context.mask.shape() != nullptr || options_.has_memory || !has_fused_attention(context))
      detail::fail<ValueError>(
          this->type(),
          ": packed rows need fused attention, without a mask, a memory, caches, positions "
          "in attention and kept weights");
    if (std::accumulate(lengths.begin(), lengths.end(), std::size_t{0}) != x.shape(0))
      detail::fail<ShapeError>(this->type(), ": packed_lengths must add up to the rows of x ", x.shape());
  }
  if (is_cached) {
    const auto& counts = context.new_tokens;
    if (context.mask.shape() != nullptr || context.attentions != nullptr)
      detail::fail<ValueError>(this->type(), ": caches need attention without a mask and kept weights");
    if (counts.size() != context.caches.size() || x.shape(0) != 1 ||
        std::accumulate(counts.begin(), counts.end(), std::size_t{0}) != x.shape(1))
      detail::fail<ShapeError>(this->type(), ": new_tokens must be one number for each of the ",
                               context.caches.size(), " caches, and add up to the rows of x ", x.shape());
  }
}

template <class T>
bool TransformerBlock<T>::has_fused_attention(const ForwardContext<T>& context) const {
  return attention_.query && !options_.rotary && !attention_.query_norm && context.caches.empty() &&
         context.attentions == nullptr;
}

template <class T>
void TransformerBlock<T>::check_shape(const char* name, const Variable<T>& x, std::size_t rank) const {
  if (x.defined() && x.dimension() == rank && x.shape().back() == options_.d_model) return;
  detail::fail<ShapeError>(this->type(), ": ", name, " must be (", rank == 3 ? "batch, length" : "rows", ", ",
                           options_.d_model, "), got ",
                           x.defined() ? to_string(x.shape()) : "an undefined Variable");
}

template <class T>
AttentionOptions TransformerBlock<T>::attention_options() const {
  AttentionOptions options{.dropout_p = this->training() ? options_.attention_dropout : 0,
                           .is_causal = options_.is_causal,
                           .scale = options_.scale,
                           .num_heads = options_.num_heads,
                           .num_kv_heads = options_.num_kv_heads};
  options.softcap = options_.softcap;
  options.window_left = options_.window;
  if (!options_.is_causal) options.window_right = options_.window;
  return options;
}

template <class T>
Variable<T> TransformerBlock<T>::drop(const Variable<T>& x, double probability) const {
  return detail::dropout_if_training(x, probability, this->training());
}

template <class T>
Variable<T> TransformerBlock<T>::attend(std::vector<Variable<T>>* weights, const AttentionMask<T>& mask,
                                        const Variable<T>& queries, const Variable<T>& keys,
                                        const Variable<T>& values, const AttentionOptions& options) {
  if (weights == nullptr) return scaled_dot_product_attention(queries, keys, values, mask, options);
  AttentionResult<T> result = attention_with_weights(queries, keys, values, mask, options);
  weights->push_back(std::move(result.weights));
  return std::move(result.output);
}

template <class T>
Variable<T> TransformerBlock<T>::head_norm(const RMSNorm<T>& norm, const Variable<T>& x) const {
  if (options_.query_key_norm == QueryKeyNorm::all) return norm(x);
  Shape heads(x.shape().begin(), x.shape().end());
  heads.back() /= head_dim();
  heads.push_back(head_dim());
  return reshape(norm(reshape(x, heads)), x.shape());
}

template <class T>
Variable<T> TransformerBlock<T>::attend_with_caches(const ForwardContext<T>& context,
                                                    const Variable<T>& queries, const Variable<T>& keys,
                                                    const Variable<T>& values,
                                                    const AttentionOptions& options) const {
  const auto& counts = context.new_tokens;
  if (counts.size() == 1) return context.caches[0].attend(context.slot, queries, keys, values, options);
  std::vector<Variable<T>> results;
  std::size_t first = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::size_t count = counts[i];
    const auto rows = [first, count](const Variable<T>& of_all) { return narrow(of_all, 1, first, count); };
    results.push_back(
        context.caches[i].attend(context.slot, rows(queries), rows(keys), rows(values), options));
    first += count;
  }
  return cat(results, 1);
}

template <class T>
Variable<T> TransformerBlock<T>::attention(const ForwardContext<T>& context, const Variable<T>& x) const {
  const AttentionOptions options = attention_options();
  const Attention& a = attention_;
  if (has_fused_attention(context)) {
    const auto &query = a.query->projection(), &key = a.key->projection(), &value = a.value->projection();
    if (!context.packed_lengths.empty())
      return detail::packed_self_attention(x, query, key, value, context.packed_lengths, options);
    return self_attention(x, query, key, value, context.mask, options);
  }
  Variable<T> queries, keys, values;
  if (a.query_key_value) {
    const Variable<T> all = (*a.query_key_value)(x);
    queries = narrow(all, -1, 0, width());
    keys = narrow(all, -1, width(), kv_width());
    values = narrow(all, -1, width() + kv_width(), kv_width());
  } else {
    values = (*a.value)(x), keys = (*a.key)(x), queries = (*a.query)(x);
  }
  if (a.query_norm) {
    queries = head_norm(*a.query_norm, queries);
    keys = head_norm(*a.key_norm, keys);
  }
  if (options_.rotary) {
    const auto& [cos, sin] = context.rotary.at(*options_.rotary);
    queries = rotary(queries, cos, sin, {.num_heads = options_.num_heads});
    keys = rotary(keys, cos, sin, {.num_heads = num_kv_heads()});
  }
  if (!context.caches.empty()) return attend_with_caches(context, queries, keys, values, options);
  return attend(context.attentions, context.mask, queries, keys, values, options);
}

template <class T>
Variable<T> TransformerBlock<T>::attend_to_memory(const ForwardContext<T>& context,
                                                  const Variable<T>& x) const {
  AttentionOptions options = attention_options();
  options.is_causal = false;
  options.window_left = options.window_right = std::nullopt;
  const Attention& a = memory_attention_;
  const Variable<T> values = (*a.value)(context.memory), keys = (*a.key)(context.memory);
  return attend(context.memory_attentions, context.memory_mask, (*a.query)(x), keys, values, options);
}

template <class T>
Variable<T> TransformerBlock<T>::feed_forward(const Variable<T>& x) const {
  const FeedForward& network = feed_forward_;
  Variable<T> inner;
  if (network.gate_up) {
    const Variable<T> both = (*network.gate_up)(x);
    inner = activate_gated(options_.activation, narrow(both, -1, 0, options_.d_ff),
                           narrow(both, -1, options_.d_ff, options_.d_ff));
  } else if (network.gate) {
    inner = activate_gated(options_.activation, (*network.gate)(x), (*network.up)(x));
  } else if (options_.activation == Activation::relu) {
    inner = linear_relu(x, network.up->stored_weight(), network.up->bias());
  } else {
    inner = activate(options_.activation, (*network.up)(x));
  }
  return (*network.down)(drop(inner, options_.inner_dropout));
}

template <class T>
template <class F>
Variable<T> TransformerBlock<T>::residual(const Norms& norms, const Variable<T>& x, const F& f,
                                          double dropout) const {
  if (options_.residual == Residual::none || options_.residual == Residual::post_norm) {
    const Variable<T> y = drop(f(x), dropout);
    if (options_.residual == Residual::none) return norms.input ? (*norms.input)(y) : y;
    return norms.input ? (*norms.input)(y, x) : x + y;
  }
  const bool normalizes = normalizes_input(options_.residual) && norms.input;
  const Variable<T> y = f(normalizes ? (*norms.input)(x) : x);
  return x + drop(norms.output ? (*norms.output)(y) : y, dropout);
}

template <class T>
Variable<T> TransformerBlock<T>::operator()(const ForwardContext<T>& context, const Variable<T>& x) const {
  const auto scope = this->scope();
  check_inputs(context, x);
  const Attention& a = attention_;
  const FeedForward& network = feed_forward_;
  if constexpr (std::is_same_v<T, float>) {
    const auto has_integers = [](const std::optional<Linear<T>>& layer) {
      return layer && layer->stored_weight().dtype() == DType::I8;
    };
    const bool is_int8 = has_integers(a.out) && has_integers(network.up) && has_integers(network.down) &&
                         !network.gate && !options_.has_memory && options_.residual == Residual::post_norm &&
                         a.norms.input && a.norms.input->layer() && options_.activation == Activation::gelu &&
                         !this->training();
    if (is_int8) {
      const auto linear = [](const Linear<T>& layer) -> detail::Int8LinearLayer {
        return {layer.stored_weight(), layer.bias()};
      };
      const auto norm = [](const EitherNorm<T>& either) -> detail::NormLayer {
        return {either.layer()->weight(), either.layer()->bias(), either.layer()->eps()};
      };
      return detail::int8_after_attention(attention(context, x), x,
                                          {linear(*a.out), norm(*a.norms.input), linear(*network.up),
                                           linear(*network.down), norm(*network.norms.input)});
    }
  }
  const auto within = [](const std::optional<Group>& group, const auto& compute) {
    if (!group) return compute();
    const auto of_group = group->scope();
    return compute();
  };
  Variable<T> y = residual(
      a.norms, x,
      [&](const Variable<T>& input) {
        return within(a.group, [&] { return (*a.out)(attention(context, input)); });
      },
      options_.attention_output_dropout);
  if (options_.has_memory) {
    const Attention& of_memory = memory_attention_;
    y = residual(
        of_memory.norms, y,
        [&](const Variable<T>& input) {
          return within(of_memory.group, [&] { return (*of_memory.out)(attend_to_memory(context, input)); });
        },
        options_.attention_output_dropout);
  }
  return residual(
      network.norms, y,
      [&](const Variable<T>& input) { return within(network.group, [&] { return feed_forward(input); }); },
      options_.output_dropout);
}

template class EitherNorm<float>;
template class EitherNorm<double>;
template class TransformerBlock<float>;
template class TransformerBlock<double>;

}  // namespace xgrad
