#pragma once

#include <concepts>
#include <optional>
#include <utility>

#include "../../ops/product/linear.hpp"
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
  const Variable<T>& weight() const& { return projection_.weight.variable(); }
  Variable<T> weight() && { return projection_.weight.variable(); }
  const Weight<T>& stored_weight() const& { return projection_.weight; }  ///< of any type
  Weight<T> stored_weight() && { return projection_.weight; }
  const Variable<T>& bias() const& { return projection_.bias; }  ///< undefined without a bias
  Variable<T> bias() && { return projection_.bias; }
  const Projection<T>& projection() const& { return projection_; }  ///< both
  Projection<T> projection() && { return projection_; }

 private:
  struct Given {
    Weight<T> weight;
  };
  Linear(Given given, std::optional<Array<T>> bias);

  Projection<T> projection_;
};

}  // namespace xgrad
