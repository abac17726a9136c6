#include "../../kernels/gemm/product_algorithm.hpp"

#include <gtest/gtest.h>

#include "../../kernels/gemm/large_gemm.hpp"
#include "../../kernels/low_precision/bfloat16.hpp"
#include "../../ops/product/matmul_precision.hpp"

namespace product_algorithm_test {
namespace {

using xgrad::kernels::GemmBackend, xgrad::kernels::ProductAlgorithm, xgrad::kernels::ProductShape;

ProductAlgorithm of(const ProductShape& shape) { return xgrad::kernels::product_algorithm<float>(shape); }

TEST(ProductAlgorithmTest, SmallProductsAreLoops) {
  EXPECT_EQ(of({10, 16, 16}), ProductAlgorithm::loops);
  EXPECT_EQ(of({6, 16, 16, false, true}), ProductAlgorithm::loops);  // and four rows to copy it
  const bool packs = xgrad::kernels::gemm_backend() == GemmBackend::blas;
  EXPECT_EQ(of({11, 16, 16}) == ProductAlgorithm::loops, packs);
  EXPECT_NE(of({41, 16, 16}), ProductAlgorithm::loops);
}

TEST(ProductAlgorithmTest, FewRowsReadALargeFactorOnce) {
  EXPECT_EQ(of({8, 512, 256}), ProductAlgorithm::few_rows);
  EXPECT_EQ(of({8, 512, 256, false, true}), ProductAlgorithm::few_rows);
  EXPECT_NE(of({9, 512, 256}), ProductAlgorithm::few_rows);
  EXPECT_NE(of({8, 511, 256}), ProductAlgorithm::few_rows);
  EXPECT_NE(of({8, 512, 256, true, false}), ProductAlgorithm::few_rows);
}

TEST(ProductAlgorithmTest, LargeProductsAreTilesWhereBlasNeedNotPackThem) {
  const bool has_tiles = xgrad::kernels::gemm_backend() == GemmBackend::unpacked_blas;
  EXPECT_EQ(of({128, 128, 128}), has_tiles ? ProductAlgorithm::tiles : ProductAlgorithm::blas);
  EXPECT_EQ(of({32, 64, 64, false, true}), has_tiles ? ProductAlgorithm::tiles : ProductAlgorithm::blas);
  EXPECT_EQ(of({100, 100, 100}), ProductAlgorithm::blas);  // is a tile itself
  EXPECT_EQ(of({1000, 1000, 15}), ProductAlgorithm::blas);
}

TEST(ProductAlgorithmTest, OnlyFloatsAreRounded) {
  const xgrad::MatmulPrecisionGuard guard(xgrad::MatmulPrecision::medium);
  const bool rounds = xgrad::kernels::bfloat16_is_faster();
  EXPECT_EQ(of({64, 64, 64}) == ProductAlgorithm::bfloat16, rounds);
  EXPECT_NE(of({64, 64, 63}), ProductAlgorithm::bfloat16);
  EXPECT_NE(of({15, 256, 256}), ProductAlgorithm::bfloat16);
  EXPECT_NE(xgrad::kernels::product_algorithm<double>({64, 64, 64}), ProductAlgorithm::bfloat16);
}

}  // namespace
}  // namespace product_algorithm_test
