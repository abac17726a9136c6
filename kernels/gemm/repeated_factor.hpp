#pragma once

#include <cstddef>

#include "../matrix.hpp"

namespace xgrad::kernels {

/// The second factor b (k, n) of many products, in the order in which these read it: a product alone packs it
/// anew.
template <typename T>
class RepeatedFactor {
 public:
  /// Of products whose first factors have up to `rows` rows.
  RepeatedFactor(const Matrix<const T>& b, std::size_t rows);

  /// Whether it pays to pack b.
  bool pays_to_pack() const { return best_ != Layout::same; }
  /// Packs b into memory for as many elements, which outlives the products.
  void pack(T* memory);

  /// c = a b + beta c.
  void multiply(const Matrix<const T>& a, T beta, const Matrix<T>& c) const;

 private:
  enum class Layout { same, rows, tiles };

  Matrix<const T> b_;
  Layout best_ = Layout::same, layout_ = Layout::same;
};

}  // namespace xgrad::kernels
