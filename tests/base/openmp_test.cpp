// Threads of OpenMP, in a process that has it, as with one of the builds of OpenBLAS.

#include <gtest/gtest.h>

#include <xgrad/base/detail/system/openmp.hpp>

extern "C" {
[[gnu::weak]] int omp_get_max_threads();
[[gnu::weak]] void omp_set_num_threads(int count);
}

namespace openmp_test {

TEST(OneOpenMpThread, LimitsOpenMpWhileItLives) {
  if (omp_get_max_threads == nullptr) GTEST_SKIP() << "there is no OpenMP";
  const int before = omp_get_max_threads();
  omp_set_num_threads(3);
  {
    const xgrad::kernels::OneOpenMpThread kept;
    EXPECT_EQ(omp_get_max_threads(), 1);
  }
  EXPECT_EQ(omp_get_max_threads(), 3);
  omp_set_num_threads(before);
}

}  // namespace openmp_test
