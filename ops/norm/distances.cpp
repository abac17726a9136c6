#include "distances.hpp"

#include "../../graph/fused.hpp"
#include "../../kernels/rows/distances.hpp"
#include "../detail/kernel_grads.hpp"
#include "../linalg/detail/matrices.hpp"
#include "../pointwise/arithmetic.hpp"
#include "../pointwise/broadcast.hpp"
#include "../pointwise/elementwise.hpp"
#include "../reduce/reductions.hpp"
#include "../shape/shapes.hpp"

namespace xgrad {
namespace {

/// The norms of all differences of rows, by single ops.
template <class T>
Variable<T> norms_of_differences(const Variable<T>& a, const Variable<T>& b, T p) {
  return norm(unsqueeze(a, -2) - unsqueeze(b, -3), p, {-1});
}

/// Those with p = 2, of rows in equal batches.
template <class T>
Variable<T> euclidean(const Variable<T>& a, const Variable<T>& b) {
  const std::size_t n = a.shape(-2), m = b.shape(-2), k = a.shape(-1),
                    batches = detail::matrix_count(a.shape());
  Variable<T> y = detail::empty<T>(detail::matrices(detail::batch_axes(a.shape()), n, m), "cdist");
  kernels::distances<T>(detail::data(a), detail::data(b), {n, m, k}, detail::data(y), batches * n);
  return fused<T>(
      ops::cdist, std::move(y), Inputs(a, b), Attributes(), Saved(Output()),
      [](const Variable<T>& a, const Variable<T>& b) { return norms_of_differences(a, b, T{2}); },
      [=](const Variable<T>& dy, Needs needs, const Variable<T>& a, const Variable<T>& b,
          const Variable<T>& y) -> Grads<T, 2> {
        auto grads = detail::empty_grads<T, 2>(needs);
        auto& [da, db] = grads;
        const T *const slopes = detail::data(dy), *const lengths = detail::data(y);
        if (da.defined()) {
          kernels::distances_grad<T>(slopes, lengths, m, 1, detail::data(a), detail::data(b), {n, m, k},
                                     detail::data(da), batches * n);
        }
        if (db.defined()) {
          kernels::distances_grad<T>(slopes, lengths, 1, m, detail::data(b), detail::data(a), {m, n, k},
                                     detail::data(db), batches * m);
        }
        return grads;
      });
}

}  // namespace

template <class T>
Variable<T> normalize(const Variable<T>& x, Int dim, NormalizeOptions options) {
  const Variable<T> length = norm(x, static_cast<T>(options.p), {dim}, {.keepdim = true});
  return x / clamp(length, static_cast<T>(options.eps));
}

template <class T>
Variable<T> cosine_similarity(const Variable<T>& a, const Variable<T>& b, Int dim, double eps) {
  const Shape shape = detail::broadcast_shape("cosine_similarity", a.shape(), b.shape());
  const auto unit = [&](const Variable<T>& x) {
    return normalize(detail::stretched(x, shape), dim, {.p = 2, .eps = eps});
  };
  return sum(unit(a) * unit(b), {dim});
}

template <class T>
Variable<T> cdist(const Variable<T>& a, const Variable<T>& b, std::type_identity_t<T> p) {
  if (a.dimension() < 2 || b.dimension() < 2 || a.shape(-1) != b.shape(-1)) {
    detail::fail<ShapeError>("cdist: a and b must be rows of one length, got a ", a.shape(), " and b ",
                             b.shape());
  }
  if (!(p >= 0)) detail::fail<ValueError>("cdist: p must not be negative, got ", p);
  if (p != 2) return norms_of_differences(a, b, p);
  const auto [left, right] = detail::in_common_batch("cdist", a, b);
  return euclidean(left, right);
}

#define XGRAD_INSTANTIATE(T)                                                                   \
  template Variable<T> normalize(const Variable<T>&, Int, NormalizeOptions);                   \
  template Variable<T> cosine_similarity(const Variable<T>&, const Variable<T>&, Int, double); \
  template Variable<T> cdist(const Variable<T>&, const Variable<T>&, T);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
