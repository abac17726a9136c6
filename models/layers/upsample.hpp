#pragma once

#include "../../ops/window/interpolate.hpp"
#include "../module.hpp"

namespace xgrad {

/// interpolate to scale_factor times the lengths of x, whole numbers, one for all axes behind the channels or
/// one for each. Throws ValueError for a factor below 1.
/// https://pytorch.org/docs/stable/generated/torch.nn.Upsample.html
template <class T>
class Upsample : public Module<T> {
 public:
  explicit Upsample(Dims scale_factor, InterpolateOptions options = {});
  Variable<T> operator()(const Variable<T>& x) const;

 private:
  Dims scale_factor_;
  InterpolateOptions options_;
};

}  // namespace xgrad
