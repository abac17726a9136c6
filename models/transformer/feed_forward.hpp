#pragma once

#include "../layers/activation.hpp"
#include "../layers/linear.hpp"

namespace xgrad {

/// y = linear2(dropout(activation(linear1(x)))), with x and y (..., d_model) and inner width d_ff (Vaswani et
/// al. 2017, arXiv:1706.03762, section 3.3). Throws ValueError for a size of 0.
template <class T>
class FeedForward : public Module<T> {
 public:
  FeedForward(std::size_t d_model, std::size_t d_ff, Activation activation = Activation::relu,
              double dropout = 0);

  Variable<T> operator()(const Variable<T>& x) const;

 private:
  Activation activation_;
  double dropout_;
  Linear<T> linear1_, linear2_;
};

}  // namespace xgrad
