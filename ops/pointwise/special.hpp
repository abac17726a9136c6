#pragma once

#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

// Elementwise special functions; y has the shape of x. nan stays nan. erf is in elementwise.hpp.
// https://pytorch.org/docs/stable/special.html

namespace xgrad {

/// y = ln |Gamma(x)|, dx = dy digamma(x); inf at 0 and at negative integers.
template <class T>
Variable<T> lgamma(const Variable<T>& x);

/// The derivative of ln Gamma(x); dx = dy polygamma(1, x). -inf at 0, inf at -0, nan at negative integers.
/// Abramowitz and Stegun, "Handbook of Mathematical Functions", 6.3.
template <class T>
Variable<T> digamma(const Variable<T>& x);

/// The n-th derivative of digamma(x), n >= 0; dx = dy polygamma(n + 1, x). At 0 and at negative integers inf
/// for odd n, -inf for even n > 0. Finite elsewhere up to n = 170. Throws ValueError for n < 0. Abramowitz
/// and Stegun, 6.4; https://pytorch.org/docs/stable/generated/torch.polygamma.html
template <class T>
Variable<T> polygamma(int n, const Variable<T>& x);

/// y = 1 - erf(x), without cancellation; dx = -dy 2 / sqrt(pi) e^(-x^2).
template <class T>
Variable<T> erfc(const Variable<T>& x);

/// y with erf(y) = x, dx = dy sqrt(pi) / 2 e^(y^2); inf at 1, -inf at -1, nan beyond.
template <class T>
Variable<T> erfinv(const Variable<T>& x);

namespace ops {

inline constexpr Op lgamma("lgamma", {"x"});
inline constexpr Op digamma("digamma", {"x"});
inline constexpr Op polygamma("polygamma", {"x"}, {"n"});
inline constexpr Op erfc("erfc", {"x"});
inline constexpr Op erfinv("erfinv", {"x"});

}  // namespace ops
}  // namespace xgrad
