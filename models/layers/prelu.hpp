#pragma once

#include "../module.hpp"

namespace xgrad {

/// prelu with a weight of `num_parameters`, 1 or the number of channels, each `init` at first. Throws
/// ValueError for none. https://pytorch.org/docs/stable/generated/torch.nn.PReLU.html
template <class T>
class PReLU : public Module<T> {
 public:
  explicit PReLU(std::size_t num_parameters = 1, std::type_identity_t<T> init = T(0.25));
  Variable<T> operator()(const Variable<T>& x) const;

  const Variable<T>& weight() const& { return weight_; }
  Variable<T> weight() && { return weight_; }

 private:
  Variable<T> weight_;
};

}  // namespace xgrad
