#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace xgrad::kernels {

/// A matrix of which most elements are 0: row i has the `weights` at the columns `places`, both from number
/// starts[i] to starts[i + 1].
template <typename T>
struct SparseMatrix {
  std::size_t cols = 0;
  std::vector<std::size_t> starts{0}, places;
  std::vector<T> weights;

  std::size_t rows() const { return starts.size() - 1; }
  void add(std::size_t place, T weight) {
    places.push_back(place);
    weights.push_back(weight);
  }
  void end_row() { starts.push_back(places.size()); }

  SparseMatrix transpose() const;
};

/// y (outer, rows, inner) = the matrix times x (outer, columns, inner).
template <typename T>
void weighted_sums(const SparseMatrix<T>& matrix, const T* x, std::size_t outer, std::size_t inner, T* y);

}  // namespace xgrad::kernels
