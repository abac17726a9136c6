#include "interpolate.hpp"

#include <algorithm>
#include <cmath>

#include "../detail/entry_of.hpp"
#include "detail/axes.hpp"
#include "detail/separable.hpp"

namespace xgrad {
namespace {

/// The weight of an element at the distance d, of Keys's cubic convolution.
template <class T>
T cubic_weight(T d) {
  constexpr T a = T(-0.75);
  return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

/// Along an axis. In T throughout, as PyTorch computes: rounding decides which element is the nearest.
template <class T>
kernels::SparseMatrix<T> interpolation_matrix(std::size_t length, std::size_t count,
                                              InterpolateOptions options) {
  kernels::SparseMatrix<T> matrix;
  matrix.cols = length;
  const bool is_cubic = options.mode == InterpolateMode::bicubic;
  const T edges = static_cast<T>(length) / static_cast<T>(count);
  const T centres = count > 1 ? static_cast<T>(length - 1) / static_cast<T>(count - 1) : T(0);
  const auto clamped = [&](std::ptrdiff_t place) {
    return static_cast<std::size_t>(
        std::clamp<std::ptrdiff_t>(place, 0, static_cast<std::ptrdiff_t>(length) - 1));
  };
  const auto add = [&](std::ptrdiff_t place, T weight) {
    if (weight != 0) matrix.add(clamped(place), weight);  // 0 times an infinity would be nan
  };
  for (std::size_t i = 0; i < count; ++i, matrix.end_row()) {
    const T number = static_cast<T>(i);
    if (options.mode == InterpolateMode::nearest) {
      add(static_cast<std::ptrdiff_t>(std::floor(number * edges)), 1);
      continue;
    }
    T place = options.align_corners ? number * centres : edges * (number + T(0.5)) - T(0.5);
    if (!is_cubic) place = std::max(place, T(0));
    const T before = std::floor(place), t = place - before;
    const auto first = static_cast<std::ptrdiff_t>(before);
    if (is_cubic) {
      for (std::ptrdiff_t k = -1; k < 3; ++k) add(first + k, cubic_weight(std::abs(static_cast<T>(k) - t)));
    } else {
      add(first, 1 - t);
      add(first + 1, t);
    }
  }
  return matrix;
}

}  // namespace

template <class T>
Variable<T> interpolate(const Variable<T>& x, const Dims& size, InterpolateOptions options) {
  constexpr const char* names[] = {"nearest", "linear", "bilinear", "bicubic"};
  const char* const mode = detail::entry_of("interpolate", "mode", names, options.mode);
  const std::size_t least =
      options.mode == InterpolateMode::bilinear || options.mode == InterpolateMode::bicubic ? 2 : 1;
  const std::size_t most = options.mode == InterpolateMode::linear ? 1 : 2;
  const std::size_t axes = x.dimension() < 2 ? 0 : x.dimension() - 2;
  if (axes < least || axes > most || element_count(Shape(x.shape().begin() + 2, x.shape().end())) == 0) {
    const char* const wanted = most == 1    ? "(N, C, L)"
                               : least == 2 ? "(N, C, H, W)"
                                            : "(N, C, L) or (N, C, H, W)";
    detail::fail<ShapeError>("interpolate: x must have the axes ", wanted, " with elements for the mode ",
                             mode, ", got x ", x.shape());
  }
  if (options.align_corners && options.mode == InterpolateMode::nearest)
    detail::fail<ValueError>("interpolate: align_corners is not for the mode nearest");
  const detail::PerAxis lengths = detail::per_axis("interpolate", "size", size, axes, 1, 1);
  return detail::separable(
      ops::interpolate, x,
      detail::axis_matrices(axes, interpolation_matrix<T>(axes == 2 ? x.shape(2) : 1, lengths.rows, options),
                            interpolation_matrix<T>(x.shape().back(), lengths.cols, options)),
      Attributes(size, mode, options.align_corners));
}

#define XGRAD_INSTANTIATE(T) \
  template Variable<T> interpolate(const Variable<T>&, const Dims&, InterpolateOptions);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
