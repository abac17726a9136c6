#include "int8_product.hpp"

#include <vector>

#include "../../../kernels/low_precision/int8.hpp"

namespace xgrad::detail {

Int8Product::Int8Product(std::span<const std::int8_t> weight, std::size_t rows, std::size_t cols,
                         std::span<const std::int32_t> zeros)
    : weight_(std::make_shared<const kernels::Int8Matrix>(weight, std::vector<float>(rows, 1), cols, zeros)) {
}

std::size_t Int8Product::rows() const { return weight_->rows(); }
std::size_t Int8Product::cols() const { return weight_->cols(); }

void Int8Product::multiply(std::span<const float> x, float step, std::int32_t zero, const float* scales,
                           const float* bias, float* y) const {
  const kernels::Int8Rows rows({x.data(), x.size() / cols(), cols()}, step, zero);
  kernels::int8_linear_rows(rows, *weight_, scales, bias, y);
}

std::pair<float, float> extremes_with_zero(std::span<const float> x) {
  const kernels::Extremes extremes = kernels::extremes_with_zero(x.data(), x.size());
  return {extremes.least, extremes.largest};
}

}  // namespace xgrad::detail
