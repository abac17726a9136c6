#include "matrices.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace xgrad_tests::naive {

Matrix diagonal_matrix(std::size_t n, const std::function<double(std::size_t)>& diagonal) {
  Matrix a(n, n);
  for (std::size_t i = 0; i < n; ++i) a(i, i) = diagonal(i);
  return a;
}

Matrix weighted(const Matrix& v) {
  return v * diagonal_matrix(v.cols, [](std::size_t i) { return static_cast<double>(i + 1); });
}

Matrix identity(std::size_t n, double value) {
  return diagonal_matrix(n, [=](std::size_t) { return value; });
}

Matrix transpose(const Matrix& a) {
  Matrix y(a.cols, a.rows);
  for (std::size_t r = 0; r < a.rows; ++r)
    for (std::size_t c = 0; c < a.cols; ++c) y(c, r) = a(r, c);
  return y;
}

Matrix operator*(const Matrix& a, const Matrix& b) {
  Matrix y(a.rows, b.cols);
  for (std::size_t r = 0; r < a.rows; ++r)
    for (std::size_t k = 0; k < a.cols; ++k)
      for (std::size_t c = 0; c < b.cols; ++c) y(r, c) += a(r, k) * b(k, c);
  return y;
}

Matrix operator*(double factor, Matrix a) {
  for (double& element : a.elements) element *= factor;
  return a;
}

Matrix operator+(Matrix a, const Matrix& b) {
  for (std::size_t i = 0; i < a.elements.size(); ++i) a.elements[i] += b.elements[i];
  return a;
}

Matrix squares(Matrix a) {
  for (double& element : a.elements) element *= element;
  return a;
}

std::pair<Matrix, double> eliminated(Matrix a, Matrix b) {
  double determinant = 1;
  for (std::size_t k = 0; k < a.rows; ++k) {
    std::size_t best = k;
    for (std::size_t r = k; r < a.rows; ++r)
      if (std::abs(a(r, k)) > std::abs(a(best, k))) best = r;
    if (best != k) determinant = -determinant;
    for (std::size_t c = 0; c < a.cols; ++c) std::swap(a(k, c), a(best, c));
    for (std::size_t c = 0; c < b.cols; ++c) std::swap(b(k, c), b(best, c));
    determinant *= a(k, k);
    for (std::size_t r = 0; r < a.rows; ++r) {
      if (r == k) continue;
      const double factor = a(r, k) / a(k, k);
      for (std::size_t c = 0; c < a.cols; ++c) a(r, c) -= factor * a(k, c);
      for (std::size_t c = 0; c < b.cols; ++c) b(r, c) -= factor * b(k, c);
    }
  }
  for (std::size_t r = 0; r < b.rows; ++r)
    for (std::size_t c = 0; c < b.cols; ++c) b(r, c) /= a(r, r);
  return {b, determinant};
}

Matrix solved(const Matrix& a, const Matrix& b) { return eliminated(a, b).first; }
double determinant(const Matrix& a) { return eliminated(a, identity(a.rows)).second; }

Matrix cholesky(const Matrix& a) {
  Matrix l(a.rows, a.rows);
  for (std::size_t r = 0; r < a.rows; ++r) {
    for (std::size_t c = 0; c <= r; ++c) {
      double sum = a(r, c);
      for (std::size_t k = 0; k < c; ++k) sum -= l(r, k) * l(c, k);
      l(r, c) = r == c ? std::sqrt(sum) : sum / l(c, c);
    }
  }
  return l;
}

Matrix pseudo_inverse(const Matrix& a) {
  const Matrix t = transpose(a);
  return a.rows >= a.cols ? solved(t * a, t) : t * solved(a * t, identity(a.rows));
}

Eigen eigen(Matrix a) {
  const std::size_t n = a.rows;
  Matrix v = identity(n);
  const auto rotate = [](double& x, double& y, double cosine, double sine) {
    const double old = x;
    x = cosine * x - sine * y;
    y = sine * old + cosine * y;
  };
  for (int sweep = 0; sweep < 15; ++sweep) {
    for (std::size_t p = 0; p < n; ++p) {
      for (std::size_t q = p + 1; q < n; ++q) {
        if (a(p, q) == 0) continue;
        const double angle = 0.5 * std::atan2(2 * a(p, q), a(q, q) - a(p, p)), cosine = std::cos(angle),
                     sine = std::sin(angle);
        for (std::size_t i = 0; i < n; ++i) rotate(a(i, p), a(i, q), cosine, sine);
        for (std::size_t i = 0; i < n; ++i) rotate(a(p, i), a(q, i), cosine, sine);
        for (std::size_t i = 0; i < n; ++i) rotate(v(i, p), v(i, q), cosine, sine);
      }
    }
  }
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t k) { return a(i, i) < a(k, k); });
  Eigen result{std::vector<double>(n), Matrix(n, n)};
  for (std::size_t c = 0; c < n; ++c) {
    result.values[c] = a(order[c], order[c]);
    for (std::size_t r = 0; r < n; ++r) result.vectors(r, c) = v(r, order[c]);
  }
  return result;
}

Reference of_matrices(std::function<Matrix(const std::vector<Matrix>&)> f,
                      std::function<Shape(const std::vector<Matrix>&)> shape_behind) {
  return [=](const Arguments& x) {
    std::vector<Shape> batches;
    std::vector<Matrix> taken;
    Shape batch;
    for (const Numbers& one : x) {
      batches.emplace_back(one.shape().begin(), one.shape().end() - 2);
      batch = stretched(batch, batches.back());
      taken.emplace_back(one.shape()[one.dimension() - 2], one.shape().back());
    }
    std::vector<double> all;
    for_each_index(batch, [&](const Shape& index) {
      for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t size = taken[i].elements.size();
        std::copy_n(x[i].data() + position(batches[i], index) * size, size, taken[i].elements.data());
      }
      const Matrix y = f(taken);
      all.insert(all.end(), y.elements.begin(), y.elements.end());
    });
    Shape shape = batch;
    if (shape_behind) {
      for (const std::size_t length : shape_behind(taken)) shape.push_back(length);
    } else {
      const Matrix y = f(taken);
      shape.push_back(y.rows);
      shape.push_back(y.cols);
    }
    Numbers result = Numbers::from_shape(shape);
    std::copy(all.begin(), all.end(), result.data());
    return result;
  };
}

Matrix definite(const Matrix& x) {
  return x * transpose(x) + identity(x.rows, 0.5 * static_cast<double>(x.rows));
}

Matrix dominant(const Matrix& x) { return x + identity(x.rows, 3.0 * static_cast<double>(x.rows)); }

Matrix spread(const Matrix& x) {
  return 0.5 * (x + transpose(x)) +
         diagonal_matrix(x.rows, [](std::size_t i) { return 8.0 * static_cast<double>(i); });
}

Matrix apart(Matrix x) {
  for (std::size_t i = 0; i < std::min(x.rows, x.cols); ++i) x(i, i) += static_cast<double>(4 * i + 3);
  return x;
}

}  // namespace xgrad_tests::naive

namespace xgrad_tests {

Array<double> column(std::initializer_list<double> elements) {
  Array<double> y = Array<double>::from_shape({elements.size(), 1});
  std::copy(elements.begin(), elements.end(), y.data());
  return y;
}

Name drawn_matrices(Drawing& d, std::size_t rows, std::size_t cols) {
  Shape shape = d.chance(0.5) ? Shape{} : Shape{1 + d.below(3)};
  shape.push_back(rows);
  shape.push_back(cols);
  return d.within(d.numbers(shape), {-1, 1});
}

Name drawn_plus_diagonal(Drawing& d, const Name& m, const std::function<double(std::size_t)>& diagonal) {
  Array<double> elements = Array<double>::from_shape({d.shape(m).back()});
  for (std::size_t i = 0; i < elements.size(); ++i) elements(i) = diagonal(i);
  const Name embedded =
      drawn(d, "diag_embed", {d.leaf({{.numbers = Variable<double>(elements)}, false})},
            {{"offset", std::ptrdiff_t{0}}, {"dim1", std::ptrdiff_t{-2}}, {"dim2", std::ptrdiff_t{-1}}});
  return drawn(d, "add", {m, embedded});
}

Name drawn_dominant(Drawing& d, std::size_t n) {
  return drawn_plus_diagonal(d, drawn_matrices(d, n, n),
                             [](std::size_t i) { return 5 + static_cast<double>(i); });
}

Name drawn_definite(Drawing& d, std::size_t n) {
  const Name m = drawn_matrices(d, n, n);
  return drawn_plus_diagonal(d, drawn(d, "matmul", {m, drawn_transpose(d, m)}),
                             [](std::size_t) { return 2; });
}

Name drawn_product_of_vectors(Drawing& d, const Name& left, const Name& right) {
  Array<double> weights = Array<double>::from_shape({d.shape(left).back()});
  std::iota(weights.begin(), weights.end(), 1.0);
  const Name weighted = drawn(d, "mul", {left, d.leaf({{.numbers = Variable<double>(weights)}, false})});
  const Name product = drawn(d, "matmul", {weighted, right});
  for (const Name& name : {left, right, weighted}) d.hide_of_any_sign(name);
  return product;
}

Name drawn_transpose(Drawing& d, const Name& m) { return drawn(d, "mT", {m}); }

Draw matrix_draw(const char* op, const std::function<void(Drawing&, std::size_t)>& add) {
  return {op, [add](Drawing& d) { add(d, 1 + d.below(4)); }};
}

}  // namespace xgrad_tests
