#include <xgrad/ops/indexing.hpp>

#include <algorithm>

#include <xgrad/graph/record.hpp>
#include <xgrad/ops/arithmetic.hpp>
#include <xgrad/ops/kernels/binary.hpp>
#include <xgrad/ops/kernels/permute.hpp>

namespace xgrad {
namespace {

using detail::Strides;

/// Where a part of an array lies in it.
struct Part {
  std::size_t offset;
  Strides strides;
  Shape shape;
};

template <class T>
Variable<T> put_back(const char* op, const Variable<T>& x, const Part& part, const Shape& whole);

/// The part of x. Its gradient is put_back, whose own gradient is take: the two are closed under
/// differentiation.
template <class T>
Variable<T> take(const char* op, const Variable<T>& x, const Part& part) {
  Variable<T> y = detail::empty<T>(part.shape);
  kernels::permute(part.shape.size(), part.shape.data(), part.strides.data(), detail::data(x) + part.offset,
                   detail::data(y));
  return record<T>(op, std::move(y), on(x), save(), [op, part](Variable<T> dy, Needs needs) -> Grads<T, 1> {
    return {put_back(op, dy, part, needs.shape(0))};
  });
}

/// Zeros of shape `whole` but for x in its part.
template <class T>
Variable<T> put_back(const char* op, const Variable<T>& x, const Part& part, const Shape& whole) {
  Variable<T> y = detail::empty<T>(whole);
  kernels::fill(T{0}, detail::data(y), y.size());
  kernels::scatter_add(part.shape.size(), part.shape.data(), part.strides.data(), detail::data(x),
                       detail::data(y) + part.offset);
  return record<T>(op, std::move(y), on(x), save(),
                   [op, part](Variable<T> dy, Needs) -> Grads<T, 1> { return {take(op, dy, part)}; });
}

}  // namespace

template <class T>
Variable<T> select(const Variable<T>& x, int dim, std::ptrdiff_t index) {
  const std::size_t axis = detail::normalize_axis("select", dim, x.shape());
  const auto length = static_cast<std::ptrdiff_t>(x.shape()[axis]);
  if (index < -length || index >= length) {
    detail::fail<IndexError>("select: index ", index, " is out of range for axis ", axis, " of x ",
                             x.shape());
  }
  Part part{0, detail::row_major_strides(x.shape()), x.shape()};
  const std::ptrdiff_t position = index < 0 ? index + length : index;
  part.offset = static_cast<std::size_t>(position * part.strides[axis]);
  part.strides.erase(part.strides.begin() + axis);
  part.shape.erase(part.shape.begin() + axis);
  return take("select", x, part);
}

template <class T>
Variable<T> slice(const Variable<T>& x, int dim, std::ptrdiff_t start, std::ptrdiff_t end,
                  std::ptrdiff_t step) {
  const std::size_t axis = detail::normalize_axis("slice", dim, x.shape());
  if (step < 1) detail::fail<ValueError>("slice: step must be at least 1, got ", step);
  const auto length = static_cast<std::ptrdiff_t>(x.shape()[axis]);
  const auto clamped = [length](std::ptrdiff_t bound) {
    return std::clamp<std::ptrdiff_t>(bound < 0 ? bound + length : bound, 0, length);
  };
  const std::ptrdiff_t first = clamped(start), last = std::max(clamped(end), first);
  Part part{0, detail::row_major_strides(x.shape()), x.shape()};
  part.shape[axis] = static_cast<std::size_t>((last - first) / step + ((last - first) % step != 0 ? 1 : 0));
  if (part.shape[axis] > 0) part.offset = static_cast<std::size_t>(first * part.strides[axis]);
  if (part.shape[axis] > 1) part.strides[axis] *= step;
  return take("slice", x, part);
}

template Variable<float> select(const Variable<float>&, int, std::ptrdiff_t);
template Variable<double> select(const Variable<double>&, int, std::ptrdiff_t);
template Variable<float> slice(const Variable<float>&, int, std::ptrdiff_t, std::ptrdiff_t, std::ptrdiff_t);
template Variable<double> slice(const Variable<double>&, int, std::ptrdiff_t, std::ptrdiff_t, std::ptrdiff_t);

}  // namespace xgrad
