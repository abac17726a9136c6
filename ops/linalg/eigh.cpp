#include "eigh.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "../../graph/record_many.hpp"
#include "../../kernels/lapack/lapack.hpp"
#include "../index/masked_fill.hpp"
#include "../pointwise/elementwise.hpp"
#include "../product/matmul.hpp"
#include "../shape/shapes.hpp"
#include "detail/matrices.hpp"
#include "diagonal.hpp"

namespace xgrad {

template <class T>
EighResult<T> eigh(const Variable<T>& a, EighOptions options) {
  const std::size_t n = detail::matrix_order("eigh", a.shape()), count = detail::matrix_count(a.shape());
  Variable<T> w = detail::empty<T>(Shape(a.shape().begin(), a.shape().end() - 1)), v = detail::copy_of(a);
  T *values = detail::data(w), *vectors = detail::data(v);
  std::vector<char> converged(count);
  detail::for_each_matrix(count, n, [&](std::size_t i) {
    converged[i] = kernels::eigh(vectors + i * n * n, values + i * n, n, !options.upper) ? 1 : 0;
  });
  const auto failed = std::find(converged.begin(), converged.end(), 0);
  if (failed != converged.end()) {
    detail::fail<ValueError>(
        "eigh: ", detail::matrix_place(a.shape(), static_cast<std::size_t>(failed - converged.begin())),
        " gives no eigenvalues, the algorithm did not converge");
  }
  const detail::ExactProducts exact;
  auto results = record_many<T, 2>(
      ops::eigh, {std::move(w), std::move(v)}, Inputs(a), Attributes(options.upper ? "U" : "L"),
      Saved(Output(0), Output(1)),
      [n](std::array<Variable<T>, 2> dys, Needs, Variable<T> w, Variable<T> v) -> Grads<T, 1> {
        Variable<T> inner;
        if (dys[1].defined()) {
          Mask diagonal = Mask::from_shape({n, n});
          for (std::size_t i = 0; i < n * n; ++i) diagonal.data()[i] = i / n == i % n;
          const Variable<T> differences = unsqueeze(w, -2) - unsqueeze(w, -1);
          const Variable<T> turned = detail::matrix_product(v, true, dys[1], false);
          inner = T(0.5) * (turned - mT(turned)) /
                  masked_fill(differences, diagonal, std::numeric_limits<T>::infinity());
        }
        if (dys[0].defined()) {
          const Variable<T> of_values = diag_embed(dys[0]);
          inner = inner.defined() ? inner + of_values : of_values;
        }
        return {detail::matrix_product(matmul(v, inner), false, v, true)};
      });
  return {std::move(results[0]), std::move(results[1])};
}

#define XGRAD_INSTANTIATE(T) template EighResult<T> eigh(const Variable<T>&, EighOptions);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
