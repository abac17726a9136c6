#include "multi_head_attention.hpp"

#include "../../base/random.hpp"
#include "../../ops/attention/self_attention.hpp"
#include "../detail/sizes.hpp"
#include "../detail/xavier.hpp"

namespace xgrad {
namespace {

constexpr const char* name = "MultiHeadAttention";

void check_heads(std::size_t d_model, std::size_t heads) {
  detail::checked_size(name, "d_model", d_model);
  detail::checked_size(name, "heads", heads);
  if (d_model % heads != 0) {
    detail::fail<ValueError>(name, ": d_model must be divisible by heads, got ", d_model, " and ", heads);
  }
}

template <class T>
void check_inputs(const Variable<T>& q, const Variable<T>& k, const Variable<T>& v) {
  if (q.dimension() != 3 || k.dimension() != 3 || v.dimension() != 3) {
    detail::fail<ShapeError>(name, ": q, k and v must be (batch, seq, d_model), got q ", q.shape(), ", k ",
                             k.shape(), " and v ", v.shape());
  }
}

/// In the order of PyTorch's draws, which begin with the output.
template <class T>
detail::AttentionProjections<T> pytorch_projections(std::size_t size, bool bias) {
  const auto zeros = [&]() -> std::optional<Array<T>> {
    if (!bias) return std::nullopt;
    return Array<T>(xt::zeros<T>({size}));
  };
  const Linear<T> out(size, size, bias);
  const double bound = detail::xavier_bound(size, 3 * size);
  const auto drawn = [&] { return Linear<T>(uniform<T>({size, size}, -bound, bound), zeros()); };
  Linear<T> q = drawn(), k = drawn(), v = drawn();
  return {std::move(q), std::move(k), std::move(v), Linear<T>(out.weight().value(), zeros())};
}

}  // namespace

template <class T>
detail::AttentionProjections<T> detail::attention_projections(std::size_t size, bool bias,
                                                              InitialWeights initial) {
  if (initial == InitialWeights::pytorch) return pytorch_projections<T>(size, bias);
  Linear<T> q(size, size, bias), k(size, size, bias), v(size, size, bias);
  return {std::move(q), std::move(k), std::move(v), Linear<T>(size, size, bias)};
}

template <class T>
MultiHeadAttention<T>::MultiHeadAttention(std::size_t d_model, std::size_t heads,
                                          MultiHeadAttentionOptions options)
    : MultiHeadAttention((check_heads(d_model, heads),
                          detail::attention_projections<T>(d_model, options.bias, options.initial)),
                         heads, options) {}

template <class T>
MultiHeadAttention<T>::MultiHeadAttention(detail::AttentionProjections<T> projections, std::size_t heads,
                                          const MultiHeadAttentionOptions& options)
    : Module<T>(name),
      heads_(heads),
      dropout_(detail::checked_probability(name, "dropout", options.dropout)),
      is_causal_(options.is_causal),
      W_Q_(this->child("W_Q", std::move(projections.q))),
      W_K_(this->child("W_K", std::move(projections.k))),
      W_V_(this->child("W_V", std::move(projections.v))),
      out_proj_(this->child("out_proj", std::move(projections.out))) {}

template <class T>
AttentionOptions MultiHeadAttention<T>::attention_options() const {
  return {.dropout_p = this->training() ? dropout_ : 0, .is_causal = is_causal_, .num_heads = heads_};
}

template <class T>
Variable<T> MultiHeadAttention<T>::operator()(const Variable<T>& x, const AttentionMask<T>& mask) const {
  const auto scope = this->scope();
  check_inputs(x, x, x);
  return out_proj_(
      self_attention(x, W_Q_.projection(), W_K_.projection(), W_V_.projection(), mask, attention_options()));
}

template <class T>
Variable<T> MultiHeadAttention<T>::operator()(const Variable<T>& q, const Variable<T>& k,
                                              const Variable<T>& v, const AttentionMask<T>& mask) const {
  const auto scope = this->scope();
  check_inputs(q, k, v);
  return out_proj_(scaled_dot_product_attention(W_Q_(q), W_K_(k), W_V_(v), mask, attention_options()));
}

template <class T>
AttentionResult<T> MultiHeadAttention<T>::with_weights(const Variable<T>& x,
                                                       const AttentionMask<T>& mask) const {
  return with_weights(x, x, x, mask);
}

template <class T>
AttentionResult<T> MultiHeadAttention<T>::with_weights(const Variable<T>& q, const Variable<T>& k,
                                                       const Variable<T>& v,
                                                       const AttentionMask<T>& mask) const {
  const auto scope = this->scope();
  check_inputs(q, k, v);
  const Variable<T> queries = W_Q_(q);
  AttentionResult<T> result = attention_with_weights(queries, W_K_(k), W_V_(v), mask, attention_options());
  result.output = out_proj_(result.output);
  return result;
}

template class MultiHeadAttention<float>;
template class MultiHeadAttention<double>;
template detail::AttentionProjections<float> detail::attention_projections(std::size_t, bool, InitialWeights);
template detail::AttentionProjections<double> detail::attention_projections(std::size_t, bool,
                                                                            InitialWeights);

}  // namespace xgrad
