#pragma once

#include "../../base/detail/by_name.hpp"
#include "../../base/dims.hpp"
#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

struct SolveOptions {
  detail::ByName by_name = {};
  bool left = true;  ///< a X = b; otherwise X a = b
};

/// X with a X = b for invertible matrices a (..., n, n), or X a = b if not `left`; b is matrices (..., n, m),
/// a vector (n), or one vector for each matrix of a (..., n). Batch axes broadcast. db = a^-T dX, da = -db
/// X^T, from the factors of the forward pass. Throws ValueError, with the batch's index, for a singular
/// matrix. https://pytorch.org/docs/stable/generated/torch.linalg.solve.html
template <class T>
Variable<T> solve(const Variable<T>& a, const Variable<T>& b, SolveOptions options = {});

/// y = a^-1 for matrices a (..., n, n); da = -y^T dy y^T. Throws ValueError, with the batch's index, for a
/// singular matrix. solve(a, b) is faster and more accurate than inv(a) b.
/// https://pytorch.org/docs/stable/generated/torch.linalg.inv.html
template <class T>
Variable<T> inv(const Variable<T>& a);

namespace ops {

inline constexpr Op solve("solve", {"a", "b"}, {"transposed"});
inline constexpr Op inv("inv", {"a"});

}  // namespace ops
}  // namespace xgrad
