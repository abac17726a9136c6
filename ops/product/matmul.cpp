#include "matmul.hpp"

#include "../../base/detail/system/pieces.hpp"
#include "../../graph/record.hpp"
#include "../../kernels/gemm/gemm.hpp"
#include "../../kernels/index/axes.hpp"
#include "../index/masked_fill.hpp"
#include "../pointwise/broadcast.hpp"
#include "../shape/shapes.hpp"

namespace xgrad {
namespace {

/// y = the products of `count` matrices, of the places along two arrays' batch axes that `axes` gives. A
/// matrix that is `transposed` lies the other way in memory.
template <class T>
void multiply(const kernels::Axes<2>& axes, std::size_t count, const kernels::Matrix<const T>& a,
              const kernels::Matrix<const T>& b, T* y) {
  const std::size_t n = a.rows, k = a.cols, m = b.cols;
  const auto some = [&](std::size_t begin, std::size_t end) {
    kernels::for_each_outer(axes, 0, begin, end, [&](const auto& matrix, std::size_t number) {
      kernels::Matrix<const T> left = a, right = b;
      left.data += static_cast<std::size_t>(matrix[0]) * n * k;
      right.data += static_cast<std::size_t>(matrix[1]) * k * m;
      kernels::gemm<T>(1, left, right, 0, {y + number * n * m, n, m});
    });
  };
  constexpr std::size_t divided_product = std::size_t{1} << 22;  // gemm divides itself
  const std::size_t size = n * m * k;
  if (size >= divided_product) return some(0, count);
  kernels::parallel_pieces(count, size / 8 + 1, some);  // eight multiplications take as long as an addition
}

/// Of operands whose axes but the last are rows of one matrix.
template <class T>
Variable<T> product_of_rows(const Variable<T>& a, const kernels::Matrix<const T>& left,
                            const kernels::Matrix<const T>& right) {
  Shape shape = left.transposed ? Shape{left.rows, right.cols} : a.shape();
  shape.back() = right.cols;
  Variable<T> y = detail::empty<T>(shape, ops::matmul.name);
  kernels::gemm<T>(1, left, right, 0, {detail::data(y), left.rows, right.cols});
  return y;
}

/// Of matrices, whose leading axes broadcast.
template <class T>
Variable<T> product_of_batches(const Variable<T>& a, const Variable<T>& b,
                               const kernels::Matrix<const T>& left, const kernels::Matrix<const T>& right) {
  const Shape batch_a(a.shape().begin(), a.shape().end() - 2),
      batch_b(b.shape().begin(), b.shape().end() - 2);
  const std::optional<Shape> batch = detail::common_shape(batch_a, batch_b);
  if (!batch)
    detail::fail<ShapeError>("matmul: the batch axes must broadcast, got a ", a.shape(), " and b ",
                             b.shape());
  const detail::Strides a_strides = detail::broadcast_strides(batch_a, *batch),
                        b_strides = detail::broadcast_strides(batch_b, *batch);
  Shape shape = *batch;
  shape.push_back(left.rows);
  shape.push_back(right.cols);
  Variable<T> y = detail::empty<T>(shape, ops::matmul.name);
  multiply<T>(kernels::merge_axes<2>(*batch, {a_strides, b_strides}, 0), element_count(*batch), left, right,
              detail::data(y));
  return y;
}

}  // namespace

namespace detail {

template <class T>
Variable<T> matrix_product(const Variable<T>& a, bool trans_a, const Variable<T>& b, bool trans_b,
                           LeadingAxes leading) {
  const bool are_rows = leading == LeadingAxes::rows;
  const auto rows_of = [are_rows](const Variable<T>& x) {
    return are_rows ? row_count(x.shape()) : x.shape()[x.dimension() - 2];
  };
  const std::size_t rows_a = rows_of(a), cols_a = a.shape().back(), rows_b = rows_of(b),
                    cols_b = b.shape().back();
  const std::size_t k = trans_a ? rows_a : cols_a;
  const kernels::Matrix<const T> left{data(a), trans_a ? cols_a : rows_a, k, cols_a, trans_a},
      right{data(b), k, trans_b ? rows_b : cols_b, cols_b, trans_b};
  Variable<T> y = are_rows ? product_of_rows<T>(a, left, right) : product_of_batches<T>(a, b, left, right);
  return record<T>(
      ops::matmul, std::move(y), Inputs(a, b), Attributes(trans_a, trans_b),
      Saved(if_requires_grad(b, a), if_requires_grad(a, b)),
      [trans_a, trans_b, leading](Variable<T> dy, Needs needs, Variable<T> a, Variable<T> b) -> Grads<T, 2> {
        Grads<T, 2> grads;
        if (needs[0])
          grads[0] = trans_a ? matrix_product(b, trans_b, dy, true, leading)
                             : matrix_product(dy, false, b, !trans_b, leading);
        if (needs[1])
          grads[1] = trans_b ? matrix_product(dy, true, a, trans_a, leading)
                             : matrix_product(a, !trans_a, dy, false, leading);
        for (std::size_t i = 0; leading == LeadingAxes::batch && i < 2; ++i)
          if (needs[i]) grads[i] = summed(grads[i], needs.shape(i));
        return grads;
      });
}

}  // namespace detail

template <class T>
Variable<T> matmul(const Variable<T>& a, const Variable<T>& b) {
  const std::size_t rank_a = a.dimension(), rank_b = b.dimension();
  if (rank_a == 0 || rank_b == 0) {
    detail::fail<ShapeError>("matmul: both operands need at least one axis, got a ", a.shape(), " and b ",
                             b.shape());
  }
  if (a.shape().back() != b.shape()[rank_b == 1 ? 0 : rank_b - 2]) {
    detail::fail<ShapeError>("matmul: inner axes must agree, got a ", a.shape(), " and b ", b.shape());
  }
  if (rank_b == 1) {
    const Variable<T> column = matmul(a, reshape(b, {b.size(), 1}));
    return reshape(column, Shape(a.shape().begin(), a.shape().end() - 1));
  }
  if (rank_b == 2) return detail::matrix_product(a, false, b, false, detail::LeadingAxes::rows);
  if (rank_a == 1) {
    const Variable<T> row = detail::matrix_product(reshape(a, {1, a.size()}), false, b, false);
    Shape shape(b.shape().begin(), b.shape().end() - 1);
    shape.back() = b.shape().back();
    return reshape(row, shape);
  }
  return detail::matrix_product(a, false, b, false);
}

template <class T>
Variable<T> bmm(const Variable<T>& a, const Variable<T>& b) {
  const Shape &from = a.shape(), &to = b.shape();
  if (from.size() != 3 || to.size() != 3 || from[0] != to[0] || from[2] != to[1])
    detail::fail<ShapeError>("bmm: operands must be (B, n, k) and (B, k, m), got a ", from, " and b ", to);
  return detail::matrix_product(a, false, b, false);
}

template <class T>
Variable<T> gemm(const Variable<T>& a, const Variable<T>& b, const Variable<T>& c, GemmOptions options) {
  if (a.dimension() != 2 || b.dimension() != 2)
    detail::fail<ShapeError>("gemm: operands must be matrices, got a ", a.shape(), " and b ", b.shape());
  const Variable<T> left = options.trans_a ? transpose(a, 0, 1) : a,
                    right = options.trans_b ? transpose(b, 0, 1) : b;
  Variable<T> y = matmul(left, right);
  if (options.alpha != 1) y = mul(y, static_cast<T>(options.alpha));
  if (!c.defined()) return y;
  if (detail::common_shape(y.shape(), c.shape()) != y.shape())
    detail::fail<ShapeError>("gemm: c must broadcast to the product ", y.shape(), ", got ", c.shape());
  if (options.beta == 0)
    return c.requires_grad() ? y + masked_fill(c, Mask(Shape{}, true), 0) : y;  // c may be nan
  return y + (options.beta == 1 ? c : mul(c, static_cast<T>(options.beta)));
}

#define XGRAD_INSTANTIATE(T)                                                                          \
  template Variable<T> bmm(const Variable<T>&, const Variable<T>&);                                   \
  template Variable<T> gemm(const Variable<T>&, const Variable<T>&, const Variable<T>&, GemmOptions); \
  template Variable<T> matmul(const Variable<T>&, const Variable<T>&);                                \
  template Variable<T> detail::matrix_product(const Variable<T>&, bool, const Variable<T>&, bool,     \
                                              detail::LeadingAxes);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
