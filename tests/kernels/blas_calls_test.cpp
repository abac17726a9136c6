// Products and triangular solves are BLAS's, not loops that its interface may have in its place: these
// functions of BLAS count their calls and hand them on.

#ifdef XGRAD_WITH_BLAS

#include <dlfcn.h>

#include <atomic>
#include <cstddef>

#include <gtest/gtest.h>

#include <xgrad/ops/linalg/solve_triangular.hpp>
#include <xgrad/ops/product/matmul.hpp>
#include <xgrad/xgrad.hpp>

namespace {

std::atomic<int> calls{0};

template <class F, class... A>
void count_and_call(const char* name, A... arguments) {
  ++calls;
  reinterpret_cast<F*>(dlsym(RTLD_NEXT, name))(arguments...);
}

}  // namespace

// https://www.netlib.org/blas/#_cblas
#define COUNT_GEMM(name, T)                                                                                  \
  extern "C" void name(int order, int a_form, int b_form, int m, int n, int k, T alpha, const T* a, int lda, \
                       const T* b, int ldb, T beta, T* c, int ldc) {                                         \
    count_and_call<decltype(name)>(#name, order, a_form, b_form, m, n, k, alpha, a, lda, b, ldb, beta, c,    \
                                   ldc);                                                                     \
  }
#define COUNT_TRSM(name, T)                                                                                \
  extern "C" void name(int order, int side, int uplo, int form, int diagonal, int m, int n, T alpha,       \
                       const T* a, int lda, T* b, int ldb) {                                               \
    count_and_call<decltype(name)>(#name, order, side, uplo, form, diagonal, m, n, alpha, a, lda, b, ldb); \
  }
COUNT_GEMM(cblas_sgemm, float)
COUNT_GEMM(cblas_dgemm, double)
COUNT_TRSM(cblas_strsm, float)
COUNT_TRSM(cblas_dtrsm, double)

namespace {

template <class T>
class BlasCallsTest : public testing::Test {};

using Elements = testing::Types<float, double>;
TYPED_TEST_SUITE(BlasCallsTest, Elements);

TYPED_TEST(BlasCallsTest, OfProductsAndTriangularSolves) {
  using T = TypeParam;
  const xgrad::NoGrad guard;
  const xgrad::Variable<T> a(xgrad::Array<T>(xt::eye<T>(200))), b(xgrad::Array<T>(xt::ones<T>({200, 200})));
  calls = 0;
  EXPECT_EQ(matmul(a, b).value(), b.value());
  EXPECT_GT(calls, 0) << "matmul";
  calls = 0;
  EXPECT_EQ(solve_triangular(a, b).value(), b.value());
  EXPECT_GT(calls, 0) << "solve_triangular";
}

}  // namespace

#endif
