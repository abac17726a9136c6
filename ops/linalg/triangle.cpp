#include "triangle.hpp"

#include <algorithm>

#include "../../graph/record.hpp"

namespace xgrad {
namespace {

/// Keeps the columns up to the diagonal, or from it on. Its gradient is the same of dy.
template <class T>
Variable<T> triangle(const Variable<T>& x, Int diagonal, bool lower) {
  const StaticOp<1, 1> op = lower ? StaticOp<1, 1>(ops::tril) : StaticOp<1, 1>(ops::triu);
  const std::size_t rank = x.dimension();
  if (rank < 2) detail::fail<ShapeError>(op.info().name, ": x must have at least two axes, got ", x.shape());
  const auto rows = static_cast<std::ptrdiff_t>(x.shape()[rank - 2]),
             columns = static_cast<std::ptrdiff_t>(x.shape()[rank - 1]);
  Variable<T> y = detail::empty<T>(x.shape());
  const T* from = detail::data(x);
  T* to = detail::data(y);
  for (std::size_t r = 0; r < row_count(x.shape()); ++r, from += columns, to += columns) {
    const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(r) % rows;
    const std::ptrdiff_t border = std::clamp<std::ptrdiff_t>(
        std::clamp<std::ptrdiff_t>(diagonal, -rows, columns) + row + (lower ? 1 : 0), 0, columns);
    std::copy(from, from + columns, to);
    if (lower) {
      std::fill(to + border, to + columns, T{0});
    } else {
      std::fill(to, to + border, T{0});
    }
  }
  return record<T>(
      op, std::move(y), Inputs(x), Attributes(diagonal), Saved(),
      [diagonal, lower](Variable<T> dy, Needs) -> Grads<T, 1> { return {triangle(dy, diagonal, lower)}; });
}

}  // namespace

template <class T>
Variable<T> tril(const Variable<T>& x, Int diagonal) {
  return triangle(x, diagonal, true);
}

template <class T>
Variable<T> triu(const Variable<T>& x, Int diagonal) {
  return triangle(x, diagonal, false);
}

#define XGRAD_INSTANTIATE(T)                          \
  template Variable<T> tril(const Variable<T>&, Int); \
  template Variable<T> triu(const Variable<T>&, Int);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
