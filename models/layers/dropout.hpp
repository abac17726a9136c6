#pragma once

#include "../module.hpp"

namespace xgrad {

/// In training, zeroes each element with probability p and multiplies the others by 1 / (1 - p); otherwise
/// returns x itself. Throws ValueError for p outside [0, 1].
/// https://pytorch.org/docs/stable/generated/torch.nn.Dropout.html
template <class T>
class Dropout : public Module<T> {
 public:
  explicit Dropout(double p = 0.5);

  Variable<T> operator()(const Variable<T>& x) const;

 private:
  double p_;
};

}  // namespace xgrad
