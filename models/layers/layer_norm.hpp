#pragma once

#include <optional>

#include "../../base/dims.hpp"
#include "../module.hpp"

namespace xgrad {

/// y = (x - mean) / sqrt(variance + eps) * weight + bias over the last axes, whose lengths are
/// `normalized_shape` (Ba et al. 2016, arXiv:1607.06450); x and y (..., normalized_shape).
///
/// weight is initialized to ones, bias to zeros, both of that shape. Throws ValueError for no lengths, a
/// length below 1 or a negative eps. https://pytorch.org/docs/stable/generated/torch.nn.LayerNorm.html
template <class T>
class LayerNorm : public Module<T> {
 public:
  explicit LayerNorm(Dims normalized_shape, double eps = 1e-5);

  /// With the given weight and bias, whose shape is `normalized_shape`, or without a bias. Throws ShapeError
  /// unless their shapes are equal.
  LayerNorm(Array<T> weight, std::optional<Array<T>> bias, double eps = 1e-5);

  Variable<T> operator()(const Variable<T>& x) const;
  /// The layer norm of x + residual.
  Variable<T> operator()(const Variable<T>& x, const Variable<T>& residual) const;

  const Variable<T>& weight() const& { return weight_; }
  Variable<T> weight() && { return weight_; }
  const Variable<T>& bias() const& { return bias_; }  ///< undefined without a bias
  Variable<T> bias() && { return bias_; }
  double eps() const { return eps_; }

 private:
  Dims normalized_shape_;
  double eps_;
  Variable<T> weight_, bias_;
};

}  // namespace xgrad
