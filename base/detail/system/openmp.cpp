#include "openmp.hpp"

extern "C" {
[[gnu::weak]] int omp_get_max_threads();
[[gnu::weak]] void omp_set_num_threads(int count);
}

namespace xgrad::kernels {

OneOpenMpThread::OneOpenMpThread() : threads_before_(omp_get_max_threads ? omp_get_max_threads() : 0) {
  if (threads_before_ != 0) omp_set_num_threads(1);
}

OneOpenMpThread::~OneOpenMpThread() {
  if (threads_before_ != 0) omp_set_num_threads(threads_before_);
}

}  // namespace xgrad::kernels
