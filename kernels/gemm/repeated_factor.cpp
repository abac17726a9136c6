#include "repeated_factor.hpp"

#include "gemm.hpp"
#include "large_gemm.hpp"
#include "pack.hpp"
#include "product_algorithm.hpp"

namespace xgrad::kernels {

template <typename T>
RepeatedFactor<T>::RepeatedFactor(const Matrix<const T>& b, std::size_t rows) : b_(b) {
  if (product_algorithm<T>({rows, b.cols, b.rows}) == ProductAlgorithm::tiles) {
    best_ = Layout::tiles;
    return;
  }
  // one row is multiplied without packing; few rows by a matrix beyond the second-level cache, too
  constexpr std::size_t cached = std::size_t{1} << 19, some_rows = 16;
  const bool packs = rows >= some_rows || (rows > 1 && b.rows * b.cols <= cached);
  if (b.transposed && packs) best_ = Layout::rows;
}

template <typename T>
void RepeatedFactor<T>::pack(T* memory) {
  layout_ = best_;
  if (layout_ == Layout::tiles) {
    pack_tiles(b_, memory);
  } else {
    kernels::pack<T>(b_, memory);
  }
  b_ = {memory, b_.rows, b_.cols};
}

template <typename T>
void RepeatedFactor<T>::multiply(const Matrix<const T>& a, T beta, const Matrix<T>& c) const {
  if (layout_ == Layout::tiles) {
    gemm_of_tiles(a, b_.data, beta, c);
  } else {
    gemm<T>(1, a, b_, beta, c);
  }
}

template class RepeatedFactor<float>;
template class RepeatedFactor<double>;

}  // namespace xgrad::kernels
