#pragma once

// Not installed: for components, which call no kernels, products with a weight of 8-bit integers.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace xgrad {

namespace kernels {
class Int8Matrix;
}

namespace detail {

/// A weight (rows, cols) of integers, less the zero point of its row where `zeros` (rows) is given, packed.
class Int8Product {
 public:
  Int8Product(std::span<const std::int8_t> weight, std::size_t rows, std::size_t cols,
              std::span<const std::int32_t> zeros);

  std::size_t rows() const;
  std::size_t cols() const;

  /// y (n, rows) = (round(x / step) weight^T) scales + bias for x (n, cols): round(x / step) + zero is cut to
  /// 0 to 255 before the zero is taken off again. `bias` (rows) may be null.
  void multiply(std::span<const float> x, float step, std::int32_t zero, const float* scales,
                const float* bias, float* y) const;

 private:
  std::shared_ptr<const kernels::Int8Matrix> weight_;
};

/// The least and the largest of some numbers and 0, as if there were no nan.
std::pair<float, float> extremes_with_zero(std::span<const float> x);

}  // namespace detail
}  // namespace xgrad
