#pragma once

#include <concepts>
#include <optional>
#include <utility>

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
  /// With a weight of any type, which may be that of another module, too. A bias beside integers is frozen,
  /// as products by these have no gradients.
  template <std::same_as<Weight<T>> W>
  explicit Linear(W weight, std::optional<Array<T>> bias = {})
      : Linear(Given{std::move(weight)}, std::move(bias)) {}
  /// A number is no weight.
  explicit Linear(detail::Number auto) = delete;

  Variable<T> operator()(const Variable<T>& x) const;

  /// Throws ValueError for a weight of fewer bits.
  const Variable<T>& weight() const& { return weight_.variable(); }
  Variable<T> weight() && { return weight_.variable(); }
  const Weight<T>& stored_weight() const& { return weight_; }  ///< of any type
  Weight<T> stored_weight() && { return weight_; }
  const Variable<T>& bias() const& { return bias_; }  ///< undefined without a bias
  Variable<T> bias() && { return bias_; }

 private:
  struct Given {
    Weight<T> weight;
  };
  Linear(Given given, std::optional<Array<T>> bias);

  Weight<T> weight_;
  Variable<T> bias_;
};

}  // namespace xgrad
