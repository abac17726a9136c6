#pragma once

#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

// Further activation functions of single elements; y has the shape of x. nan stays nan, an infinity gives the
// limit: for mish and hardswish at -infinity and for softsign PyTorch gives nan.
// https://pytorch.org/docs/stable/nn.functional.html#non-linear-activation-functions

namespace xgrad {

/// y = x tanh(ln(1 + e^x)) (Misra 2019, arXiv:1908.08681).
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.mish.html
template <class T>
Variable<T> mish(const Variable<T>& x);

/// y = x min(max(x + 3, 0), 6) / 6; dx = dy (x / 3 + 1 / 2) where -3 < x < 3, 0 below, dy above (Howard et
/// al. 2019, arXiv:1905.02244). https://pytorch.org/docs/stable/generated/torch.nn.functional.hardswish.html
template <class T>
Variable<T> hardswish(const Variable<T>& x);

/// y = min(max(x + 3, 0), 6) / 6; dx = dy / 6 where -3 < x < 3, else 0, with PyTorch's 1 / 6, of float.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.hardsigmoid.html
template <class T>
Variable<T> hardsigmoid(const Variable<T>& x);

/// y = min(max(x, min_val), max_val); dx = 0 where x <= min_val or x >= max_val, else dy. Throws ValueError
/// unless min_val <= max_val. https://pytorch.org/docs/stable/generated/torch.nn.functional.hardtanh.html
template <class T>
Variable<T> hardtanh(const Variable<T>& x, std::type_identity_t<T> min_val = -1,
                     std::type_identity_t<T> max_val = 1);

/// hardtanh between 0 and 6. https://pytorch.org/docs/stable/generated/torch.nn.functional.relu6.html
template <class T>
Variable<T> relu6(const Variable<T>& x);

/// y = s x where x > 0, else s a (e^x - 1), with s = 1.0507... and a = 1.6732...; dx = dy s where x > 0, else
/// dy s a e^x (Klambauer et al. 2017, arXiv:1706.02515).
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.selu.html
template <class T>
Variable<T> selu(const Variable<T>& x);

/// y = x where x > 0, else alpha (e^(x / alpha) - 1); dx = dy where x > 0, else dy e^(x / alpha), with
/// PyTorch's 1 / alpha, of float (Barron 2017, arXiv:1704.07483). Throws ValueError for an alpha of 0.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.celu.html
template <class T>
Variable<T> celu(const Variable<T>& x, std::type_identity_t<T> alpha = 1);

/// y = x / (1 + |x|), dx = dy / (1 + |x|)^2.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.softsign.html
template <class T>
Variable<T> softsign(const Variable<T>& x);

/// y = x - tanh(x), dx = dy tanh(x)^2.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.tanhshrink.html
template <class T>
Variable<T> tanhshrink(const Variable<T>& x);

/// y = x - lambda where x > lambda, x + lambda where x < -lambda, else 0; dx = dy where |x| > lambda, else 0.
/// Throws ValueError for a negative lambda.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.softshrink.html
template <class T>
Variable<T> softshrink(const Variable<T>& x, std::type_identity_t<T> lambda = 0.5);

/// y = x where |x| > lambda, else 0; dx = dy where |x| > lambda, else 0.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.hardshrink.html
template <class T>
Variable<T> hardshrink(const Variable<T>& x, std::type_identity_t<T> lambda = 0.5);

/// y = x where x > threshold, else value; dx = dy where x > threshold, else 0.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.threshold.html
template <class T>
Variable<T> threshold(const Variable<T>& x, std::type_identity_t<T> threshold, std::type_identity_t<T> value);

namespace ops {

inline constexpr Op mish("mish", {"x"});
inline constexpr Op hardswish("hardswish", {"x"});
inline constexpr Op hardsigmoid("hardsigmoid", {"x"});
inline constexpr Op hardtanh("hardtanh", {"x"}, {"min_val", "max_val"});
inline constexpr Op selu("selu", {"x"});
inline constexpr Op celu("celu", {"x"}, {"alpha"});
inline constexpr Op softsign("softsign", {"x"});

}  // namespace ops
}  // namespace xgrad
