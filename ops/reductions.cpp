#include <xgrad/ops/reductions.hpp>

#include <xgrad/graph/record.hpp>
#include <xgrad/ops/arithmetic.hpp>
#include <xgrad/ops/shapes.hpp>

namespace xgrad {
namespace {

/// x's shape with length 1 on the axes to reduce.
Shape kept_shape(const char* op, const Shape& shape, const Dims& dims) {
  Shape kept = shape;
  Shape seen(shape.size(), 0);
  for (const std::ptrdiff_t dim : dims) {
    if (shape.empty() && (dim == 0 || dim == -1)) continue;
    const std::size_t axis = detail::normalize_axis(op, dim, shape);
    if (seen[axis]++ != 0) {
      detail::fail<ValueError>(op, ": dims must name an axis once, got ", to_string(dims), " for x ", shape);
    }
    kept[axis] = 1;
  }
  return kept;
}

Shape squeezed(const Shape& shape, const Dims& dims) {
  Shape keep(shape.size(), 1);
  for (const std::ptrdiff_t dim : dims) {
    if (!shape.empty()) keep[detail::normalize_axis("sum", dim, shape)] = 0;
  }
  Shape result;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (keep[axis] != 0) result.push_back(shape[axis]);
  }
  return result;
}

template <class T>
Variable<T> reduce(const char* op, const Variable<T>& x, const Dims& dims, bool keepdim) {
  const Variable<T> y = sum_to(x, kept_shape(op, x.shape(), dims));
  return keepdim ? y : reshape(y, squeezed(x.shape(), dims));
}

}  // namespace

template <class T>
Variable<T> sum(const Variable<T>& x) {
  return sum_to(x, Shape{});
}

template <class T>
Variable<T> sum(const Variable<T>& x, const Dims& dims, bool keepdim) {
  return reduce("sum", x, dims, keepdim);
}

template <class T>
Variable<T> mean(const Variable<T>& x) {
  return div(sum(x), static_cast<T>(x.size()));
}

template <class T>
Variable<T> mean(const Variable<T>& x, const Dims& dims, bool keepdim) {
  const Variable<T> total = reduce("mean", x, dims, keepdim);
  std::size_t count = 1;
  for (const std::ptrdiff_t dim : dims) {
    if (x.dimension() > 0) count *= x.shape()[detail::normalize_axis("mean", dim, x.shape())];
  }
  return div(total, static_cast<T>(count));
}

template Variable<float> sum(const Variable<float>&);
template Variable<double> sum(const Variable<double>&);
template Variable<float> sum(const Variable<float>&, const Dims&, bool);
template Variable<double> sum(const Variable<double>&, const Dims&, bool);
template Variable<float> mean(const Variable<float>&);
template Variable<double> mean(const Variable<double>&);
template Variable<float> mean(const Variable<float>&, const Dims&, bool);
template Variable<double> mean(const Variable<double>&, const Dims&, bool);

}  // namespace xgrad
