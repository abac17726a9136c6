#include <xgrad/ops/reductions.hpp>

#include <xgrad/graph/record.hpp>
#include <xgrad/ops/arithmetic.hpp>
#include <xgrad/ops/shapes.hpp>

namespace xgrad {
namespace {

/// What a reduction over some axes leaves.
struct Reduced {
  Shape kept;             // with length 1 on the reduced axes
  Shape dropped;          // without them
  std::size_t count = 1;  // elements that went into each result
};

Reduced reduced(const char* op, const Shape& shape, const Dims& dims) {
  Shape seen(shape.size(), 0);
  for (const std::ptrdiff_t dim : dims) {
    if (shape.empty() && (dim == 0 || dim == -1)) continue;
    if (seen[detail::normalize_axis(op, dim, shape)]++ != 0) {
      detail::fail<ValueError>(op, ": dims must name an axis once, got ", to_string(dims), " for x ", shape);
    }
  }
  Reduced result;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    result.kept.push_back(seen[axis] != 0 ? 1 : shape[axis]);
    if (seen[axis] != 0) {
      result.count *= shape[axis];
    } else {
      result.dropped.push_back(shape[axis]);
    }
  }
  return result;
}

template <class T>
Variable<T> sum_over(const Variable<T>& x, const Reduced& result, bool keepdim) {
  const Variable<T> y = sum_to(x, result.kept);
  return keepdim ? y : reshape(y, result.dropped);
}

}  // namespace

template <class T>
Variable<T> sum(const Variable<T>& x) {
  return sum_to(x, Shape{});
}

template <class T>
Variable<T> sum(const Variable<T>& x, const Dims& dims, bool keepdim) {
  return sum_over(x, reduced("sum", x.shape(), dims), keepdim);
}

template <class T>
Variable<T> mean(const Variable<T>& x) {
  return div(sum(x), static_cast<T>(x.size()));
}

template <class T>
Variable<T> mean(const Variable<T>& x, const Dims& dims, bool keepdim) {
  const Reduced result = reduced("mean", x.shape(), dims);
  return div(sum_over(x, result, keepdim), static_cast<T>(result.count));
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
