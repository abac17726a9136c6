#include "matmul_precision.hpp"

#include "../kernels/bfloat16.hpp"
#include "error.hpp"

namespace xgrad {
namespace {

kernels::Parts parts_of(MatmulPrecision precision) { return static_cast<kernels::Parts>(precision); }
MatmulPrecision precision_of(kernels::Parts parts) { return static_cast<MatmulPrecision>(parts); }

}  // namespace

void set_float32_matmul_precision(MatmulPrecision precision) {
  kernels::set_parts_asked(parts_of(precision));
}

void set_float32_matmul_precision(std::string_view precision) {
  for (const MatmulPrecision one : {MatmulPrecision::highest, MatmulPrecision::high, MatmulPrecision::medium})
    if (precision == to_string(one)) return set_float32_matmul_precision(one);
  detail::fail<ValueError>("set_float32_matmul_precision: expected highest, high or medium, got '", precision,
                           "'");
}

MatmulPrecision float32_matmul_precision() { return precision_of(kernels::parts_asked()); }

MatmulPrecision matmul_precision_in_use() {
  return precision_of(kernels::parts_in_use(kernels::parts_asked()));
}

std::string to_string(MatmulPrecision precision) {
  return precision == MatmulPrecision::highest ? "highest"
         : precision == MatmulPrecision::high  ? "high"
                                               : "medium";
}

MatmulPrecisionGuard::MatmulPrecisionGuard(MatmulPrecision precision)
    : before_(kernels::ask_on_this_thread(parts_of(precision))) {}

MatmulPrecisionGuard::~MatmulPrecisionGuard() { kernels::ask_on_this_thread(before_); }

}  // namespace xgrad
