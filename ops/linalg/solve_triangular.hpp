#pragma once

#include "../../base/detail/by_name.hpp"
#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

struct SolveTriangularOptions {
  detail::ByName by_name = {};
  bool upper = false;          ///< the triangle of a that is read
  bool left = true;            ///< a X = b, else X a = b
  bool unitriangular = false;  ///< assume ones on the diagonal of a, which is not read
};

/// X with a X = b for triangular matrices a (..., n, n) and b (..., n, m), or X a = b for b (..., m, n);
/// batch axes broadcast. db = a^-T dX; da = the triangle of -db X^T (of -X^T db for X a = b). Throws
/// ValueError, with the batch's index, for a 0 on the diagonal.
/// https://pytorch.org/docs/stable/generated/torch.linalg.solve_triangular.html
template <class T>
Variable<T> solve_triangular(const Variable<T>& a, const Variable<T>& b, SolveTriangularOptions options = {});

namespace ops {

inline constexpr Op solve_triangular("solve_triangular", {"a", "b"},
                                     {"upper", "left", "unitriangular", "transposed"});

}  // namespace ops
}  // namespace xgrad
