#include "matrix_power.hpp"

#include <cstdint>

#include "../product/matmul.hpp"
#include "detail/matrices.hpp"
#include "solve.hpp"

namespace xgrad {

template <class T>
Variable<T> matrix_power(const Variable<T>& a, Int n) {
  const std::size_t order = detail::matrix_order("matrix_power", a.shape());
  const auto exponent = static_cast<std::int64_t>(static_cast<std::ptrdiff_t>(n));
  if (exponent == 0) {
    Array<T> identity(a.shape(), T{0});
    for (std::size_t i = 0; i < a.size() / (order > 0 ? order : 1); ++i)
      identity.data()[i * order + i % order] = 1;
    return Variable<T>(std::move(identity));
  }
  Variable<T> square = exponent < 0 ? inv(a) : a, y;
  auto rest = exponent < 0 ? ~static_cast<std::uint64_t>(exponent) + 1 : static_cast<std::uint64_t>(exponent);
  for (;;) {
    if (rest % 2 == 1) y = y.defined() ? matmul(y, square) : square;
    if ((rest /= 2) == 0) return y;
    square = matmul(square, square);
  }
}

#define XGRAD_INSTANTIATE(T) template Variable<T> matrix_power(const Variable<T>&, Int);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
