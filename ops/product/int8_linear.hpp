#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

namespace kernels {
class Int8Matrix;
}

/// The weight (out, in) of a linear layer as 8-bit integers, each row of which has a scale: a fourth of the
/// memory, and no gradient. Copies share the integers.
class Int8Weight {
 public:
  /// Rounds each row of a weight to scale times integers from -127 to 127, with scale = max |row| / 127.
  /// Throws ShapeError unless it is (out, in) with at most 65,536 columns, ValueError for a row that is not
  /// finite.
  explicit Int8Weight(const Array<float>& weight);

  /// The integers (out, in) and the scales (out). Throws ShapeError unless they fit together, and for more
  /// columns.
  Int8Weight(std::span<const std::int8_t> values, std::span<const float> scales, const Shape& shape);

  /// (out, in)
  Shape shape() const;
  /// The integers (out, in).
  std::vector<std::int8_t> values() const;
  /// (out)
  std::vector<float> scales() const;

  const kernels::Int8Matrix& matrix() const noexcept { return *matrix_; }

 private:
  std::shared_ptr<const kernels::Int8Matrix> matrix_;
};

/// y = x' weight^T + bias, with x (..., in), weight (out, in), bias (out) or undefined, y (..., out), where
/// x' is x with the numbers of each row, and 0, rounded to 254 equal steps from the smallest to the largest.
/// The products of integers are added exactly: a row of y depends on no other row. Rows that are not finite
/// are nan, and those whose largest number is below 1e-35 are 0.
///
/// It has no gradient: throws ValueError where it would be recorded. Throws ShapeError as linear does.
/// Source: Dettmers et al. 2022, arXiv:2208.07339, section 2 (vector-wise quantization, zeropoint).
Variable<float> int8_linear(const Variable<float>& x, const Int8Weight& weight,
                            const Variable<float>& bias = {});

namespace detail {

/// Throws ValueError if an op with 8-bit weights is to be recorded.
void refuse_int8_gradient(const char* op, bool will_record);

}  // namespace detail

namespace ops {

inline constexpr Op int8_linear("int8_linear", {"x", "bias"});

}  // namespace ops
}  // namespace xgrad
