#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace xgrad {

/// How exactly products of float matrices are computed: those of matmul, linear, einsum and attention, and of
/// their gradients. Everything else, such as sums, norms, softmax, losses and optimizers, is float32 always,
/// and Variable<double> knows no precision but its own.
///
///     highest  products of float32 numbers
///     high     each number is the sum of two bfloat16 numbers, three of whose four products are added
///     medium   each number is rounded to bfloat16, 8 of its 24 bits, and products are added in float32
///
/// What a processor does not multiply faster than float32 is computed as the next higher one. Both are in use
/// on processors with a matrix unit for bfloat16 (Intel's AMX) where the library was built with oneDNN,
/// medium also on AMD's with AVX512-BF16 (Zen 4 and later). With high, a product of an infinite number is
/// nan.
///
/// Source: https://pytorch.org/docs/stable/generated/torch.set_float32_matmul_precision.html
enum class MatmulPrecision : std::uint8_t {
  highest = 0,
  medium = 1,  ///< the values are how many bfloat16 numbers stand for a float
  high = 2
};

/// Sets the precision of the process (torch.set_float32_matmul_precision), which begins with highest. A
/// backward has the precision that its forward had. Results do not depend on the number of threads.
void set_float32_matmul_precision(MatmulPrecision precision);

/// The same by its name: "highest", "high" or "medium". Throws ValueError for any other.
void set_float32_matmul_precision(std::string_view precision);

/// What was asked for: by this thread's innermost MatmulPrecisionGuard, or else for the process.
MatmulPrecision float32_matmul_precision();

/// What that comes to on this processor.
MatmulPrecision matmul_precision_in_use();

/// Whether the process computes with what is asked for also where that is no faster, to see what a training
/// on another processor will come to. It does not at first. high needs oneDNN nevertheless.
void force_float32_matmul_precision(bool forced);

/// Its name.
std::string to_string(MatmulPrecision precision);

/// While one lives, this thread asks for a precision: `MatmulPrecisionGuard guard(MatmulPrecision::medium);`.
class [[nodiscard]] MatmulPrecisionGuard {
 public:
  explicit MatmulPrecisionGuard(MatmulPrecision precision);
  ~MatmulPrecisionGuard();
  MatmulPrecisionGuard(const MatmulPrecisionGuard&) = delete;
  MatmulPrecisionGuard& operator=(const MatmulPrecisionGuard&) = delete;

 private:
  std::int16_t before_;
};

}  // namespace xgrad
