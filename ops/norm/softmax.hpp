#pragma once

#include "../../base/dims.hpp"
#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

/// y = exp(x - max) / sum(exp(x - max)) along `dim`; dx = y (dy - sum(dy y)).
///
/// An entry of -inf gives exactly 0; a row of only -inf gives nan. Throws IndexError for a missing axis.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.softmax.html
template <class T>
Variable<T> softmax(const Variable<T>& x, Int dim = -1);

/// y = x - max - ln(sum(exp(x - max))) along `dim`; dx = dy - exp(y) sum(dy).
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.log_softmax.html
template <class T>
Variable<T> log_softmax(const Variable<T>& x, Int dim = -1);

namespace ops {

inline constexpr Op softmax("softmax", {"x"}, {"dim"});
inline constexpr Op log_softmax("log_softmax", {"x"}, {"dim"});

}  // namespace ops
}  // namespace xgrad
