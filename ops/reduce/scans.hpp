#pragma once

#include "../../base/dims.hpp"
#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"
#include "sorting.hpp"

// Scans along the axis `dim`, which may be negative; y has the shape of x. Totals of float are kept in
// double. Errors: IndexError for a missing axis. https://pytorch.org/docs/stable/torch.html#other-operations

namespace xgrad {

/// y[i] = x[0] + ... + x[i]; dx[i] = dy[i] + ... + dy[n - 1].
/// https://pytorch.org/docs/stable/generated/torch.cumsum.html
template <class T>
Variable<T> cumsum(const Variable<T>& x, Int dim);

/// y[i] = x[0] ... x[i]; dx[i] = y[i - 1] r[i] with r[i] = dy[i] + x[i + 1] r[i + 1], without a division by
/// x, which may have zeros. https://pytorch.org/docs/stable/generated/torch.cumprod.html
template <class T>
Variable<T> cumprod(const Variable<T>& x, Int dim);

/// y[i] = ln(e^x[0] + ... + e^x[i]), without overflow; dx[i] = e^(x[i] - y[i]) r[i] with r[i] = dy[i] +
/// e^(y[i] - y[i + 1]) r[i + 1]. https://pytorch.org/docs/stable/generated/torch.logcumsumexp.html
template <class T>
Variable<T> logcumsumexp(const Variable<T>& x, Int dim);

/// The largest of x[0], ..., x[i], and its index; of equal ones the last. nan counts as the largest.
/// https://pytorch.org/docs/stable/generated/torch.cummax.html
template <class T>
Ranked<T> cummax(const Variable<T>& x, Int dim);
/// The smallest, as cummax; also nan after a nan.
template <class T>
Ranked<T> cummin(const Variable<T>& x, Int dim);

namespace ops {

inline constexpr Op cumsum("cumsum", {"x"}, {"dim"});
inline constexpr Op cumprod("cumprod", {"x"}, {"dim"});
inline constexpr Op logcumsumexp("logcumsumexp", {"x"}, {"dim"});

}  // namespace ops
}  // namespace xgrad
