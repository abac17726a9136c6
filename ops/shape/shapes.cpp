#include "shapes.hpp"

#include <algorithm>
#include <iterator>

#include "../../graph/record_many.hpp"
#include "../../kernels/index/permute.hpp"
#include "../index/indexing.hpp"
#include "../pointwise/broadcast.hpp"

namespace xgrad {
namespace {

/// An array of `shape` from those of the parts, which follow each other for every index of the axes before
/// `axis`.
template <class T>
Variable<T> joined(const std::vector<Variable<T>>& parts, std::size_t axis, const Shape& shape) {
  Variable<T> y = detail::empty<T>(shape);
  if (y.size() == 0) return y;
  std::size_t outer = 1;
  for (std::size_t k = 0; k < axis; ++k) outer *= shape[k];
  const std::size_t row = y.size() / outer;
  const std::size_t height = std::max<std::size_t>(1, 4096 / row);  // rows at a time, to write in order
  T* to = detail::data(y);
  for (std::size_t top = 0; top < outer; top += height) {
    const std::size_t rows = std::min(height, outer - top);
    T* place = to + top * row;
    for (const Variable<T>& part : parts) {
      const std::size_t width = part.size() / outer;
      kernels::copy_rows<T>({detail::data(part) + top * width, rows, width}, {place, rows, width, row});
      place += width;
    }
  }
  return y;
}

}  // namespace

Shape detail::reshaped(const Shape& from, const Dims& shape) {
  const std::size_t count = element_count(from);
  const auto refuse = [&](const char* why) {
    fail<ShapeError>("reshape: ", why, ", got x ", from, " and shape ", to_string(shape));
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

std::string to_string(const Dims& dims) {
  std::string text = "(";
  for (std::size_t i = 0; i < dims.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(dims[i]);
  return text + ")";
}

template <class T>
Variable<T> reshape(const Variable<T>& x, const Dims& shape) {
  const Shape to = detail::reshaped(x.shape(), shape);
  Variable<T> y = detail::empty<T>(to);
  std::copy_n(detail::data(x), x.size(), detail::data(y));
  return record<T>(ops::reshape, std::move(y), Inputs(x), Attributes(to), Saved(),
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
  kernels::permute<T>(shape, {detail::data(x), strides}, detail::data(y));
  return record<T>(ops::permute, std::move(y), Inputs(x), Attributes(order), Saved(),
                   [inverse](Variable<T> dy, Needs) -> Grads<T, 1> { return {permute(dy, inverse)}; });
}

template <class T>
Variable<T> transpose(const Variable<T>& x, Int dim0, Int dim1) {
  const auto of_scalar = [](Int dim) { return dim == 0 || dim == -1; };
  if (x.dimension() == 0 && of_scalar(dim0) && of_scalar(dim1)) return reshape(x, x.shape());
  const std::size_t first = detail::normalize_axis("transpose", dim0, x.shape());
  const std::size_t second = detail::normalize_axis("transpose", dim1, x.shape());
  Shape order(x.dimension(), 0);
  for (std::size_t axis = 0; axis < order.size(); ++axis) order[axis] = axis;
  std::swap(order[first], order[second]);
  return permute(x, order);
}

template <class T>
Variable<T> flatten(const Variable<T>& x, Int start_dim, Int end_dim) {
  if (x.dimension() == 0 && start_dim >= -1 && start_dim <= 0 && end_dim >= -1 && end_dim <= 0)
    return reshape(x, 1);
  const std::size_t first = detail::normalize_axis("flatten", start_dim, x.shape());
  const std::size_t last = detail::normalize_axis("flatten", end_dim, x.shape());
  if (first > last) {
    detail::fail<ValueError>("flatten: start_dim must not come after end_dim, got ", start_dim, " and ",
                             end_dim, " for x ", x.shape());
  }
  Shape shape;
  for (std::size_t axis = 0; axis < x.dimension(); ++axis) {
    if (axis > first && axis <= last) {
      shape.back() *= x.shape()[axis];
    } else {
      shape.push_back(x.shape()[axis]);
    }
  }
  return reshape(x, shape);
}

template <class T>
Variable<T> unsqueeze(const Variable<T>& x, Int dim) {
  Shape longer = x.shape();
  longer.push_back(1);
  const std::size_t place = detail::normalize_axis("unsqueeze", dim, longer, "x with one more axis");
  Shape shape;
  for (std::size_t axis = 0; axis < longer.size(); ++axis) {
    shape.push_back(axis == place ? 1 : x.shape()[axis < place ? axis : axis - 1]);
  }
  return reshape(x, shape);
}

template <class T>
Variable<T> squeeze(const Variable<T>& x) {
  Shape shape;
  for (const std::size_t length : x.shape()) {
    if (length != 1) shape.push_back(length);
  }
  return reshape(x, shape);
}

template <class T>
Variable<T> squeeze(const Variable<T>& x, Int dim) {
  if (x.dimension() == 0 && (dim == 0 || dim == -1)) return reshape(x, x.shape());
  const std::size_t axis = detail::normalize_axis("squeeze", dim, x.shape());
  Shape shape = x.shape();
  if (shape[axis] == 1) shape.erase(shape.begin() + axis);
  return reshape(x, shape);
}

template <class T>
Variable<T> expand(const Variable<T>& x, const Dims& shape) {
  const std::size_t rank = x.dimension(), shift = shape.size() - std::min(rank, shape.size());
  bool fits = shape.size() >= rank;
  Shape target;
  for (std::size_t axis = 0; fits && axis < shape.size(); ++axis) {
    const bool keeps = shape[axis] == -1 && axis >= shift;
    fits = keeps || shape[axis] >= 0;
    target.push_back(keeps ? x.shape()[axis - shift] : static_cast<std::size_t>(shape[axis]));
  }
  if (!fits || detail::common_shape(x.shape(), target) != target) {
    detail::fail<ShapeError>("expand: x must broadcast to shape, got x ", x.shape(), " and shape ",
                             to_string(shape));
  }
  return broadcast_to(x, target);
}

template <class T>
Variable<T> stack(const std::vector<Variable<T>>& parts, Int dim) {
  if (parts.empty()) detail::fail<ValueError>("stack: parts must not be empty");
  for (const Variable<T>& part : parts) {
    if (!same_shape(part.shape(), parts[0].shape())) {
      detail::fail<ShapeError>("stack: parts must have one shape, got ", parts[0].shape(), " and ",
                               part.shape());
    }
  }
  Shape shape = parts[0].shape();
  shape.push_back(1);
  const std::size_t axis = detail::normalize_axis("stack", dim, shape, "part 0 with one more axis");
  std::copy_backward(shape.begin() + axis, shape.end() - 1, shape.end());
  shape[axis] = parts.size();
  return record_list<T>(ops::stack, joined(parts, axis, shape), parts, Attributes(axis),
                        [axis, count = parts.size()](Variable<T> dy, Needs needs) {
                          std::vector<Variable<T>> grads(count);
                          for (std::size_t i = 0; i < count; ++i) {
                            if (needs[i])
                              grads[i] = select(dy, static_cast<int>(axis), static_cast<std::ptrdiff_t>(i));
                          }
                          return grads;
                        });
}

template <class T>
std::vector<Variable<T>> split(const Variable<T>& x, const std::vector<std::ptrdiff_t>& lengths, Int dim) {
  const std::size_t axis = detail::normalize_axis("split", dim, x.shape());
  std::ptrdiff_t end = 0;
  bool fits = true;
  for (const std::ptrdiff_t length : lengths)
    fits = fits && length >= 0 && !__builtin_add_overflow(end, length, &end);
  if (!fits || end != static_cast<std::ptrdiff_t>(x.shape()[axis])) {
    detail::fail<ValueError>("split: lengths must be at least 0 and add up to the length of axis ", axis,
                             " of x ", x.shape());
  }
  std::vector<Variable<T>> parts;
  parts.reserve(lengths.size());
  std::ptrdiff_t start = 0;
  for (const std::ptrdiff_t length : lengths) {
    parts.push_back(narrow(x, dim, start, length));
    start += length;
  }
  return parts;
}

template <class T>
std::vector<Variable<T>> split(const Variable<T>& x, Int length, Int dim) {
  if (length < 1) detail::fail<ValueError>("split: length must be at least 1, got ", length);
  const auto whole = static_cast<std::ptrdiff_t>(x.shape(dim));
  std::vector<std::ptrdiff_t> lengths(static_cast<std::size_t>(whole / length), length);
  if (whole % length != 0 || whole == 0) lengths.push_back(whole % length);
  return split(x, lengths, dim);
}

template <class T>
Variable<T> cat(const std::vector<Variable<T>>& parts, Int dim) {
  if (parts.empty()) detail::fail<ValueError>("cat: parts must not be empty");
  const auto left_out = [](const Variable<T>& part) { return part.dimension() == 1 && part.size() == 0; };
  std::vector<Variable<T>> counted;
  std::remove_copy_if(parts.begin(), parts.end(), std::back_inserter(counted), left_out);
  if (!counted.empty() && counted.size() < parts.size()) return cat(counted, dim);
  const Shape& first = parts[0].shape();
  if (first.empty()) detail::fail<ShapeError>("cat: parts need at least one axis, got part 0 ()");
  const std::size_t axis = detail::normalize_axis("cat", dim, first, "part 0");
  Shape shape = first;
  shape[axis] = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Shape other = parts[i].shape();
    const std::size_t length = other.size() == first.size() ? std::exchange(other[axis], first[axis]) : 0;
    if (other != first) {
      detail::fail<ShapeError>("cat: parts must agree in every axis but ", axis, ", got part 0 ", first,
                               " and part ", i, " ", parts[i].shape());
    }
    shape[axis] += length;
  }

  std::vector<std::ptrdiff_t> ends;
  ends.reserve(parts.size());
  for (const Variable<T>& part : parts) {
    ends.push_back((ends.empty() ? 0 : ends.back()) + static_cast<std::ptrdiff_t>(part.shape()[axis]));
  }
  return record_list<T>(ops::cat, joined(parts, axis, shape), parts, Attributes(axis),
                        [axis, ends = std::move(ends)](Variable<T> dy, Needs needs) {
                          std::vector<Variable<T>> grads(ends.size());
                          for (std::size_t i = 0; i < ends.size(); ++i) {
                            if (needs[i])
                              grads[i] = slice(dy, static_cast<int>(axis), i > 0 ? ends[i - 1] : 0, ends[i]);
                          }
                          return grads;
                        });
}

template <class T>
Variable<T> mT(const Variable<T>& x) {
  if (x.dimension() < 2) detail::fail<ShapeError>("mT: x must have at least two axes, got ", x.shape());
  return transpose(x, -2, -1);
}

#define XGRAD_INSTANTIATE(T)                                                                            \
  template Variable<T> reshape(const Variable<T>&, const Dims&);                                        \
  template Variable<T> permute(const Variable<T>&, const Dims&);                                        \
  template Variable<T> transpose(const Variable<T>&, Int, Int);                                         \
  template Variable<T> mT(const Variable<T>&);                                                          \
  template Variable<T> flatten(const Variable<T>&, Int, Int);                                           \
  template Variable<T> unsqueeze(const Variable<T>&, Int);                                              \
  template Variable<T> squeeze(const Variable<T>&);                                                     \
  template Variable<T> squeeze(const Variable<T>&, Int);                                                \
  template Variable<T> expand(const Variable<T>&, const Dims&);                                         \
  template Variable<T> cat(const std::vector<Variable<T>>&, Int);                                       \
  template Variable<T> stack(const std::vector<Variable<T>>&, Int);                                     \
  template std::vector<Variable<T>> split(const Variable<T>&, const std::vector<std::ptrdiff_t>&, Int); \
  template std::vector<Variable<T>> split(const Variable<T>&, Int, Int);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
