// Matrices of all small sizes, in both orders of memory, packed row by row.

#include <xgrad/kernels/gemm/pack.hpp>

#include <cstddef>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace pack_test {

template <class T>
class PackTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(PackTest, Types, );

TYPED_TEST(PackTest, RowsFollowOneAnother) {
  using T = TypeParam;
  constexpr std::size_t most = 18, stride = most + 3;
  std::vector<T> memory(most * stride);
  std::iota(memory.begin(), memory.end(), T(1));
  for (std::size_t rows = 1; rows <= most; ++rows) {
    for (std::size_t cols = 1; cols <= most; ++cols) {
      for (const bool transposed : {false, true}) {
        std::vector<T> packed(rows * cols + 1), expected;
        for (std::size_t r = 0; r < rows; ++r) {
          for (std::size_t c = 0; c < cols; ++c)
            expected.push_back(memory[transposed ? c * stride + r : r * stride + c]);
        }
        expected.push_back(0);  // nothing is written behind the last
        xgrad::kernels::pack<T>({memory.data(), rows, cols, stride, transposed}, packed.data());
        EXPECT_EQ(packed, expected) << rows << " x " << cols << (transposed ? ", transposed" : "");
      }
    }
  }
}

}  // namespace pack_test
