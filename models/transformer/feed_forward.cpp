#include "feed_forward.hpp"

#include "../../ops/pointwise/dropout.hpp"
#include "../../ops/product/linear.hpp"
#include "../detail/sizes.hpp"

namespace xgrad {

template <class T>
FeedForward<T>::FeedForward(std::size_t d_model, std::size_t d_ff, Activation activation, double dropout)
    : Module<T>("FeedForward"),
      activation_(activation),
      dropout_(detail::checked_probability("FeedForward", "dropout", dropout)),
      linear1_(this->child("linear1", Linear<T>(detail::checked_size("FeedForward", "d_model", d_model),
                                                detail::checked_size("FeedForward", "d_ff", d_ff)))),
      linear2_(this->child("linear2", Linear<T>(d_ff, d_model))) {}

template <class T>
Variable<T> FeedForward<T>::operator()(const Variable<T>& x) const {
  const auto scope = this->scope();
  const Variable<T> inner = activation_ == Activation::relu
                                ? linear_relu(x, linear1_.stored_weight(), linear1_.bias())
                                : activate(activation_, linear1_(x));
  return linear2_(detail::dropout_if_training(inner, dropout_, this->training()));
}

template class FeedForward<float>;
template class FeedForward<double>;

}  // namespace xgrad
