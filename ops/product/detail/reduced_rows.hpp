#pragma once

// Not installed: the numbers of a Weight that are no floats, for the ops that compute with them.

#include <cstdint>
#include <variant>
#include <vector>

#include "../../../kernels/low_precision/int8.hpp"
#include "../../../kernels/matrix.hpp"
#include "../weight.hpp"

namespace xgrad::detail {

class ReducedRows {
 public:
  ReducedRows(std::vector<std::uint16_t> bits, const Shape& shape)
      : shape_(shape), numbers_(std::move(bits)) {}
  explicit ReducedRows(kernels::Int8Matrix matrix)
      : shape_{matrix.rows(), matrix.cols()}, numbers_(std::move(matrix)) {}

  DType dtype() const { return int8() != nullptr ? DType::I8 : DType::BF16; }
  const Shape& shape() const { return shape_; }

  /// Null for others, as is the next one.
  const std::vector<std::uint16_t>* bfloat16() const {
    return std::get_if<std::vector<std::uint16_t>>(&numbers_);
  }
  const kernels::Int8Matrix* int8() const { return std::get_if<kernels::Int8Matrix>(&numbers_); }

  /// y (x.rows, out) = x rows^T + bias, where bias (out) may be null. For integers the numbers of x are
  /// rounded, too, as linear() says.
  template <class T>
  void multiply(const kernels::Matrix<const T>& x, const T* bias, T* y) const;
  /// dx (dy.rows, in) = dy rows. Integers have no gradients.
  template <class T>
  void multiply_gradient(const kernels::Matrix<const T>& dy, T* dx) const;

  /// y[i] = rows[ids[i]] for ids that are in range.
  template <class T>
  void gather(const std::int64_t* ids, std::size_t count, T* y) const;

 private:
  /// Calls f(rows, first) for the rows as T, some at a time, from row `first` on.
  template <class T, class F>
  void for_blocks(const F& f) const;

  Shape shape_;
  std::variant<std::vector<std::uint16_t>, kernels::Int8Matrix> numbers_;
};

/// Of a weight; null unless its numbers are integers.
inline const kernels::Int8Matrix* int8_matrix(const Weight<float>& weight) {
  const ReducedRows* const rows = WeightAccess<float>::reduced(weight);
  return rows != nullptr ? rows->int8() : nullptr;
}

/// Throws ValueError if an op with 8-bit weights is to be recorded.
void refuse_gradient_of_integers(const char* op, bool will_record);

}  // namespace xgrad::detail
