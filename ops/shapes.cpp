#include <xgrad/ops/shapes.hpp>

#include <algorithm>

#include <xgrad/graph/record.hpp>
#include <xgrad/ops/arithmetic.hpp>
#include <xgrad/ops/indexing.hpp>
#include <xgrad/ops/kernels/permute.hpp>

namespace xgrad {
namespace {

/// `shape` with its -1, if any, replaced by the length that makes the count come out.
Shape inferred(const Shape& from, const Dims& shape) {
  const std::size_t count = element_count(from);
  const auto refuse = [&](const char* why) {
    detail::fail<ShapeError>("reshape: ", why, ", got x ", from, " and shape ", to_string(shape));
  };
  Shape result;
  std::size_t known = 1;
  std::ptrdiff_t open = -1;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] < -1) refuse("a length must be at least 0, or -1 once");
    if (shape[axis] == -1 && open >= 0) refuse("only one length can be -1");
    if (shape[axis] == -1) open = static_cast<std::ptrdiff_t>(axis);
    result.push_back(shape[axis] == -1 ? 1 : static_cast<std::size_t>(shape[axis]));
    if (__builtin_mul_overflow(known, result.back(), &known))
      refuse("the number of elements must not change");
  }
  if (open >= 0) {
    if (known == 0) refuse("-1 cannot be inferred beside a length of 0");
    result[static_cast<std::size_t>(open)] = count / known;
  }
  if (open >= 0 ? count % known != 0 : count != known) refuse("the number of elements must not change");
  return result;
}

}  // namespace

std::string to_string(const Dims& dims) {
  std::string text = "(";
  for (std::size_t i = 0; i < dims.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(dims[i]);
  return text + ")";
}

template <class T>
Variable<T> reshape(const Variable<T>& x, const Dims& shape) {
  const Shape to = inferred(x.shape(), shape);
  Variable<T> y = detail::empty<T>(to);
  std::copy_n(detail::data(x), x.size(), detail::data(y));
  return record<T>("reshape", std::move(y), on(x), save(),
                   [](Variable<T> dy, Needs needs) -> Grads<T, 1> { return {reshape(dy, needs.shape(0))}; });
}

template <class T>
Variable<T> permute(const Variable<T>& x, const Dims& dims) {
  const std::size_t rank = x.dimension();
  Shape order(rank, 0), inverse(rank, rank);
  if (dims.size() != rank) {
    detail::fail<ShapeError>("permute: dims must name every axis of x once, got x ", x.shape(), " and dims ",
                             to_string(dims));
  }
  for (std::size_t k = 0; k < rank; ++k) {
    order[k] = detail::normalize_axis("permute", dims[k], x.shape());
    if (inverse[order[k]] != rank) {
      detail::fail<ShapeError>("permute: dims must name every axis of x once, got x ", x.shape(),
                               " and dims ", to_string(dims));
    }
    inverse[order[k]] = k;
  }

  const detail::Strides from = detail::row_major_strides(x.shape());
  detail::Strides strides(rank, 0);
  Shape shape(rank, 0);
  for (std::size_t k = 0; k < rank; ++k) {
    shape[k] = x.shape()[order[k]];
    strides[k] = from[order[k]];
  }
  Variable<T> y = detail::empty<T>(shape);
  kernels::permute(rank, shape.data(), strides.data(), detail::data(x), detail::data(y));
  return record<T>("permute", std::move(y), on(x), save(),
                   [inverse](Variable<T> dy, Needs) -> Grads<T, 1> { return {permute(dy, inverse)}; });
}

template <class T>
Variable<T> transpose(const Variable<T>& x, int dim0, int dim1) {
  const std::size_t first = detail::normalize_axis("transpose", dim0, x.shape());
  const std::size_t second = detail::normalize_axis("transpose", dim1, x.shape());
  Shape order(x.dimension(), 0);
  for (std::size_t axis = 0; axis < order.size(); ++axis) order[axis] = axis;
  std::swap(order[first], order[second]);
  return permute(x, order);
}

template <class T>
Variable<T> concat(const std::vector<Variable<T>>& parts, int dim) {
  if (parts.empty()) detail::fail<ValueError>("concat: parts must not be empty");
  const Shape& first = parts[0].shape();
  if (first.empty()) detail::fail<ShapeError>("concat: parts need at least one axis, got part 0 ()");
  const std::size_t axis = detail::normalize_axis("concat", dim, first, "part 0");
  Shape shape = first;
  shape[axis] = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Shape other = parts[i].shape();
    const std::size_t length = other.size() == first.size() ? std::exchange(other[axis], first[axis]) : 0;
    if (other != first) {
      detail::fail<ShapeError>("concat: parts must agree in every axis but ", axis, ", got part 0 ", first,
                               " and part ", i, " ", parts[i].shape());
    }
    shape[axis] += length;
  }

  Variable<T> y = detail::empty<T>(shape);
  std::size_t outer = 1;
  for (std::size_t k = 0; k < axis; ++k) outer *= shape[k];
  const std::size_t row = outer == 0 ? 0 : y.size() / outer;
  T* to = detail::data(y);
  for (const Variable<T>& part : parts) {
    const std::size_t width = outer == 0 ? 0 : part.size() / outer;
    for (std::size_t r = 0; r < outer; ++r) std::copy_n(detail::data(part) + r * width, width, to + r * row);
    to += width;
  }
  std::vector<std::ptrdiff_t> ends;
  ends.reserve(parts.size());
  for (const Variable<T>& part : parts) {
    ends.push_back((ends.empty() ? 0 : ends.back()) + static_cast<std::ptrdiff_t>(part.shape()[axis]));
  }
  return record_list<T>("concat", std::move(y), parts,
                        [axis, ends = std::move(ends)](Variable<T> dy, Needs needs) {
                          std::vector<Variable<T>> grads(ends.size());
                          for (std::size_t i = 0; i < ends.size(); ++i) {
                            if (needs[i])
                              grads[i] = slice(dy, static_cast<int>(axis), i > 0 ? ends[i - 1] : 0, ends[i]);
                          }
                          return grads;
                        });
}

template Variable<float> reshape(const Variable<float>&, const Dims&);
template Variable<double> reshape(const Variable<double>&, const Dims&);
template Variable<float> permute(const Variable<float>&, const Dims&);
template Variable<double> permute(const Variable<double>&, const Dims&);
template Variable<float> transpose(const Variable<float>&, int, int);
template Variable<double> transpose(const Variable<double>&, int, int);
template Variable<float> concat(const std::vector<Variable<float>>&, int);
template Variable<double> concat(const std::vector<Variable<double>>&, int);

}  // namespace xgrad
