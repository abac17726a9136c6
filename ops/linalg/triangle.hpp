#pragma once

#include "../../base/dims.hpp"
#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

/// The lower triangle of the last two axes: y = x, but 0 where column - row > diagonal; dx = tril(dy).
/// https://pytorch.org/docs/stable/generated/torch.tril.html
template <class T>
Variable<T> tril(const Variable<T>& x, Int diagonal = 0);

/// The upper triangle of the last two axes: y = x, but 0 where column - row < diagonal; dx = triu(dy).
/// https://pytorch.org/docs/stable/generated/torch.triu.html
template <class T>
Variable<T> triu(const Variable<T>& x, Int diagonal = 0);

namespace ops {

inline constexpr Op tril("tril", {"x"}, {"diagonal"});
inline constexpr Op triu("triu", {"x"}, {"diagonal"});

}  // namespace ops
}  // namespace xgrad
