#pragma once

#include <optional>

#include "../../base/detail/by_name.hpp"
#include "../../base/dims.hpp"
#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

struct RMSNormOptions {
  detail::ByName by_name = {};
  std::optional<double> eps = {};  ///< added to the mean square; the epsilon of T if absent
  double offset = 0;               ///< added to the weight: 1 for weights that are stored as w - 1
};

/// y = x / sqrt(mean(x^2) + eps) * (weight + offset) over the last axes, whose lengths are `normalized_shape`
/// (Zhang and Sennrich 2019, arXiv:1910.07467). weight has that shape or is undefined: then y is not scaled,
/// and offset has no effect.
///
/// With r = 1 / sqrt(mean(x^2) + eps), n = x r and g = dy (weight + offset): dx = r (g - n mean(g n)),
/// dweight = sum dy n. Throws ShapeError unless the last axes of x, and weight, have normalized_shape,
/// ValueError for a negative eps.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.rms_norm.html
template <class T>
Variable<T> rms_norm(const Variable<T>& x, const Dims& normalized_shape, const Variable<T>& weight = {},
                     RMSNormOptions options = {});

namespace ops {

inline constexpr Op rms_norm("rms_norm", {"x", "weight"}, {"normalized_shape", "eps", "offset"});

}  // namespace ops
}  // namespace xgrad
