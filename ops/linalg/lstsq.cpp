#include "lstsq.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../product/matmul.hpp"
#include "../shape/shapes.hpp"
#include "detail/matrices.hpp"
#include "detail/solutions.hpp"
#include "qr.hpp"

namespace xgrad {
namespace {

/// A diagonal element of R that is as small as rounding makes it stands for 0.
template <class T>
void check_rank(const Variable<T>& r, std::size_t longer, const char* columns) {
  const std::size_t n = r.shape(-1);
  const T* matrix = detail::data(r);
  for (std::size_t number = 0; number < detail::matrix_count(r.shape()); ++number, matrix += n * n) {
    T largest{0};
    for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(matrix[i * n + i]));
    for (std::size_t i = 0; i < n; ++i) {
      if (!(std::abs(matrix[i * n + i]) <=
            largest * std::numeric_limits<T>::epsilon() * static_cast<T>(longer)))
        continue;
      detail::fail<ValueError>("lstsq: a must have full rank, the ", columns, " of ",
                               detail::matrix_place(r.shape(), number), " are linearly dependent");
    }
  }
}

}  // namespace

template <class T>
Variable<T> lstsq(const Variable<T>& a, const Variable<T>& b) {
  detail::check_matrices("lstsq", a.shape());
  detail::check_matrices("lstsq", b.shape(), "b");
  const std::size_t m = a.shape(-2), n = a.shape(-1);
  if (b.shape(-2) != m)
    detail::fail<ShapeError>("lstsq: b must have as many rows as a, got a ", a.shape(), " and b ", b.shape());
  const auto [left, right] = detail::in_common_batch("lstsq", a, b);
  const detail::ExactProducts exact;
  const QrResult<T> factors = qr(m >= n ? left : mT(left));
  check_rank(factors.R, std::max(m, n), m >= n ? "columns" : "rows");
  if (m >= n)
    return detail::triangular_solution(factors.R, detail::matrix_product(factors.Q, true, right, false),
                                       {.upper = true});
  return matmul(factors.Q,
                detail::triangular_solution(factors.R, right, {.upper = true, .transposed = true}));
}

#define XGRAD_INSTANTIATE(T) template Variable<T> lstsq(const Variable<T>&, const Variable<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
