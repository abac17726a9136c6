#include "cholesky.hpp"

#include <algorithm>
#include <vector>

#include "../../graph/kernel_backward.hpp"
#include "../../kernels/lapack/lapack.hpp"
#include "../product/matmul.hpp"
#include "../shape/shapes.hpp"
#include "detail/matrices.hpp"
#include "detail/solutions.hpp"
#include "triangle.hpp"

namespace xgrad {

namespace {

/// The gradient in one array.
template <class T>
Variable<T> kernel_grad(const Variable<T>& l, const Variable<T>& dl) {
  const std::size_t n = l.shape(-1);
  Variable<T> da = detail::empty<T>(l.shape());
  const T *factor = detail::data(l), *from = detail::data(dl);
  T* to = detail::data(da);
  detail::for_each_matrix(detail::matrix_count(l.shape()), n, [&](std::size_t i) {
    const std::size_t place = i * n * n;
    kernels::cholesky_grad(factor + place, from + place, to + place, n);
  });
  return da;
}

}  // namespace

template <class T>
Variable<T> cholesky(const Variable<T>& a, CholeskyOptions options) {
  const std::size_t n = detail::matrix_order("cholesky", a.shape()), count = detail::matrix_count(a.shape());
  if (options.upper) return mT(cholesky(a));
  const detail::ExactProducts exact;
  Variable<T> l = detail::copy_of(a);
  T* to = detail::data(l);
  std::vector<std::size_t> minors(count);
  detail::for_each_matrix(count, n, [&](std::size_t i) { minors[i] = kernels::cholesky(to + i * n * n, n); });
  const auto failed =
      std::find_if(minors.begin(), minors.end(), [](std::size_t minor) { return minor != 0; });
  if (failed != minors.end()) {
    const auto number = static_cast<std::size_t>(failed - minors.begin());
    detail::fail<ValueError>("cholesky: the leading minor of order ", *failed, " of ",
                             detail::matrix_place(a.shape(), number), " is not positive");
  }
  return record<T>(
      ops::cholesky, std::move(l), Inputs(a), Saved(Output()),
      KernelBackward([](const Variable<T>& dl, Needs,
                        const Variable<T>& l) -> Grads<T, 1> { return {kernel_grad(l, dl)}; },
                     [](const Variable<T>& dl, Needs, const Variable<T>& l) -> Grads<T, 1> {
                       const Variable<T> s = tril(detail::matrix_product(l, true, dl, false));
                       const Variable<T> p = (s + mT(tril(s, -1))) * T(0.5);
                       return {detail::triangular_solution(
                           l, detail::triangular_solution(l, p, {.transposed = true}), {.left = false})};
                     }));
}

#define XGRAD_INSTANTIATE(T) template Variable<T> cholesky(const Variable<T>&, CholeskyOptions);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
