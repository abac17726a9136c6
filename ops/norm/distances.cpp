#include "distances.hpp"

#include "../pointwise/arithmetic.hpp"
#include "../pointwise/broadcast.hpp"
#include "../pointwise/elementwise.hpp"
#include "../reduce/reductions.hpp"
#include "../shape/shapes.hpp"

namespace xgrad {

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
  return norm(unsqueeze(a, -2) - unsqueeze(b, -3), p, {-1});
}

#define XGRAD_INSTANTIATE(T)                                                                   \
  template Variable<T> normalize(const Variable<T>&, Int, NormalizeOptions);                   \
  template Variable<T> cosine_similarity(const Variable<T>&, const Variable<T>&, Int, double); \
  template Variable<T> cdist(const Variable<T>&, const Variable<T>&, T);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
