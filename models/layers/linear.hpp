#pragma once

#include <concepts>
#include <optional>

#include "../../ops/product/int8_linear.hpp"
#include "../module.hpp"

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
  /// With a weight of 8-bit integers and a bias, which have no gradients: computes int8_linear. The weight is
  /// no parameter, but one of named_int8_weights(). Throws ShapeError unless bias is (out) or absent.
  explicit Linear(Int8Weight weight, std::optional<Array<T>> bias = {}) requires std::same_as<T, float>;
  /// With a weight of bfloat16 numbers, which has no gradient: computes bfloat16_linear. The weight is no
  /// parameter, but one of named_bfloat16_weights(). Throws ShapeError unless bias is (out) or absent.
  explicit Linear(Bfloat16Weight weight, std::optional<Array<T>> bias = {});
  /// A number is no weight.
  explicit Linear(detail::Number auto) = delete;

  Variable<T> operator()(const Variable<T>& x) const;

  const Variable<T>& weight() const& { return weight_; }  ///< undefined with one of the others
  Variable<T> weight() && { return weight_; }
  const Variable<T>& bias() const& { return bias_; }  ///< undefined without a bias
  Variable<T> bias() && { return bias_; }
  const std::optional<Int8Weight>& int8_weight() const& { return int8_weight_; }
  std::optional<Int8Weight> int8_weight() && { return int8_weight_; }
  const std::optional<Bfloat16Weight>& bfloat16_weight() const& { return bfloat16_weight_; }
  std::optional<Bfloat16Weight> bfloat16_weight() && { return bfloat16_weight_; }

 private:
  Variable<T> weight_, bias_;
  std::optional<Int8Weight> int8_weight_;
  std::optional<Bfloat16Weight> bfloat16_weight_;
};

}  // namespace xgrad
