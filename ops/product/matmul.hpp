#pragma once

#include "../../base/detail/by_name.hpp"
#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

/// y = a b, as numpy.matmul and torch.matmul.
///
/// a (..., n, k), b (..., k, m), y (..., n, m): the leading axes broadcast as batches. A 1-D operand is a row
/// (a) or a column (b) whose added axis is removed from y; two of them give a scalar. da = dy b^T, db = a^T
/// dy, summed over stretched batch axes. Throws ShapeError
/// "matmul: inner axes must agree, got a (2, 3) and b (4, 5)".
/// https://pytorch.org/docs/stable/generated/torch.matmul.html
template <class T>
Variable<T> matmul(const Variable<T>& a, const Variable<T>& b);
template <class A, class B>
requires detail::VariableAndExpression<A, B> detail::variable_of<A, B> matmul(A&& a, B&& b) {
  return matmul(detail::variable_of<A, B>(a), detail::variable_of<A, B>(b));
}

/// Matrix products of batches: a (B, n, k), b (B, k, m), y (B, n, m), without broadcasting.
/// https://pytorch.org/docs/stable/generated/torch.bmm.html
template <class T>
Variable<T> bmm(const Variable<T>& a, const Variable<T>& b);

struct GemmOptions {
  detail::ByName by_name = {};
  double alpha = 1, beta = 1;
  bool trans_a = false, trans_b = false;
};

/// alpha A B + beta C for matrices, with A and B transposed according to the options; C broadcasts, or is
/// undefined. https://onnx.ai/onnx/operators/onnx__Gemm.html
template <class T>
Variable<T> gemm(const Variable<T>& a, const Variable<T>& b, const Variable<T>& c = {},
                 GemmOptions options = {});

namespace detail {

/// What axes before the last two are.
enum class LeadingAxes {
  batch,  ///< of matrices, which broadcast
  rows,   ///< of one matrix, as all axes but the last are: a weight's products, and their gradients
};

/// y = op(a) op(b) on the last two axes, or of operands as rows, where op transposes if flagged. Closed under
/// differentiation: the gradients are products with other flags, without transposed copies.
template <class T>
Variable<T> matrix_product(const Variable<T>& a, bool trans_a, const Variable<T>& b, bool trans_b,
                           LeadingAxes leading = LeadingAxes::batch);

}  // namespace detail

namespace ops {

inline constexpr Op matmul("matmul", {"a", "b"}, {"trans_a", "trans_b"});

}  // namespace ops
}  // namespace xgrad
