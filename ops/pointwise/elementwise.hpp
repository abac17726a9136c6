#pragma once

#include <concepts>
#include <optional>

#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

// Elementwise functions; y has the shape of x. nan stays nan.
// https://pytorch.org/docs/stable/torch.html#pointwise-ops

namespace xgrad {

/// y = e^x, dx = dy y.
template <class T>
Variable<T> exp(const Variable<T>& x);

/// y = ln x, dx = dy / x; log(0) = -inf, nan for negative numbers.
template <class T>
Variable<T> log(const Variable<T>& x);

/// y = sqrt(x), dx = dy / (2 y).
template <class T>
Variable<T> sqrt(const Variable<T>& x);

/// y = 1 / sqrt(x), dx = -dy y^3 / 2.
template <class T>
Variable<T> rsqrt(const Variable<T>& x);

/// y = 1 / x, dx = -dy y^2.
template <class T>
Variable<T> reciprocal(const Variable<T>& x);

/// y = x^2, dx = 2 dy x.
template <class T>
Variable<T> square(const Variable<T>& x);

/// y = |x|, dx = dy sign(x), 0 at 0.
template <class T>
Variable<T> abs(const Variable<T>& x);

/// y = tanh(x), dx = dy (1 - y^2), as 4 e / (1 + e)^2 with e = e^(-2 |x|), which does not cancel.
template <class T>
Variable<T> tanh(const Variable<T>& x);

/// y = 1 / (1 + e^-x), dx = dy y (1 - y), as e / (1 + e)^2 with e = e^-|x|, which does not cancel.
template <class T>
Variable<T> sigmoid(const Variable<T>& x);

/// The Gauss error function: y = erf(x), dx = dy 2 / sqrt(pi) e^(-x^2).
template <class T>
Variable<T> erf(const Variable<T>& x);

/// y = max(x, 0), dx = dy where y > 0.
template <class T>
Variable<T> relu(const Variable<T>& x);

/// y = x where x > 0, else negative_slope x; dx = dy where x > 0, else negative_slope dy.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.leaky_relu.html
template <class T>
Variable<T> leaky_relu(const Variable<T>& x, std::type_identity_t<T> negative_slope = 0.01);

/// y = x where x > 0, else alpha (e^x - 1); dx = dy where x > 0, else dy alpha e^x (Clevert, Unterthiner and
/// Hochreiter 2015, arXiv:1511.07289). https://pytorch.org/docs/stable/generated/torch.nn.functional.elu.html
template <class T>
Variable<T> elu(const Variable<T>& x, std::type_identity_t<T> alpha = 1);

/// y = ln sigmoid(x), without overflow; dx = dy sigmoid(-x).
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.logsigmoid.html
template <class T>
Variable<T> log_sigmoid(const Variable<T>& x);

/// y = x sigmoid(x), dx = dy (s + x s (1 - s)) with s = sigmoid(x); also called swish (Hendrycks and Gimpel
/// 2016, arXiv:1606.08415).
template <class T>
Variable<T> silu(const Variable<T>& x);

/// How gelu is computed.
enum class Gelu {
  none,  ///< x Phi(x), with Phi the normal distribution function
  tanh,  ///< x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
};

/// Gaussian error linear unit (Hendrycks and Gimpel 2016, arXiv:1606.08415); dx = dy (Phi(x) + x phi(x)).
template <class T>
Variable<T> gelu(const Variable<T>& x, Gelu approximate = Gelu::none);

/// y = ln(1 + e^(beta x)) / beta, dx = dy sigmoid(beta x); y = x and dx = dy where beta x > threshold.
template <class T>
Variable<T> softplus(const Variable<T>& x, std::type_identity_t<T> beta = 1,
                     std::type_identity_t<T> threshold = 20);

/// y = min(max(x, low), high), dx = dy where low <= x <= high; a bound may be absent: clamp(x, 0, {}). Where
/// low > high, y is high; where one of two bounds is nan, y is nan. Throws ValueError if both bounds are
/// absent. https://pytorch.org/docs/stable/generated/torch.clamp.html
template <class T>
Variable<T> clamp(const Variable<T>& x, std::type_identity_t<std::optional<T>> low,
                  std::type_identity_t<std::optional<T>> high = {});

/// The same with bounds for each element, which broadcast; an undefined one is absent, and a nan gives nan.
/// dlow = dy where x < low <= high, dhigh = dy where x > high or low > high.
template <class T, std::same_as<Variable<T>> Bound>
Variable<T> clamp(const Variable<T>& x, const Bound& low, const Bound& high = {});

namespace detail {

/// pow(x, 3).
template <class T>
Variable<T> cube(const Variable<T>& x);

/// relu's gradient: dy where y > 0, else 0. It is linear in dy; its derivative with respect to y is 0.
template <class T>
Variable<T> relu_grad(const Variable<T>& dy, const Variable<T>& y);

}  // namespace detail

namespace ops {

inline constexpr Op exp("exp", {"x"});
inline constexpr Op log("log", {"x"});
inline constexpr Op sqrt("sqrt", {"x"});
inline constexpr Op rsqrt("rsqrt", {"x"});
inline constexpr Op reciprocal("reciprocal", {"x"});
inline constexpr Op square("square", {"x"});
inline constexpr Op cube("cube", {"x"});
inline constexpr Op abs("abs", {"x"});
inline constexpr Op tanh("tanh", {"x"});
inline constexpr Op sigmoid("sigmoid", {"x"});
inline constexpr Op erf("erf", {"x"});
inline constexpr Op relu("relu", {"x"});
inline constexpr Op log_sigmoid("log_sigmoid", {"x"});
inline constexpr Op silu("silu", {"x"});
inline constexpr Op leaky_relu("leaky_relu", {"x"}, {"negative_slope"});
inline constexpr Op elu("elu", {"x"}, {"alpha"});
inline constexpr Op gelu("gelu", {"x"}, {"approximate"});
inline constexpr Op softplus("softplus", {"x"}, {"beta", "threshold"});
inline constexpr Op clamp("clamp", {"x"}, {"min", "max"});

}  // namespace ops
}  // namespace xgrad
