#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

/// The weight (out, in) of a linear layer as bfloat16 numbers, the upper halves of floats: half of the
/// memory, and no gradient. Copies share the numbers.
class Bfloat16Weight {
 public:
  /// Rounds to the nearest, ties to even; nan stays nan. Throws ShapeError unless the weight is (out, in).
  explicit Bfloat16Weight(const Array<float>& weight);

  /// The numbers (out, in). Throws ShapeError unless they fit the shape.
  Bfloat16Weight(std::vector<std::uint16_t> bits, const Shape& shape);
  Bfloat16Weight(std::span<const std::uint16_t> bits, const Shape& shape)
      : Bfloat16Weight(std::vector<std::uint16_t>(bits.begin(), bits.end()), shape) {}

  /// (out, in)
  Shape shape() const { return {out_, in_}; }
  std::span<const std::uint16_t> bits() const& noexcept { return *bits_; }
  std::span<const std::uint16_t> bits() && = delete;
  Array<float> floats() const;

 private:
  std::size_t out_, in_;
  std::shared_ptr<const std::vector<std::uint16_t>> bits_;
};

/// y = x weight^T + bias with the weight's numbers as they are, x (..., in), weight (out, in), bias (out) or
/// undefined, y (..., out). Up to 8 rows of x read the weight once, at the speed of memory.
///
/// dx = dy weight, dbias = the sum of dy's rows. Throws ShapeError as linear does.
template <class T>
Variable<T> bfloat16_linear(const Variable<T>& x, const Bfloat16Weight& weight,
                            const std::type_identity_t<Variable<T>>& bias = {});

namespace ops {

inline constexpr Op bfloat16_linear("bfloat16_linear", {"x", "bias"});

}  // namespace ops
}  // namespace xgrad
