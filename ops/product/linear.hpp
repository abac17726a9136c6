#pragma once

#include "../../graph/op.hpp"
#include "weight.hpp"

namespace xgrad {

/// y = x weight^T + bias, with x (..., in), weight (out, in), bias (out) or undefined, y (..., out). A weight
/// (in) gives y (...), and takes no bias.
///
/// dx = dy weight, dweight = dy^T x, dbias = dy, the latter two summed over all rows.
/// Throws ShapeError "linear: the last axis of x must be weight's last, got x (2, 3) and weight (4, 5)".
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.linear.html
template <class T>
Variable<T> linear(const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias = {});

/// The same for a weight (out, in) of any type.
///
/// Of bfloat16 numbers: y = x weight^T + bias with the numbers as they are, of which up to 8 rows of x read
/// each once, at the speed of memory. dx and dbias are as above.
///
/// Of 8-bit integers: y = x' weight^T + bias, where x' is x with the numbers of each row, and 0, rounded to
/// 254 equal steps from the smallest to the largest. The products of integers are added exactly: a row of y
/// depends on no other row. Rows that are not finite are nan, and those whose largest number is below 1e-35
/// are 0. It has no gradient: throws ValueError where it would be recorded.
/// Source: Dettmers et al. 2022, arXiv:2208.07339, section 2 (vector-wise quantization, zeropoint).
template <class T>
Variable<T> linear(const Variable<T>& x, const Weight<T>& weight, const Variable<T>& bias = {});

/// What takes x to linear(x, weight, bias): a weight (out, in) and a bias (out), or an undefined one.
template <class T>
struct Projection {
  Weight<T> weight;
  Variable<T> bias = {};
};

/// relu(linear(x, weight, bias)) as one node of the graph, for a weight (out, in): y = max(0, x weight^T +
/// bias).
///
/// With g = dy where y > 0, else 0: dx = g weight, dweight = g^T x, dbias = g, the latter two summed over all
/// rows. Throws ShapeError as linear does.
template <class T>
Variable<T> linear_relu(const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias);
/// The same for a weight of any type.
template <class T>
Variable<T> linear_relu(const Variable<T>& x, const Weight<T>& weight, const Variable<T>& bias);

namespace ops {

inline constexpr Op linear("linear", {"x", "weight", "bias"});
inline constexpr Op linear_relu("linear_relu", {"x", "weight", "bias"});
/// linear with a weight of these types, which is no input.
inline constexpr Op bfloat16_linear("bfloat16_linear", {"x", "bias"});
inline constexpr Op int8_linear("int8_linear", {"x", "bias"});

}  // namespace ops
}  // namespace xgrad
