#pragma once

// What the ops of linear algebra share: batches of matrices (..., m, n).

#include <string>
#include <utility>

#include "../../../base/detail/pieces.hpp"
#include "../../../base/detail/product_precision.hpp"
#include "../../../graph/variable.hpp"

namespace xgrad::detail {

/// Throws ShapeError unless there are two axes.
void check_matrices(const char* op, const Shape& shape, const char* name = "a");

/// The n of matrices (..., n, n). Throws ShapeError for others.
std::size_t matrix_order(const char* op, const Shape& shape, const char* name = "a");

/// All axes but the last two, and how many matrices these count.
Shape batch_axes(const Shape& shape);
std::size_t matrix_count(const Shape& shape);

/// "matrix (1, 2)" for one of a batch, "the matrix" if there are no batch axes.
std::string matrix_place(const Shape& shape, std::size_t number);

/// The shape of matrices (rows, cols) with these batch axes.
Shape matrices(Shape batch, std::size_t rows, std::size_t cols);

/// Two batches of matrices, expanded to common batch axes. Throws ShapeError if there are none.
template <class T>
std::pair<Variable<T>, Variable<T>> in_common_batch(const char* op, const Variable<T>& a,
                                                    const Variable<T>& b);

/// While one lives, products of this thread are those of floats, whatever precision is asked for, and so are
/// the products in the gradients of what is recorded: rounded ones would not fit the factors of LAPACK.
class ExactProducts : kernels::PartsScope {
 public:
  ExactProducts() : PartsScope(0) {}
};

/// A copy of x's elements, which nothing else refers to.
template <class T>
Variable<T> copy_of(const Variable<T>& x);

/// Calls f(number) for each of `count` matrices that cost as much as n^3 additions each, divided among
/// threads.
template <class F>
void for_each_matrix(std::size_t count, std::size_t n, const F& f) {
  kernels::parallel_pieces(count, n * n * n + 1, [&f](std::size_t begin, std::size_t end) {
    for (std::size_t number = begin; number < end; ++number) f(number);
  });
}

}  // namespace xgrad::detail
