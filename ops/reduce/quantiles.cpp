#include "quantiles.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "../index/where.hpp"
#include "../pointwise/arithmetic.hpp"
#include "detail/elements_at.hpp"

namespace xgrad {
namespace {

using detail::middle_axis, detail::MiddleAxis;

/// The indices of the elements of these ranks along the axis, which has this order; those of a nan in lines
/// with one.
template <class T>
Ids indices_of_ranks(const Variable<T>& x, const MiddleAxis& m, const Ids& order,
                     const std::vector<std::size_t>& ranks) {
  Ids ids = Ids::from_shape(detail::with_length(x.shape(), m, ranks.size()));
  for (std::size_t line = 0; line < m.outer * m.inner; ++line) {
    const std::size_t o = line / m.inner, c = line % m.inner;
    const auto place = [&](std::size_t i) { return (o * m.length + i) * m.inner + c; };
    const std::int64_t last = order.data()[place(m.length - 1)];
    const bool has_nan = std::isnan(detail::data(x)[place(static_cast<std::size_t>(last))]);
    for (std::size_t k = 0; k < ranks.size(); ++k) {
      ids.data()[(o * ranks.size() + k) * m.inner + c] = has_nan ? last : order.data()[place(ranks[k])];
    }
  }
  return ids;
}

MiddleAxis axis_of_ranks(const char* op, const Shape& shape, std::ptrdiff_t dim) {
  const MiddleAxis m = middle_axis(op, dim, shape);
  if (m.length == 0) detail::fail<ValueError>(op, ": there are no elements to choose from in x ", shape);
  return m;
}

/// Ranks around each q, and how far each q is from the first to the second.
template <class T>
struct RanksOf {
  std::vector<std::size_t> below, above;
  Array<T> weights;  // of those above
};

template <class T>
RanksOf<T> ranks_of(const std::vector<T>& q, std::size_t length, Interpolation interpolation) {
  RanksOf<T> ranks{{}, {}, Array<T>::from_shape({q.size()})};
  for (std::size_t k = 0; k < q.size(); ++k) {
    if (!(q[k] >= 0 && q[k] <= 1)) detail::fail<ValueError>("quantile: q must be in [0, 1], got ", q[k]);
    // a float cannot count more than 2^24 ranks, nor fractions of them
    const auto last = static_cast<double>(length - 1);
    const double rank =
        std::is_same_v<T, float> && last < 0x1p20 ? double{q[k] * static_cast<T>(last)} : q[k] * last;
    double below = std::floor(rank), above = std::ceil(rank);
    if (interpolation == Interpolation::lower) above = below;
    if (interpolation == Interpolation::higher) below = above;
    if (interpolation == Interpolation::nearest) below = above = std::nearbyint(rank);
    ranks.below.push_back(std::min(static_cast<std::size_t>(below), length - 1));
    ranks.above.push_back(std::min(static_cast<std::size_t>(above), length - 1));
    ranks.weights(k) = above == below                             ? T{0}
                       : interpolation == Interpolation::midpoint ? T(0.5)
                                                                  : rank - below;
  }
  return ranks;
}

/// The quantiles in place of the axis.
template <class T>
Variable<T> quantiles(const Variable<T>& x, const std::vector<T>& q, const MiddleAxis& m,
                      Interpolation interpolation) {
  RanksOf<T> ranks = ranks_of(q, m.length, interpolation);
  const auto dim = static_cast<std::ptrdiff_t>(m.axis);
  const Ids order = argsort(x.detach(), dim);
  const Variable<T> below = gather(x, dim, indices_of_ranks(x, m, order, ranks.below));
  if (ranks.below == ranks.above) return below;
  Shape along(x.dimension(), 1);
  along[m.axis] = q.size();
  ranks.weights.reshape(along);
  const Mask whole = xt::equal(ranks.weights, T{0});  // 0 times an infinity would be nan
  const Variable<T> above = gather(x, dim, indices_of_ranks(x, m, order, ranks.above));
  const Variable<T> weights(std::move(ranks.weights));
  const Variable<T> between = lerp(below, above, weights);
  // the difference of infinities, or of numbers far apart, has no value
  const Mask by_difference = xt::isfinite(above.value() - below.value());
  const bool all_have = std::all_of(by_difference.begin(), by_difference.end(), std::identity());
  const Variable<T> y =
      all_have ? between : where(by_difference, between, below * (T{1} - weights) + above * weights);
  return where(whole, below, y);
}

}  // namespace

template <class T>
Variable<T> median(const Variable<T>& x) {
  return median(reshape(x, x.size()), 0).values;
}

template <class T>
Ranked<T> median(const Variable<T>& x, Int dim, ReduceOptions options) {
  const MiddleAxis m = axis_of_ranks("median", x.shape(), dim);
  const Ids order = argsort(x.detach(), dim);
  return detail::elements_at(x, dim, indices_of_ranks(x, m, order, {(m.length - 1) / 2}), m, options.keepdim);
}

template <class T>
Variable<T> quantile(const Variable<T>& x, const std::vector<std::type_identity_t<T>>& q, Int dim,
                     QuantileOptions options) {
  const MiddleAxis m = axis_of_ranks("quantile", x.shape(), dim);
  if (x.dimension() == 0) return quantiles(reshape(x, 1), q, m, options.interpolation);
  const Variable<T> y = quantiles(x, q, m, options.interpolation);
  std::vector<std::ptrdiff_t> dims(x.dimension());  // the axis first
  std::iota(dims.begin(), dims.end(), std::ptrdiff_t{0});
  std::rotate(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(m.axis),
              dims.begin() + static_cast<std::ptrdiff_t>(m.axis) + 1);
  const Variable<T> turned = permute(y, Dims(dims.begin(), dims.end()));
  return options.keepdim ? unsqueeze(turned, m.axis + 1) : turned;
}

#define XGRAD_INSTANTIATE(T)                                         \
  template Variable<T> median(const Variable<T>&);                   \
  template Ranked<T> median(const Variable<T>&, Int, ReduceOptions); \
  template Variable<T> quantile(const Variable<T>&, const std::vector<T>&, Int, QuantileOptions);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
