#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "../../base/dtype.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {
namespace detail {

class ReducedRows;

template <class T>
struct WeightAccess;

/// PyTorch's name of the type of a Weight's numbers: "float32", "float64", "bfloat16" or "int8".
const char* weight_dtype_name(DType dtype);

}  // namespace detail

/// The rows of a linear map (out, in) or of an embedding (vocabulary, dim): a Variable, or numbers of fewer
/// bits, which have no gradient. A handle: copies share the numbers.
///
/// The numbers are of type F32 or F64, as T is, or BF16, the upper halves of floats, or I8, integers of which
/// each row has a scale, in half or a fourth of the memory of floats.
template <class T>
class [[nodiscard]] Weight {
 public:
  /// Undefined.
  Weight() = default;
  Weight(Variable<T> variable) : variable_(std::move(variable)) {}

  /// Rounds to the nearest bfloat16, ties to even; nan stays nan. Throws ShapeError unless the array is a
  /// matrix.
  static Weight bfloat16(const Array<float>& array);
  /// Of the upper halves of floats. Throws ShapeError unless they fit a shape of two axes.
  static Weight bfloat16(std::vector<std::uint16_t> bits, const Shape& shape);

  /// Rounds each row to scale times integers from -127 to 127, with scale = max |row| / 127. Throws
  /// ShapeError unless the array is (out, in) with at most 65,536 columns, ValueError for a row that is not
  /// finite.
  static Weight int8(const Array<float>& array) requires std::same_as<T, float>;
  /// Of integers (out, in) and scales (out). Throws ShapeError unless they fit together, and for more
  /// columns.
  static Weight int8(std::span<const std::int8_t> integers, std::span<const float> scales,
                     const Shape& shape) requires std::same_as<T, float>;

  [[nodiscard]] bool defined() const noexcept { return reduced_ != nullptr || variable_.defined(); }
  [[nodiscard]] DType dtype() const noexcept { return is_trainable() ? dtype_of<T> : reduced_dtype(); }
  /// Throws GraphError for an undefined weight, as values() does.
  [[nodiscard]] const Shape& shape() const& { return is_trainable() ? variable_.shape() : reduced_shape(); }
  [[nodiscard]] Shape shape() && { return std::as_const(*this).shape(); }

  /// Whether it is a Variable, and so a parameter, be it frozen or not.
  [[nodiscard]] bool is_trainable() const noexcept { return reduced_ == nullptr; }
  /// Throws ValueError for numbers of fewer bits: "Weight: dtype must be float32, got int8".
  const Variable<T>& variable() const& {
    if (!is_trainable()) [[unlikely]]
      check_dtype(dtype_of<T>);
    return variable_;
  }
  Variable<T> variable() && { return std::as_const(*this).variable(); }

  /// The numbers as T; integers times their scales.
  [[nodiscard]] Array<T> values() const;

  /// The numbers of type BF16. Throws ValueError for others, as the next two do.
  std::span<const std::uint16_t> bits() const&;
  std::span<const std::uint16_t> bits() && = delete;
  /// Those of type I8, (out, in), and their scales (out).
  std::vector<std::int8_t> integers() const;
  std::vector<float> scales() const;

 private:
  friend struct detail::WeightAccess<T>;

  explicit Weight(std::shared_ptr<const detail::ReducedRows> reduced) : reduced_(std::move(reduced)) {}
  void check_dtype(DType wanted) const;
  DType reduced_dtype() const noexcept;
  const Shape& reduced_shape() const noexcept;

  Variable<T> variable_;
  std::shared_ptr<const detail::ReducedRows> reduced_;
};

namespace detail {

/// Access to the internals of weights, for ops and modules.
template <class T>
struct WeightAccess {
  /// Undefined for numbers of fewer bits.
  static const Variable<T>& variable(const Weight<T>& weight) noexcept { return weight.variable_; }
  /// Null for a Variable.
  static const ReducedRows* reduced(const Weight<T>& weight) noexcept { return weight.reduced_.get(); }
  /// The same for two only if they are one.
  static const void* identity(const Weight<T>& weight) noexcept {
    if (!weight.is_trainable()) return weight.reduced_.get();
    return Access<T>::value(weight.variable_).get();
  }

  /// The packed form of a parameter, which products keep; null if there is none, or if the numbers have
  /// changed since.
  static std::shared_ptr<const void> packed(const Weight<T>& weight);
  static void keep_packed(const Weight<T>& weight, std::shared_ptr<const void> form);
};

}  // namespace detail
}  // namespace xgrad
