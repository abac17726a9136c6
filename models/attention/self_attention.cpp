#include "self_attention.hpp"

#include "../detail/sizes.hpp"

namespace xgrad {

template <class T>
SelfAttention<T>::SelfAttention(std::size_t d_model, Int row_dim, Int col_dim)
    : Module<T>("SelfAttention"),
      row_dim_(row_dim),
      col_dim_(col_dim),
      W_q_(this->child("W_q",
                       Linear<T>(detail::checked_size("SelfAttention", "d_model", d_model), d_model, false))),
      W_k_(this->child("W_k", Linear<T>(d_model, d_model, false))),
      W_v_(this->child("W_v", Linear<T>(d_model, d_model, false))) {}

template <class T>
void SelfAttention<T>::check(const Variable<T>& x) const {
  const std::size_t row = detail::normalize_axis("SelfAttention", row_dim_, x.shape());
  const std::size_t col = detail::normalize_axis("SelfAttention", col_dim_, x.shape());
  if (row + 2 != x.dimension() || col + 1 != x.dimension()) {
    detail::fail<ShapeError>("SelfAttention: row_dim and col_dim must be the last two axes of x, got ",
                             row_dim_, ", ", col_dim_, " and x ", x.shape());
  }
}

template <class T>
Variable<T> SelfAttention<T>::operator()(const Variable<T>& x) const {
  const auto scope = this->scope();
  check(x);
  return scaled_dot_product_attention(W_q_(x), W_k_(x), W_v_(x));
}

template <class T>
AttentionResult<T> SelfAttention<T>::with_weights(const Variable<T>& x) const {
  const auto scope = this->scope();
  check(x);
  return attention_with_weights(W_q_(x), W_k_(x), W_v_(x));
}

template class SelfAttention<float>;
template class SelfAttention<double>;

}  // namespace xgrad
