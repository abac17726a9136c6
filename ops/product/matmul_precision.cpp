#include "matmul_precision.hpp"

#include "../../base/error.hpp"
#include "../../kernels/gemm/gemm.hpp"
#include "../../kernels/low_precision/bfloat16.hpp"

namespace xgrad {

void set_float32_matmul_precision(MatmulPrecision precision) {
  detail::process_rounds_products.store(precision == MatmulPrecision::medium, std::memory_order_relaxed);
}

void set_float32_matmul_precision(std::string_view precision) {
  for (const MatmulPrecision one : {MatmulPrecision::highest, MatmulPrecision::medium})
    if (precision == to_string(one)) return set_float32_matmul_precision(one);
  detail::fail<ValueError>("set_float32_matmul_precision: expected highest or medium, got '", precision, "'");
}

MatmulPrecision float32_matmul_precision() {
  return detail::products_may_be_rounded() ? MatmulPrecision::medium : MatmulPrecision::highest;
}

MatmulPrecision matmul_precision_in_use() {
  return kernels::bfloat16_is_faster() ? float32_matmul_precision() : MatmulPrecision::highest;
}

const char* blas_core_name() { return kernels::blas_core_name(); }

const char* instruction_set() { return kernels::instruction_set(); }

std::string to_string(MatmulPrecision precision) {
  return precision == MatmulPrecision::highest ? "highest" : "medium";
}

}  // namespace xgrad
