#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace xgrad {

/// Precision of products of float matrices: those of matmul, linear, einsum and attention, and of their
/// gradients. Everything else, such as sums, norms, softmax, losses and optimizers, is always float32;
/// Variable<double> is always computed in double.
///
///     highest  products of float32 numbers
///     high     each number is the sum of two bfloat16 numbers, three of whose four products are added
///     medium   each number is rounded to bfloat16, 8 of its 24 bits, and products are added in float32
///
/// A precision that the processor does not compute faster than float32 is replaced by the next higher one.
/// high and medium are in use on processors with a matrix unit for bfloat16 (Intel's AMX) if the library was
/// built with oneDNN, medium also on AMD's with AVX512-BF16 (Zen 4 and later). With high, a product with an
/// infinite factor is nan.
///
/// Source: https://pytorch.org/docs/stable/generated/torch.set_float32_matmul_precision.html
enum class MatmulPrecision : std::uint8_t {
  highest = 0,
  medium = 1,  ///< values: number of bfloat16 numbers per float
  high = 2
};

/// Sets the precision of the process (torch.set_float32_matmul_precision). Default: highest. A backward uses
/// the precision of its forward. Results do not depend on the number of threads.
void set_float32_matmul_precision(MatmulPrecision precision);

/// Sets the precision by name: "highest", "high" or "medium". Throws ValueError for any other name.
void set_float32_matmul_precision(std::string_view precision);

/// The requested precision: that of this thread's innermost MatmulPrecisionGuard, or else that of the
/// process.
MatmulPrecision float32_matmul_precision();

/// The precision that this processor uses for the requested one.
MatmulPrecision matmul_precision_in_use();

/// The processor for which OpenBLAS chose its kernels, such as "SkylakeX": products on another may differ in
/// the last digits. "none" if the library was built without BLAS, "unknown" for another BLAS.
const char* blas_core_name();

/// Uses the requested precision even where it is no faster, to reproduce a training run on another processor.
/// Default: off. `high` always needs oneDNN.
void force_float32_matmul_precision(bool forced);

/// Name of the precision.
[[nodiscard]] std::string to_string(MatmulPrecision precision);

/// Requests a precision on this thread for the lifetime of the object:
/// `MatmulPrecisionGuard guard(MatmulPrecision::medium);`.
class [[nodiscard]] MatmulPrecisionGuard {
 public:
  [[nodiscard]] explicit MatmulPrecisionGuard(MatmulPrecision precision);
  ~MatmulPrecisionGuard();
  MatmulPrecisionGuard(const MatmulPrecisionGuard&) = delete;
  MatmulPrecisionGuard& operator=(const MatmulPrecisionGuard&) = delete;

 private:
  std::int16_t before_;
};

}  // namespace xgrad
