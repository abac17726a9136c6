#pragma once

// For the tests of linear algebra: matrices in double by textbook loops, and inputs that are not
// ill-conditioned.

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <utility>
#include <vector>

#include <xgrad/ops/linalg/diagonal.hpp>
#include <xgrad/ops/product/matmul.hpp>
#include <xgrad/ops/shape/shapes.hpp>

#include "draw.hpp"
#include "naive.hpp"

namespace xgrad_tests::naive {

struct Matrix {
  Matrix(std::size_t rows, std::size_t cols) : rows(rows), cols(cols), elements(rows * cols) {}

  double& operator()(std::size_t r, std::size_t c) { return elements[r * cols + c]; }
  double operator()(std::size_t r, std::size_t c) const { return elements[r * cols + c]; }

  std::size_t rows, cols;
  std::vector<double> elements;
};

/// With diagonal(i) at (i, i), 0 elsewhere.
Matrix diagonal_matrix(std::size_t n, const std::function<double(std::size_t)>& diagonal);

/// The columns of v times 1, 2, ...
Matrix weighted(const Matrix& v);

Matrix identity(std::size_t n, double value = 1);
Matrix transpose(const Matrix& a);
Matrix operator*(const Matrix& a, const Matrix& b);
Matrix operator*(double factor, Matrix a);
Matrix operator+(Matrix a, const Matrix& b);
/// The element-wise square.
Matrix squares(Matrix a);

/// X with a X = b and the determinant of a, by elimination.
std::pair<Matrix, double> eliminated(Matrix a, Matrix b);
Matrix solved(const Matrix& a, const Matrix& b);
double determinant(const Matrix& a);

Matrix cholesky(const Matrix& a);

/// The eigenvalues of a symmetric matrix, ascending, and the eigenvectors as columns, by Jacobi's rotations.
struct Eigen {
  std::vector<double> values;
  Matrix vectors;
};
Eigen eigen(Matrix a);

/// The pseudo-inverse of a matrix of full rank, by the normal equations.
Matrix pseudo_inverse(const Matrix& a);

/// f of the matrices at each place of the batch axes, which broadcast; the result has `shape_behind` behind
/// them, or the shape of f's matrix.
Reference of_matrices(std::function<Matrix(const std::vector<Matrix>&)> f,
                      std::function<Shape(const std::vector<Matrix>&)> shape_behind = nullptr);
inline Shape no_axes(const std::vector<Matrix>&) { return {}; }

/// x x^T + n / 2, which is positive-definite.
Matrix definite(const Matrix& x);
/// x + 3 n on the diagonal, which is invertible.
Matrix dominant(const Matrix& x);
/// (x + x^T) / 2 + diag(0, 8, 16, ...), whose eigenvalues are apart.
Matrix spread(const Matrix& x);
/// x (m, n) + diag(3, 7, 11, ...), whose singular values are apart.
Matrix apart(Matrix x);

}  // namespace xgrad_tests::naive

namespace xgrad_tests {

// The same for variables

template <class T, class Element>
Variable<T> plus_diagonal(const Variable<T>& x, const Element& element) {
  Array<T> diagonal = Array<T>::from_shape({x.shape(-1)});
  for (std::size_t i = 0; i < diagonal.size(); ++i) diagonal(i) = static_cast<T>(element(i));
  return x + diag_embed(Variable<T>(diagonal));
}

template <class T>
Variable<T> definite(const Variable<T>& x) {
  return plus_diagonal(matmul(x, mT(x)), [&](std::size_t) { return 0.5 * static_cast<double>(x.shape(-1)); });
}

template <class T>
Variable<T> dominant(const Variable<T>& x) {
  return plus_diagonal(x, [&](std::size_t) { return 3.0 * static_cast<double>(x.shape(-1)); });
}

template <class T>
Variable<T> spread(const Variable<T>& x) {
  return plus_diagonal((x + mT(x)) * T(0.5), [](std::size_t i) { return 8.0 * static_cast<double>(i); });
}

template <class T>
Variable<T> apart(const Variable<T>& x) {
  Array<T> shift(Shape{x.shape(-2), x.shape(-1)}, T{0});
  for (std::size_t i = 0; i < std::min(x.shape(-2), x.shape(-1)); ++i)
    shift(i, i) = static_cast<T>(4 * i + 3);
  return x + Variable<T>(shift);
}

/// The columns of v times 1, 2, ...: weighted(v) mT(v) does not depend on their signs.
template <class T>
Variable<T> weighted(const Variable<T>& v) {
  Array<T> weights = Array<T>::from_shape({v.shape(-1)});
  for (std::size_t i = 0; i < weights.size(); ++i) weights(i) = static_cast<T>(i + 1);
  return v * Variable<T>(weights);
}

/// A matrix of one column.
Array<double> column(std::initializer_list<double> elements);

/// Square matrices of the orders for which there are loops, and of those for which LAPACK is called; batches.
inline const std::vector<std::vector<Input>> square_matrices{
    {{1, 1}}, {{2, 2}}, {{3, 3}}, {{5, 5}}, {{11, 11}}, {{2, 3, 3}}, {{2, 2, 4, 4}}, {{0, 3, 3}}, {{0, 0}}};

/// Matrices with more rows than columns, with fewer, and with as many.
inline const std::vector<std::vector<Input>> rectangles{{{3, 3}},    {{5, 2}}, {{2, 5}},  {{2, 4, 3}},
                                                        {{2, 3, 4}}, {{1, 4}}, {{10, 9}}, {{0, 2, 3}}};

/// Drawn matrices (..., rows, cols) with elements in [-1, 1].
Name drawn_matrices(Drawing& d, std::size_t rows, std::size_t cols);
/// m + diag(values), of order n.
Name drawn_plus_diagonal(Drawing& d, const Name& m, const std::function<double(std::size_t)>& diagonal);
/// Drawn matrices of order n that are far from singular; the positive-definite ones are symmetric.
Name drawn_dominant(Drawing& d, std::size_t n);
Name drawn_definite(Drawing& d, std::size_t n);
/// left diag(1, 2, ...) right: what does not depend on the signs of vectors that belong together.
Name drawn_product_of_vectors(Drawing& d, const Name& left, const Name& right);
Name drawn_transpose(Drawing& d, const Name& m);

/// A draw for matrices of order 1 to 4.
Draw matrix_draw(const char* op, const std::function<void(Drawing&, std::size_t n)>& add);

}  // namespace xgrad_tests
