#include "matmul_precision.hpp"

#include "../../base/error.hpp"
#include "../../kernels/gemm/gemm.hpp"
#include "../../kernels/gemm/parts_in_use.hpp"

namespace xgrad {

void set_float32_matmul_precision(MatmulPrecision precision) {
  detail::parts_of_process.store(static_cast<detail::Parts>(precision), std::memory_order_relaxed);
}

void set_float32_matmul_precision(std::string_view precision) {
  for (const MatmulPrecision one : {MatmulPrecision::highest, MatmulPrecision::high, MatmulPrecision::medium})
    if (precision == to_string(one)) return set_float32_matmul_precision(one);
  detail::fail<ValueError>("set_float32_matmul_precision: expected highest, high or medium, got '", precision,
                           "'");
}

MatmulPrecision float32_matmul_precision() { return static_cast<MatmulPrecision>(detail::parts_asked()); }

MatmulPrecision matmul_precision_in_use() {
  return static_cast<MatmulPrecision>(kernels::parts_in_use(detail::parts_asked()));
}

const char* blas_core_name() { return kernels::blas_core_name(); }

void force_float32_matmul_precision(bool forced) { kernels::force_parts(forced); }

std::string to_string(MatmulPrecision precision) {
  return precision == MatmulPrecision::highest ? "highest"
         : precision == MatmulPrecision::high  ? "high"
                                               : "medium";
}

MatmulPrecisionGuard::MatmulPrecisionGuard(MatmulPrecision precision)
    : before_(detail::ask_on_this_thread(static_cast<std::int16_t>(precision))) {}

MatmulPrecisionGuard::~MatmulPrecisionGuard() { detail::ask_on_this_thread(before_); }

}  // namespace xgrad
