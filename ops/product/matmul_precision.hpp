#pragma once

#include <string>
#include <string_view>

#include "../../base/detail/product_precision.hpp"

namespace xgrad {

/// Precision of products of float matrices: those of matmul, linear, einsum and attention, and of their
/// gradients. Everything else, such as sums, norms, softmax, losses and optimizers, is always float32;
/// Variable<double> is always computed in double.
///
///     highest  products of float32 numbers
///     medium   each number is rounded to bfloat16, 8 of its 24 bits, and products are added in float32
///
/// medium is in use on processors that compute it faster than float32: those with a matrix unit for bfloat16
/// (Intel's AMX), if the library was built with oneDNN, and AMD's with AVX512-BF16 (Zen 4 and later).
/// PyTorch's `high` is not offered.
///
/// Source: https://pytorch.org/docs/stable/generated/torch.set_float32_matmul_precision.html
enum class MatmulPrecision { highest, medium };

/// Sets the precision of the process (torch.set_float32_matmul_precision). Default: highest. A backward uses
/// the precision of its forward. Results do not depend on the number of threads.
void set_float32_matmul_precision(MatmulPrecision precision);

/// Sets the precision by name: "highest" or "medium". Throws ValueError for any other name.
void set_float32_matmul_precision(std::string_view precision);

/// The requested precision: that of this thread's innermost MatmulPrecisionGuard, or else that of the
/// process.
MatmulPrecision float32_matmul_precision();

/// The precision that this processor uses for the requested one.
MatmulPrecision matmul_precision_in_use();

/// The processor for which OpenBLAS chose its kernels, such as "SkylakeX": products on another may differ in
/// the last digits. "none" if the library was built without BLAS, "unknown" for another BLAS.
const char* blas_core_name();

/// The set of instructions for which the library chose its kernels, such as "AVX2".
const char* instruction_set();

/// Name of the precision.
[[nodiscard]] std::string to_string(MatmulPrecision precision);

/// Requests a precision on this thread for the lifetime of the object:
/// `MatmulPrecisionGuard guard(MatmulPrecision::medium);`.
class [[nodiscard]] MatmulPrecisionGuard {
 public:
  [[nodiscard]] explicit MatmulPrecisionGuard(MatmulPrecision precision)
      : scope_(precision == MatmulPrecision::medium) {}

 private:
  detail::RoundingScope scope_;
};

}  // namespace xgrad
