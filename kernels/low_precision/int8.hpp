#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "../../base/pool.hpp"
#include "../matrix.hpp"

// Products of 8-bit integers, which are added exactly in 32 bits: an instruction multiplies four times as
// many of them as of float numbers.
namespace xgrad::kernels {

/// The most columns of both operands: sums of so many products fit into 32 bits.
constexpr std::size_t most_int8_cols = std::size_t{1} << 16;

/// Instructions for such products, each of which gives the same integers: none but those of plain loops, AVX2
/// with products of 16 bits, or AVX512-VNNI.
enum class Int8Instructions { none, avx2, vnni };

/// The fastest ones of this processor.
Int8Instructions int8_instructions();

/// What the integers of a row stand for: symmetric, from -127 to 127 times max |x| / 127, or all from min(x,
/// 0) to max(x, 0) in 254 steps.
enum class Int8Range { symmetric, all };

/// The least and the largest of some numbers and 0, as if there were no nan.
struct Extremes {
  float least = 0, largest = 0;
};

/// Bound by bandwidth.
Extremes extremes_with_zero(const float* x, std::size_t n);

/// Rows (rows, cols) of integers from 0 to 255, which are multiplied: x is about scale (integer - zero) with
/// a scale and a zero for each row. All of a row are 0 where its range is below 1e-35, and its scale is nan
/// where one of it is not finite.
class Int8Rows {
 public:
  /// Rounds to the nearest integer. Bound by bandwidth.
  Int8Rows(const Matrix<const float>& x, Int8Range range);

  /// The integers of x / step, rounded, to the even one if two are as near, plus a zero from 0 to 255, with a
  /// scale of 1. What is beyond the range becomes its end, and nan becomes 0. Bound by bandwidth.
  Int8Rows(const Matrix<const float>& x, float step, std::int32_t zero);

  /// Integers that are given, from -128 to 127 (rows, cols), with a scale of 1.
  Int8Rows(const std::int8_t* values, std::size_t rows, std::size_t cols);

  std::size_t rows() const { return rows_; }
  std::size_t cols() const { return cols_; }
  /// In groups of 4, the last of which ends with any numbers.
  const std::uint8_t* row(std::size_t i) const { return values_.get() + i * stride_; }
  const float* scales() const { return scales_.data(); }
  const std::int32_t* zeros() const { return zeros_.data(); }
  /// Of the integers of each row, for matrices with zeros; null unless the rows have a step.
  const std::int32_t* sums() const { return sums_.empty() ? nullptr : sums_.data(); }

  /// The integers (rows, cols) of symmetric ranges.
  std::vector<std::int8_t> values() const;

 private:
  struct Release {
    std::size_t bytes;
    void operator()(std::uint8_t* block) const { detail::pool_release(block, bytes); }
  };

  Int8Rows(std::size_t rows, std::size_t cols);

  std::size_t rows_, cols_, stride_;
  std::unique_ptr<std::uint8_t, Release> values_;
  std::vector<float> scales_;
  std::vector<std::int32_t> zeros_, sums_;
};

/// The matrix (rows, cols) by which rows are multiplied, scales (rows) times integers from -128 to 127,
/// packed once for all products. With zeros (rows) from -128 to 127, it is scales (integers - zeros).
class Int8Matrix {
 public:
  Int8Matrix(std::span<const std::int8_t> values, std::span<const float> scales, std::size_t cols,
             std::span<const std::int32_t> zeros = {});

  std::size_t rows() const { return scales_.size(); }
  std::size_t cols() const { return cols_; }
  const std::vector<float>& scales() const { return scales_; }

  /// The integers (rows, cols).
  std::vector<std::int8_t> values() const;

  // Rows are in panels of 32, the last of which ends with zeros; a panel has the first 4 numbers of each of
  // its rows, then the next 4 of each, and so on.
  static constexpr std::size_t panel_rows = 32, group = 4;
  std::size_t panels() const { return (rows() + panel_rows - 1) / panel_rows; }
  std::size_t groups() const { return (cols_ + group - 1) / group; }
  const std::int8_t* panel(std::size_t i) const { return packed_.data() + i * groups() * panel_rows * group; }
  /// Of the integers without the zero of each row, of all rows of the panels.
  const std::int32_t* sums() const { return sums_.data(); }
  /// Of all rows of the panels; null without zeros.
  const std::int32_t* zeros() const { return zeros_.empty() ? nullptr : zeros_.data(); }

 private:
  std::size_t cols_;
  std::vector<float> scales_;
  std::vector<std::int8_t, PoolAllocator<std::int8_t>> packed_;
  std::vector<std::int32_t> sums_, zeros_;
};

/// What becomes of the numbers of a product: gelu is x Phi(x) to within 3e-5, as what gets them rounds them
/// to far fewer digits.
enum class Int8Activation { none, gelu };

/// y (x.rows, weight.rows) = act(x weight^T + bias), where bias (weight.rows) may be null. Each element is a
/// sum of integer products times both scales, plus the bias: a row of y depends neither on the other rows nor
/// on the number of threads. Bound by flops.
void int8_linear_rows(const Int8Rows& x, const Int8Matrix& weight, const float* bias, float* y,
                      Int8Instructions instructions = int8_instructions(),
                      Int8Activation act = Int8Activation::none);

/// The same with other scales (weight.rows) of the weight. x must have sums if the weight has zeros.
void int8_linear_rows(const Int8Rows& x, const Int8Matrix& weight, const float* scales, const float* bias,
                      float* y, Int8Instructions instructions = int8_instructions(),
                      Int8Activation act = Int8Activation::none);

}  // namespace xgrad::kernels
