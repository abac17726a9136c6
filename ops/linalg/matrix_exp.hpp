#pragma once

#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

/// y = 1 + a + a^2 / 2! + ... for matrices a (..., n, n). da is the upper right block of matrix_exp([[a^T,
/// dy], [0, a^T]]).
///
/// Mathias, A chain rule for matrix functions and applications (1996);
/// https://pytorch.org/docs/stable/generated/torch.linalg.matrix_exp.html
template <class T>
Variable<T> matrix_exp(const Variable<T>& a);

namespace ops {

inline constexpr Op matrix_exp("matrix_exp", {"a"});

}  // namespace ops
}  // namespace xgrad
