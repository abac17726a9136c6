#include "weighted_sums.hpp"

#include <algorithm>
#include <numeric>

#include "../../base/detail/system/pieces.hpp"

namespace xgrad::kernels {
namespace {

/// One element of y for each row of the matrix, at the end of a line.
template <typename T>
void sums_of_lines(const SparseMatrix<T>& matrix, const T* x, std::size_t lines, T* y) {
  for (; lines > 0; --lines, x += matrix.cols) {
    for (std::size_t row = 0; row < matrix.rows(); ++row) {
      T sum = 0;
      for (std::size_t t = matrix.starts[row]; t < matrix.starts[row + 1]; ++t)
        sum += matrix.weights[t] * x[matrix.places[t]];
      *y++ = sum;
    }
  }
}

/// The sums of whole rows of x.
template <typename T>
void sums_of_rows(const SparseMatrix<T>& matrix, const T* x, std::size_t inner, std::size_t begin,
                  std::size_t end, T* y) {
  for (; begin < end; ++begin) {
    const T* const from = x + begin / matrix.rows() * matrix.cols * inner;
    const std::size_t row = begin % matrix.rows();
    T* const sum = y + begin * inner;
    std::fill_n(sum, inner, T(0));
    for (std::size_t t = matrix.starts[row]; t < matrix.starts[row + 1]; ++t) {
      const T weight = matrix.weights[t];
      const T* const term = from + matrix.places[t] * inner;
      XGRAD_INDEPENDENT
      for (std::size_t i = 0; i < inner; ++i) sum[i] += weight * term[i];
    }
  }
}

}  // namespace

template <typename T>
SparseMatrix<T> SparseMatrix<T>::transpose() const {
  SparseMatrix other;
  other.cols = rows();
  other.starts.assign(cols + 1, 0);
  other.places.resize(places.size());
  other.weights.resize(places.size());
  for (const std::size_t place : places) ++other.starts[place + 1];
  std::partial_sum(other.starts.begin(), other.starts.end(), other.starts.begin());
  std::vector<std::size_t> next(other.starts.begin(), other.starts.end() - 1);
  for (std::size_t row = 0; row < rows(); ++row) {
    for (std::size_t t = starts[row]; t < starts[row + 1]; ++t) {
      const std::size_t at = next[places[t]]++;
      other.places[at] = row;
      other.weights[at] = weights[t];
    }
  }
  return other;
}

template <typename T>
void weighted_sums(const SparseMatrix<T>& matrix, const T* x, std::size_t outer, std::size_t inner, T* y) {
  const std::size_t rows = matrix.rows(), terms = 1 + matrix.places.size() / std::max<std::size_t>(rows, 1);
  if (inner == 1) {
    parallel_pieces(outer, rows * terms * 2, [&](std::size_t begin, std::size_t end) {
      sums_of_lines(matrix, x + begin * matrix.cols, end - begin, y + begin * rows);
    });
  } else {
    parallel_pieces(outer * rows, inner * terms, [&](std::size_t begin, std::size_t end) {
      sums_of_rows(matrix, x, inner, begin, end, y);
    });
  }
}

#define XGRAD_INSTANTIATE(T)       \
  template struct SparseMatrix<T>; \
  template void weighted_sums(const SparseMatrix<T>&, const T*, std::size_t, std::size_t, T*);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::kernels
