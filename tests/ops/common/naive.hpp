#pragma once

// What ops must compute, as slow loops in double that share nothing with the library's kernels: references
// that several ops need, and what references are made of.

#include <functional>
#include <initializer_list>
#include <optional>
#include <vector>

#include "op.hpp"

namespace xgrad_tests::naive {

using Numbers = Array<double>;
using Arguments = std::vector<Numbers>;

// Indices

/// Calls f with every index into an array of this shape, in row-major order.
void for_each_index(const Shape& shape, const std::function<void(const Shape&)>& f);

/// Where the element lies; leading axes that x has not are ignored, those of length 1 stretch.
std::size_t position(const Shape& shape, const Shape& index);

template <class Elements>
auto& at(Elements& x, const Shape& index) {
  return x.data()[position(x.shape(), index)];
}

Shape joined(Shape front, std::initializer_list<std::size_t> back);
Shape without(Shape shape, std::size_t axis);
Shape with(Shape shape, std::size_t axis, std::size_t length);

/// What two shapes broadcast to.
Shape stretched(const Shape& a, const Shape& b);

// Arrays

Numbers filled(const Shape& shape, double value);

/// y[index] = f(index).
Numbers generated(const Shape& shape, const std::function<double(const Shape&)>& f);

Numbers reshaped(const Numbers& x, const Shape& shape);

/// x summed to a shape that broadcasts to its own.
Numbers sum_over(const Numbers& x, const Shape& kept);

/// log(sum(exp(x))) along the axis of x that the index lies on.
double logsumexp_along(const Numbers& x, Shape index, std::size_t axis);

/// The same everywhere along the axis, which has length 1 then.
Numbers logsumexp(const Numbers& x, std::size_t axis);

/// combine(start, element, ...) over the axes, element by element.
Numbers folded(const Numbers& x, const Dims& axes, bool keepdim, double start,
               double (*combine)(double, double));

// References

Reference map(double (*f)(double));
Reference binary(double (*f)(double, double));
Reference broadcast_to(Shape shape);
Reference matmul();

/// x, weight (out, in) and perhaps a bias.
Reference linear();

Reference log_softmax(std::size_t axis);
Reference masked_fill(Mask mask, double value);
Reference sum(Dims axes, bool keepdim);
Reference mean(Dims axes, bool keepdim);
Reference reshape(Shape shape);
Reference permute(Shape order);
Reference slice(std::size_t axis, std::size_t first, std::size_t count, std::size_t step);

/// y[index] = x[from(index)], or 0 where that is nothing; y has this shape.
Reference taken(Shape shape, std::function<std::optional<Shape>(const Shape&)> from);

}  // namespace xgrad_tests::naive
