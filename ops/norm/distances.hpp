#pragma once

#include "../../base/detail/by_name.hpp"
#include "../../base/dims.hpp"
#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

struct NormalizeOptions {
  detail::ByName by_name = {};
  double p = 2;  ///< of the norm
  double eps = 1e-12;
};

/// y = x / max(norm of x along `dim`, eps).
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.normalize.html
template <class T>
Variable<T> normalize(const Variable<T>& x, Int dim = 1, NormalizeOptions options = {});

/// The sum of a b along `dim`, divided by the lengths of both, each at least eps; a and b broadcast. Below
/// eps the length is a constant; PyTorch's gradient is that of a longer vector there.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.cosine_similarity.html
template <class T>
Variable<T> cosine_similarity(const Variable<T>& a, const Variable<T>& b, Int dim = 1, double eps = 1e-8);

/// y[i, j] = the norm of a[i] - b[j] for rows a (..., n, k) and b (..., m, k); the leading axes broadcast.
/// da[i] = the sum of dy[i, j] (a[i] - b[j]) / y[i, j] for p = 2, 0 where y is; for another p the
/// differences, n m k of them, are kept for the backward. Throws ShapeError for fewer axes or another number
/// of columns, ValueError for a negative p. https://pytorch.org/docs/stable/generated/torch.cdist.html
template <class T>
Variable<T> cdist(const Variable<T>& a, const Variable<T>& b, std::type_identity_t<T> p = 2);

namespace ops {

inline constexpr Op cdist("cdist", {"a", "b"});

}  // namespace ops
}  // namespace xgrad
