#pragma once

#include <optional>

#include "module.hpp"

namespace xgrad {

/// y = x weight^T + bias, with x (..., in), weight (out, in), bias (out), y (..., out).
///
/// Both are initialized uniformly in [-1/sqrt(in), 1/sqrt(in)). Throws ValueError for a size of 0.
/// https://pytorch.org/docs/stable/generated/torch.nn.Linear.html
template <class T>
class Linear : public Module<T> {
 public:
  Linear(std::size_t in_features, std::size_t out_features, bool bias = true);

  /// With the given weight and bias. Throws ShapeError unless weight is (out, in) and bias (out) or absent.
  explicit Linear(Array<T> weight, std::optional<Array<T>> bias = {});
  /// A number is no weight.
  explicit Linear(detail::Number auto) = delete;

  Variable<T> operator()(const Variable<T>& x) const;

  const Variable<T>& weight() const& { return weight_; }
  Variable<T> weight() && { return weight_; }
  const Variable<T>& bias() const& { return bias_; }  ///< undefined without a bias
  Variable<T> bias() && { return bias_; }

 private:
  Variable<T> weight_, bias_;
};

}  // namespace xgrad
