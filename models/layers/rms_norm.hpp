#pragma once

#include <concepts>
#include <optional>
#include <utility>

#include "../../base/dims.hpp"
#include "../module.hpp"

namespace xgrad {

/// y = x / sqrt(mean(x^2) + eps) * (weight + offset) over the last axes, whose lengths are `normalized_shape`
/// (Zhang and Sennrich 2019, arXiv:1910.07467); x and y (..., normalized_shape).
///
/// weight is initialized to 1 - offset; eps is the epsilon of T if absent. Throws ValueError for no lengths,
/// a length below 1 or a negative eps. https://pytorch.org/docs/stable/generated/torch.nn.RMSNorm.html
template <class T>
class RMSNorm : public Module<T> {
 public:
  explicit RMSNorm(Dims normalized_shape, std::optional<double> eps = {}, double offset = 0);

  /// With the given weight, whose shape is `normalized_shape`. An integer is no Array.
  template <std::same_as<Array<T>> A>
  explicit RMSNorm(A weight, std::optional<double> eps = {}, double offset = 0)
      : RMSNorm(Given{std::move(weight)}, eps, offset) {}

  Variable<T> operator()(const Variable<T>& x) const;

  const Variable<T>& weight() const& { return weight_; }
  Variable<T> weight() && { return weight_; }

 private:
  struct Given {
    Array<T> weight;
  };
  RMSNorm(Given given, std::optional<double> eps, double offset);

  Dims normalized_shape_;
  std::optional<double> eps_;
  double offset_;
  Variable<T> weight_;
};

}  // namespace xgrad
