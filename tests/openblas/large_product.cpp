// A product of doubles by OpenBLAS alone. OpenBLAS 0.3.34 dies of it where a processor that it knows as Zen 4
// or later is told to use Haswell's kernels: their buffer on the stack is too small for its parts.

#include <vector>

extern "C" void dgemm_(const char* trans_a, const char* trans_b, const int* m, const int* n, const int* k,
                       const double* alpha, const double* a, const int* lda, const double* b, const int* ldb,
                       const double* beta, double* c, const int* ldc);

int main() {
  const int side = 100, inner = 400;  // more than the buffer of the kernel holds
  const double one = 1, zero = 0;
  const std::vector<double> a(side * inner, 1), b(inner * side, 1);
  std::vector<double> c(side * side);
  dgemm_("N", "N", &side, &side, &inner, &one, a.data(), &side, b.data(), &inner, &zero, c.data(), &side);
  return c[0] == inner ? 0 : 1;
}
