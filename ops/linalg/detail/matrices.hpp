#pragma once

// Shared code of the linear algebra ops: batches of matrices (..., m, n).

#include <string>
#include <utility>

#include "../../../base/detail/product_precision.hpp"
#include "../../../base/detail/system/pieces.hpp"
#include "../../../graph/variable.hpp"

namespace xgrad::detail {

/// Throws ShapeError for fewer than two axes.
void check_matrices(const char* op, const Shape& shape, const char* name = "a");

/// The n of matrices (..., n, n). Throws ShapeError for others.
std::size_t matrix_order(const char* op, const Shape& shape, const char* name = "a");

/// All axes but the last two, and the number of matrices.
Shape batch_axes(const Shape& shape);
std::size_t matrix_count(const Shape& shape);

/// "matrix (1, 2)" for one of a batch, "the matrix" if there are no batch axes.
std::string matrix_place(const Shape& shape, std::size_t number);

/// The shape of matrices (rows, cols) with these batch axes.
Shape matrices(Shape batch, std::size_t rows, std::size_t cols);

/// Two batches of matrices, expanded to common batch axes. Throws ShapeError if they do not broadcast.
template <class T>
std::pair<Variable<T>, Variable<T>> in_common_batch(const char* op, const Variable<T>& a,
                                                    const Variable<T>& b);

/// Makes products of this thread, and those in the gradients of what it records, float32 products regardless
/// of the requested precision, for the lifetime of the object: rounded ones would not match the factors of
/// LAPACK.
class ExactProducts : RoundingScope {
 public:
  ExactProducts() : RoundingScope(false) {}
};

/// An unshared copy of x's elements.
template <class T>
Variable<T> copy_of(const Variable<T>& x);

/// Calls f(number) for each of `count` matrices that each cost as much as n^3 additions, in parallel.
template <class F>
void for_each_matrix(std::size_t count, std::size_t n, const F& f) {
  kernels::parallel_pieces(count, n * n * n + 1, [&f](std::size_t begin, std::size_t end) {
    for (std::size_t number = begin; number < end; ++number) f(number);
  });
}

}  // namespace xgrad::detail
