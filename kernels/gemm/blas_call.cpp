#include "blas_call.hpp"

extern "C" {
[[gnu::weak]] int openblas_get_parallel();
[[gnu::weak]] void openblas_set_num_threads(int count);
}

namespace xgrad::kernels {
namespace {

enum class Threading { none, pthreads, openmp, other };  // the first three as OpenBLAS numbers them

Threading threading() {
  static const Threading found = [] {
    if (!openblas_get_parallel) return Threading::other;
    const auto threading = static_cast<Threading>(openblas_get_parallel());
    const OneOpenMpThread kept;  // the OpenMP build sets OpenMP's own number, too
    if (threading != Threading::none) openblas_set_num_threads(1);
    return threading;
  }();
  return found;
}

}  // namespace

BlasCall::BlasCall() {
  static std::mutex serial_blas;
  if (threading() == Threading::openmp) {  // which asks each calling thread for its own setting
    one_thread_.emplace();
  } else if (threading() == Threading::none) {  // its buffers have no lock
    lock_ = std::unique_lock(serial_blas);
  }
}

bool BlasCall::is_concurrent() { return threading() != Threading::none; }

}  // namespace xgrad::kernels
