#pragma once

#include "../../base/dims.hpp"
#include "../module.hpp"

namespace xgrad {

/// flatten: the axes from start_dim to end_dim become one, by default all but the batch's.
/// https://pytorch.org/docs/stable/generated/torch.nn.Flatten.html
template <class T>
class Flatten : public Module<T> {
 public:
  explicit Flatten(Int start_dim = 1, Int end_dim = -1);
  Variable<T> operator()(const Variable<T>& x) const;

 private:
  Int start_dim_, end_dim_;
};

}  // namespace xgrad
