#pragma once

#include "../../base/detail/by_name.hpp"
#include "../../base/dims.hpp"
#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

// Reductions over all axes, or over dims, which may be negative: sum(x, {0, -1}, {.keepdim = true}). Sums of
// float are accurate (blocked). Errors: IndexError for a missing axis, ValueError for a duplicate. The
// overloads for a Shape exist because xtensor, whose type it is, has functions of these names.
// https://pytorch.org/docs/stable/torch.html#reduction-ops

namespace xgrad {

struct ReduceOptions {
  detail::ByName by_name = {};
  bool keepdim = false;  ///< keep the reduced axes, with length 1
};

/// y = sum of x; dx = dy, repeated along the summed axes. The sum of no elements is 0.
template <class T>
Variable<T> sum(const Variable<T>& x);
template <class T>
Variable<T> sum(const Variable<T>& x, const Dims& dims, ReduceOptions options = {});
template <class T, std::same_as<Shape> S>
Variable<T> sum(Variable<T> x, S dims, ReduceOptions options = {}) {
  return sum(x, Dims(dims), options);
}

/// y = sum(x) / n with n the number of summed elements; dx = dy / n, repeated. nan over no elements.
template <class T>
Variable<T> mean(const Variable<T>& x);
template <class T>
Variable<T> mean(const Variable<T>& x, const Dims& dims, ReduceOptions options = {});
template <class T, std::same_as<Shape> S>
Variable<T> mean(Variable<T> x, S dims, ReduceOptions options = {}) {
  return mean(x, Dims(dims), options);
}

/// The largest element; nan if any element is nan. dx = dy at the largest element; equal ones share it
/// evenly. Throws ValueError over no elements.
template <class T>
Variable<T> amax(const Variable<T>& x);
template <class T>
Variable<T> amax(const Variable<T>& x, const Dims& dims, ReduceOptions options = {});
template <class T, std::same_as<Shape> S>
Variable<T> amax(Variable<T> x, S dims, ReduceOptions options = {}) {
  return amax(x, Dims(dims), options);
}
/// The smallest element, as amax.
template <class T>
Variable<T> amin(const Variable<T>& x);
template <class T>
Variable<T> amin(const Variable<T>& x, const Dims& dims, ReduceOptions options = {});
template <class T, std::same_as<Shape> S>
Variable<T> amin(Variable<T> x, S dims, ReduceOptions options = {}) {
  return amin(x, Dims(dims), options);
}

/// y = ln(sum(e^x)), without overflow; dx = dy e^(x - y).
template <class T>
Variable<T> logsumexp(const Variable<T>& x, const Dims& dims, ReduceOptions options = {});

struct VarOptions {
  detail::ByName by_name = {};
  double correction = 1;  ///< subtracted from n in the divisor: 1 for the variance of a sample
  bool keepdim = false;
};

/// y = sum((x - mean)^2) / (n - correction); dx = dy 2 (x - mean) / (n - correction).
template <class T>
Variable<T> var(const Variable<T>& x, VarOptions options = {});
template <class T>
Variable<T> var(const Variable<T>& x, const Dims& dims, VarOptions options = {});

/// y = sqrt(var(x)), the standard deviation; dx = dy (x - mean) / (n - correction) / y, 0 where y = 0.
template <class T>
Variable<T> std(const Variable<T>& x, VarOptions options = {});
template <class T>
Variable<T> std(const Variable<T>& x, const Dims& dims, VarOptions options = {});

/// y = (sum of |x|^p)^(1/p), a vector's norm; for p infinity the largest and for -infinity the smallest |x|,
/// for 0 the number of nonzero x. dx = dy x |x|^(p - 2) / y^(p - 1), 0 where x or y is 0; equal extremes
/// share it evenly, as in amax. Throws ValueError over no elements if p is negative or infinite.
/// https://pytorch.org/docs/stable/generated/torch.linalg.vector_norm.html
template <class T>
Variable<T> norm(const Variable<T>& x, std::type_identity_t<T> p = 2);
template <class T>
Variable<T> norm(const Variable<T>& x, std::type_identity_t<T> p, const Dims& dims,
                 ReduceOptions options = {});
/// Axes come after p: norm(x, 2, {0}).
template <class T, class I, std::size_t N>
Variable<T> norm(const Variable<T>& x, const I (&dims)[N], ReduceOptions options = {}) = delete;

/// y = the product of x; dx = dy times the product of the other elements, also where x has zeros. The product
/// of no elements is 1. https://pytorch.org/docs/stable/generated/torch.prod.html
template <class T>
Variable<T> prod(const Variable<T>& x);
template <class T>
Variable<T> prod(const Variable<T>& x, Int dim, ReduceOptions options = {});

namespace ops {

inline constexpr Op sum("sum", {"x"}, {"dim", "keepdim"});
inline constexpr Op mean("mean", {"x"}, {"dim", "keepdim"});
inline constexpr Op amax("amax", {"x"}, {"dim", "keepdim"});
inline constexpr Op amin("amin", {"x"}, {"dim", "keepdim"});
inline constexpr Op prod("prod", {"x"}, {"dim", "keepdim"});
inline constexpr Op logsumexp("logsumexp", {"x"}, {"dim", "keepdim"});
inline constexpr Op var("var", {"x"}, {"dim", "keepdim", "correction"});
inline constexpr Op std("std", {"x"}, {"dim", "keepdim", "correction"});
inline constexpr Op norm("norm", {"x"}, {"ord", "dim", "keepdim"});

}  // namespace ops
}  // namespace xgrad
