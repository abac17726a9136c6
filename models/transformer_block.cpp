#include "transformer_block.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "../base/error.hpp"
#include "../ops/attention/attention_with_weights.hpp"
#include "../ops/attention/detail/int8_after_attention.hpp"
#include "../ops/attention/detail/packed_self_attention.hpp"
#include "../ops/attention/rotary.hpp"
#include "../ops/attention/self_attention.hpp"
#include "../ops/index/indexing.hpp"
#include "../ops/pointwise/arithmetic.hpp"
#include "../ops/pointwise/dropout.hpp"
#include "../ops/product/linear.hpp"
#include "../ops/shape/rearrange.hpp"
#include "../ops/shape/shapes.hpp"
#include "detail/sizes.hpp"

namespace xgrad {
namespace {

constexpr const char* type = "TransformerBlock";

template <class T>
Projection<T> projection(const Linear<T>& linear) {
  const std::optional<Int8Weight>& integers = linear.int8_weight();
  return {linear.weight(), linear.bias(), integers ? &*integers : nullptr};
}

bool normalizes_input(Residual form) { return form == Residual::pre_norm || form == Residual::both_norms; }
bool normalizes_output(Residual form) {
  return form == Residual::output_norm || form == Residual::both_norms;
}

void check(const TransformerBlockOptions& options) {
  detail::checked_size(type, "d_model", options.d_model);
  detail::checked_size(type, "num_heads", options.num_heads);
  detail::checked_size(type, "d_ff", options.d_ff);
  if (options.head_dim == 0 && options.d_model % options.num_heads != 0)
    detail::fail<ValueError>(type, ": d_model must be divisible by num_heads, got ", options.d_model, " and ",
                             options.num_heads);
  if (options.num_kv_heads > 0 && options.num_heads % options.num_kv_heads != 0)
    detail::fail<ValueError>(type, ": num_kv_heads must divide num_heads, got ", options.num_kv_heads,
                             " and ", options.num_heads);
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
TransformerBlock<T>::TransformerBlock(const TransformerBlockOptions& options)
    : Module<T>(type), options_(options) {
  check(options);
}

template <class T>
TransformerBlock<T>::TransformerBlock(const TransformerBlockOptions& options, BlockNames names,
                                      LayerSource<T>& source)
    : TransformerBlock(options) {
  declare(names, source, true);
}

template <class T>
bool TransformerBlock<T>::needs(BlockPart part, bool has_projections) const {
  switch (part) {
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
    case BlockPart::feed_forward_norm:
      return options_.residual != Residual::output_norm;
    case BlockPart::attention_output_norm:
    case BlockPart::feed_forward_output_norm:
      return normalizes_output(options_.residual);
    case BlockPart::gate:
    case BlockPart::gate_up:
      return options_.is_gated;
    case BlockPart::out:
    case BlockPart::up:
    case BlockPart::down:
      break;
  }
  return true;
}

template <class T>
void TransformerBlock<T>::declare(BlockNames names, LayerSource<T>& source, bool has_projections) {
  for (const auto& [part, name] : names)
    if (needs(part, has_projections)) declare(part, name, source);
  const bool complete = out_ && down_ && (up_ || gate_up_) && (!options_.is_gated || gate_ || gate_up_) &&
                        (!has_projections || query_key_value_ || (query_ && key_ && value_));
  if (!complete) detail::fail<ValueError>(type, ": each part of the block must have a name");
}

template <class T>
EitherNorm<T> TransformerBlock<T>::norm(const std::string& name, std::size_t size, LayerSource<T>& source) {
  if (options_.norm == NormKind::rms) return this->child(name, source.rms_norm(name, size, options_.eps));
  return this->child(name, source.layer_norm(name, size, options_.eps, options_.norm_bias));
}

template <class T>
void TransformerBlock<T>::declare(BlockPart part, const std::string& name, LayerSource<T>& source) {
  const TransformerBlockOptions& o = options_;
  const auto linear = [&](std::size_t in, std::size_t out, bool bias) {
    return this->child(name, source.linear(name, in, out, bias));
  };
  switch (part) {
    case BlockPart::query:
      query_ = linear(o.d_model, width(), o.qkv_bias);
      break;
    case BlockPart::key:
      key_ = linear(o.d_model, kv_width(), o.qkv_bias);
      break;
    case BlockPart::value:
      value_ = linear(o.d_model, kv_width(), o.qkv_bias);
      break;
    case BlockPart::query_key_value:
      query_key_value_ = linear(o.d_model, width() + 2 * kv_width(), o.qkv_bias);
      break;
    case BlockPart::out:
      out_ = linear(width(), o.d_model, o.out_bias);
      break;
    case BlockPart::query_norm:
    case BlockPart::key_norm: {
      const bool is_query = part == BlockPart::query_norm;
      const std::size_t all = is_query ? width() : kv_width();
      (is_query ? query_norm_ : key_norm_) = this->child(
          name, source.rms_norm(name, o.query_key_norm == QueryKeyNorm::head ? head_dim() : all, o.eps));
      break;
    }
    case BlockPart::position_bias:
      position_bias_ = this->child(name, source.embedding(name, o.position_bias_rows, o.num_heads));
      break;
    case BlockPart::attention_norm:
      attention_norms_.input = norm(name, o.d_model, source);
      break;
    case BlockPart::attention_output_norm:
      attention_norms_.output = norm(name, o.d_model, source);
      break;
    case BlockPart::gate:
      gate_ = linear(o.d_model, o.d_ff, o.up_bias);
      break;
    case BlockPart::up:
      up_ = linear(o.d_model, o.d_ff, o.up_bias);
      break;
    case BlockPart::gate_up:
      gate_up_ = linear(o.d_model, 2 * o.d_ff, o.up_bias);
      break;
    case BlockPart::down:
      down_ = linear(o.d_ff, o.d_model, o.down_bias);
      break;
    case BlockPart::feed_forward_norm:
      feed_forward_norms_.input = norm(name, o.d_model, source);
      break;
    case BlockPart::feed_forward_output_norm:
      feed_forward_norms_.output = norm(name, o.d_model, source);
      break;
  }
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
Variable<T> TransformerBlock<T>::attend(const ForwardContext<T>& context, const AttentionMask<T>& mask,
                                        const Variable<T>& queries, const Variable<T>& keys,
                                        const Variable<T>& values, const AttentionOptions& options) {
  if (context.attentions == nullptr)
    return scaled_dot_product_attention(queries, keys, values, mask, options);
  AttentionResult<T> result = attention_with_weights(queries, keys, values, mask, options);
  context.attentions->push_back(std::move(result.weights));
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
  const bool fused = query_ && !options_.rotary && !query_norm_ && !query_->bfloat16_weight() &&
                     context.caches.empty() && context.attentions == nullptr;
  if (fused) {
    const Projection<T> q = projection(*query_), k = projection(*key_), v = projection(*value_);
    if (!context.packed_lengths.empty())
      return detail::packed_self_attention(x, q, k, v, context.packed_lengths, options);
    return self_attention(x, q, k, v, context.mask, options);
  }
  Variable<T> queries, keys, values;
  if (query_key_value_) {
    const Variable<T> all = (*query_key_value_)(x);
    queries = narrow(all, -1, 0, width());
    keys = narrow(all, -1, width(), kv_width());
    values = narrow(all, -1, width() + kv_width(), kv_width());
  } else {
    queries = (*query_)(x), keys = (*key_)(x), values = (*value_)(x);
  }
  if (query_norm_) {
    queries = head_norm(*query_norm_, queries);
    keys = head_norm(*key_norm_, keys);
  }
  if (options_.rotary) {
    const auto& [cos, sin] = context.rotary.at(*options_.rotary);
    queries = rotary(queries, cos, sin, {.num_heads = options_.num_heads});
    keys = rotary(keys, cos, sin,
                  {.num_heads = options_.num_kv_heads > 0 ? options_.num_kv_heads : options_.num_heads});
  }
  if (!context.caches.empty()) return attend_with_caches(context, queries, keys, values, options);
  return attend(context, context.mask, queries, keys, values, options);
}

template <class T>
Variable<T> TransformerBlock<T>::feed_forward(const Variable<T>& x) const {
  Variable<T> inner;
  if (gate_up_) {
    const Variable<T> both = (*gate_up_)(x);
    inner = activate_gated(options_.activation, narrow(both, -1, 0, options_.d_ff),
                           narrow(both, -1, options_.d_ff, options_.d_ff));
  } else if (gate_) {
    inner = activate_gated(options_.activation, (*gate_)(x), (*up_)(x));
  } else if (options_.activation == Activation::relu && up_->weight().defined()) {
    inner = linear_relu(x, up_->weight(), up_->bias());
  } else {
    inner = activate(options_.activation, (*up_)(x));
  }
  return (*down_)(drop(inner, options_.inner_dropout));
}

template <class T>
template <class F>
Variable<T> TransformerBlock<T>::residual(const Norms& norms, const Variable<T>& x, const F& f,
                                          double dropout) const {
  if (options_.residual == Residual::post_norm) {
    const Variable<T> y = drop(f(x), dropout);
    return norms.input ? (*norms.input)(y, x) : x + y;
  }
  const bool normalizes = normalizes_input(options_.residual) && norms.input;
  const Variable<T> y = f(normalizes ? (*norms.input)(x) : x);
  return x + drop(norms.output ? (*norms.output)(y) : y, dropout);
}

template <class T>
Variable<T> TransformerBlock<T>::operator()(const ForwardContext<T>& context, const Variable<T>& x) const {
  const auto scope = this->scope();
  if constexpr (std::is_same_v<T, float>) {
    const bool is_int8 = out_->int8_weight() && up_ && up_->int8_weight() && down_->int8_weight() && !gate_ &&
                         options_.residual == Residual::post_norm && attention_norms_.input->layer() &&
                         options_.activation == Activation::gelu && !this->training();
    if (is_int8) {
      const auto linear = [](const Linear<T>& layer) -> detail::Int8LinearLayer {
        return {*layer.int8_weight(), layer.bias()};
      };
      const auto norm = [](const EitherNorm<T>& either) -> detail::NormLayer {
        return {either.layer()->weight(), either.layer()->bias(), either.layer()->eps()};
      };
      return detail::int8_after_attention(attention(context, x), x,
                                          {linear(*out_), norm(*attention_norms_.input), linear(*up_),
                                           linear(*down_), norm(*feed_forward_norms_.input)});
    }
  }
  const Variable<T> y = residual(
      attention_norms_, x, [&](const Variable<T>& input) { return (*out_)(attention(context, input)); },
      options_.attention_output_dropout);
  return residual(
      feed_forward_norms_, y, [&](const Variable<T>& input) { return feed_forward(input); },
      options_.output_dropout);
}

template class EitherNorm<float>;
template class EitherNorm<double>;
template class TransformerBlock<float>;
template class TransformerBlock<double>;

}  // namespace xgrad
