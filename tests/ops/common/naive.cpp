#include "naive.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace xgrad_tests::naive {
namespace {

Numbers matrix_product(const Numbers& a, const Numbers& b) {
  const std::size_t n = a.shape()[a.dimension() - 2], k = a.shape().back(), m = b.shape().back();
  const Shape batch =
      stretched(Shape(a.shape().begin(), a.shape().end() - 2), Shape(b.shape().begin(), b.shape().end() - 2));
  return generated(joined(batch, {n, m}), [&](const Shape& index) {
    double total = 0;
    for (std::size_t i = 0; i < k; ++i)
      total += at(a, with(index, index.size() - 1, i)) * at(b, with(index, index.size() - 2, i));
    return total;
  });
}

/// The shape with length 1 on the reduced axes, and that of the result.
std::pair<Shape, Shape> reduced(const Shape& shape, const Dims& axes, bool keepdim) {
  const std::size_t rank = shape.size();
  std::vector<bool> goes(rank, false);
  for (const std::ptrdiff_t axis : axes) {
    if (rank > 0)
      goes[static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::ptrdiff_t>(rank) : axis)] = true;
  }
  Shape ones = shape, result;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (goes[axis]) ones[axis] = 1;
    if (keepdim || !goes[axis]) result.push_back(ones[axis]);
  }
  return {ones, result};
}

}  // namespace

void for_each_index(const Shape& shape, const std::function<void(const Shape&)>& f) {
  Shape index(shape.size(), 0);
  for (std::size_t n = xgrad::element_count(shape); n > 0; --n) {
    f(index);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
}

std::size_t position(const Shape& shape, const Shape& index) {
  const std::size_t shift = index.size() - shape.size();
  std::size_t offset = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    offset = offset * shape[axis] + (shape[axis] == 1 ? 0 : index[shift + axis]);
  return offset;
}

Shape joined(Shape front, std::initializer_list<std::size_t> back) {
  for (const std::size_t length : back) front.push_back(length);
  return front;
}

Shape without(Shape shape, std::size_t axis) {
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  return shape;
}

Shape with(Shape shape, std::size_t axis, std::size_t length) {
  shape[axis] = length;
  return shape;
}

Shape stretched(const Shape& a, const Shape& b) {
  const std::size_t rank = std::max(a.size(), b.size());
  Shape shape(rank, 1);
  for (const Shape* one : {&a, &b}) {
    for (std::size_t axis = 0; axis < one->size(); ++axis) {
      std::size_t& length = shape[rank - one->size() + axis];
      if ((*one)[axis] != 1) length = (*one)[axis];
    }
  }
  return shape;
}

Numbers filled(const Shape& shape, double value) {
  Numbers y = Numbers::from_shape(shape);
  std::fill(y.storage().begin(), y.storage().end(), value);
  return y;
}

Numbers generated(const Shape& shape, const std::function<double(const Shape&)>& f) {
  Numbers y = Numbers::from_shape(shape);
  for_each_index(shape, [&](const Shape& index) { at(y, index) = f(index); });
  return y;
}

Numbers reshaped(const Numbers& x, const Shape& shape) {
  Numbers y = Numbers::from_shape(shape);
  std::copy(x.data(), x.data() + x.size(), y.data());
  return y;
}

Numbers sum_over(const Numbers& x, const Shape& kept) {
  Numbers y = filled(kept, 0), lost = y;  // what each sum has lost to rounding (Kahan)
  for_each_index(x.shape(), [&](const Shape& index) {
    const double term = at(x, index) - at(lost, index), sum = at(y, index) + term;
    at(lost, index) = (sum - at(y, index)) - term;
    at(y, index) = sum;
  });
  return y;
}

double logsumexp_along(const Numbers& x, Shape index, std::size_t axis) {
  double largest = -std::numeric_limits<double>::infinity(), total = 0;
  for (index[axis] = 0; index[axis] < x.shape()[axis]; ++index[axis])
    largest = std::max(largest, at(x, index));
  for (index[axis] = 0; index[axis] < x.shape()[axis]; ++index[axis])
    total += std::exp(at(x, index) - largest);
  return largest + std::log(total);
}

Numbers logsumexp(const Numbers& x, std::size_t axis) {
  return generated(with(x.shape(), axis, 1),
                   [&](const Shape& index) { return logsumexp_along(x, index, axis); });
}

Numbers folded(const Numbers& x, const Dims& axes, bool keepdim, double start,
               double (*combine)(double, double)) {
  const auto [ones, shape] = reduced(x.shape(), axes, keepdim);
  Numbers y = filled(ones, start);
  for_each_index(x.shape(), [&](const Shape& index) { at(y, index) = combine(at(y, index), at(x, index)); });
  return reshaped(y, shape);
}

Reference map(double (*f)(double)) {
  return [f](const Arguments& x) {
    return generated(x[0].shape(), [&](const Shape& index) { return f(at(x[0], index)); });
  };
}

Reference binary(double (*f)(double, double)) {
  return [f](const Arguments& x) {
    return generated(stretched(x[0].shape(), x[1].shape()),
                     [&](const Shape& index) { return f(at(x[0], index), at(x[1], index)); });
  };
}

Reference broadcast_to(Shape shape) {
  return [shape](const Arguments& x) {
    return generated(shape, [&](const Shape& index) { return at(x[0], index); });
  };
}

Reference matmul() {
  return [](const Arguments& x) {
    const Shape &a = x[0].shape(), &b = x[1].shape();
    const Shape row = a.size() == 1 ? Shape{1, a[0]} : a, column = b.size() == 1 ? Shape{b[0], 1} : b;
    const Numbers y = matrix_product(reshaped(x[0], row), reshaped(x[1], column));
    Shape shape = y.shape();
    if (b.size() == 1) shape = without(shape, shape.size() - 1);
    if (a.size() == 1) shape = without(shape, shape.size() - (b.size() == 1 ? 1 : 2));
    return reshaped(y, shape);
  };
}

Reference linear() {
  return [](const Arguments& x) {
    return generated(with(x[0].shape(), x[0].dimension() - 1, x[1].shape()[0]), [&](const Shape& index) {
      double total = x.size() > 2 ? at(x[2], {index.back()}) : 0;
      for (std::size_t i = 0; i < x[1].shape()[1]; ++i)
        total += at(x[0], with(index, index.size() - 1, i)) * at(x[1], {index.back(), i});
      return total;
    });
  };
}

Reference log_softmax(std::size_t axis) {
  return [axis](const Arguments& x) {
    if (x[0].dimension() == 0) return filled({}, 0);
    const Numbers normalizer = logsumexp(x[0], axis);
    return generated(x[0].shape(),
                     [&](const Shape& index) { return at(x[0], index) - at(normalizer, index); });
  };
}

Reference masked_fill(Mask mask, double value) {
  return [mask, value](const Arguments& x) {
    return generated(stretched(x[0].shape(), mask.shape()),
                     [&](const Shape& index) { return at(mask, index) ? value : at(x[0], index); });
  };
}

Reference sum(Dims axes, bool keepdim) {
  return [axes, keepdim](const Arguments& x) {
    const auto [ones, shape] = reduced(x[0].shape(), axes, keepdim);
    return reshaped(sum_over(x[0], ones), shape);
  };
}

Reference mean(Dims axes, bool keepdim) {
  return [axes, keepdim](const Arguments& x) {
    Numbers y = sum(axes, keepdim)(x);
    for (double& element : y.storage())
      element *= static_cast<double>(y.size()) / static_cast<double>(x[0].size());
    return y;
  };
}

Reference reshape(Shape shape) {
  return [shape](const Arguments& x) { return reshaped(x[0], shape); };
}

Reference permute(Shape order) {
  return [order](const Arguments& x) {
    Shape shape = order;
    for (std::size_t k = 0; k < order.size(); ++k) shape[k] = x[0].shape()[order[k]];
    return generated(shape, [&](const Shape& index) {
      Shape source = index;
      for (std::size_t k = 0; k < order.size(); ++k) source[order[k]] = index[k];
      return at(x[0], source);
    });
  };
}

Reference slice(std::size_t axis, std::size_t first, std::size_t count, std::size_t step) {
  return [=](const Arguments& x) {
    return generated(with(x[0].shape(), axis, count), [&](const Shape& index) {
      return at(x[0], with(index, axis, first + step * index[axis]));
    });
  };
}

Reference taken(Shape shape, std::function<std::optional<Shape>(const Shape&)> from) {
  return [shape, from](const Arguments& x) {
    return generated(shape, [&](const Shape& index) {
      const std::optional<Shape> source = from(index);
      return source ? at(x[0], *source) : 0.0;
    });
  };
}

}  // namespace xgrad_tests::naive
