#include "matrices.hpp"

#include <algorithm>
#include <optional>

#include "../../../base/detail/arrays/broadcast.hpp"
#include "../../shape/shapes.hpp"

namespace xgrad::detail {

void check_matrices(const char* op, const Shape& shape, const char* name) {
  if (shape.size() < 2) fail<ShapeError>(op, ": ", name, " must be matrices (..., m, n), got ", shape);
}

std::size_t matrix_order(const char* op, const Shape& shape, const char* name) {
  if (shape.size() < 2 || shape[shape.size() - 2] != shape.back())
    fail<ShapeError>(op, ": ", name, " must be square matrices (..., n, n), got ", shape);
  return shape.back();
}

Shape batch_axes(const Shape& shape) { return Shape(shape.begin(), shape.end() - 2); }

std::size_t matrix_count(const Shape& shape) { return element_count(batch_axes(shape)); }

std::string matrix_place(const Shape& shape, std::size_t number) {
  Shape place = batch_axes(shape);
  if (place.empty()) return "the matrix";
  for (std::size_t axis = place.size(); axis-- > 0;)
    number /= std::exchange(place[axis], number % place[axis]);
  return "matrix " + to_string(place);
}

Shape matrices(Shape batch, std::size_t rows, std::size_t cols) {
  batch.push_back(rows);
  batch.push_back(cols);
  return batch;
}

template <class T>
std::pair<Variable<T>, Variable<T>> in_common_batch(const char* op, const Variable<T>& a,
                                                    const Variable<T>& b) {
  const Shape of_a = batch_axes(a.shape()), of_b = batch_axes(b.shape());
  if (of_a == of_b) return {a, b};
  const std::optional<Shape> common = common_shape(of_a, of_b);
  if (!common)
    fail<ShapeError>(op, ": the batch axes must broadcast, got a ", a.shape(), " and b ", b.shape());
  const auto expanded = [&](const Variable<T>& x) {
    return expand(x, matrices(*common, x.shape(-2), x.shape(-1)));
  };
  return {expanded(a), expanded(b)};
}

template <class T>
Variable<T> copy_of(const Variable<T>& x) {
  Variable<T> y = empty<T>(x.shape());
  std::copy_n(data(x), x.size(), data(y));
  return y;
}

#define XGRAD_INSTANTIATE(T)                                                                    \
  template std::pair<Variable<T>, Variable<T>> in_common_batch(const char*, const Variable<T>&, \
                                                               const Variable<T>&);             \
  template Variable<T> copy_of(const Variable<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::detail
