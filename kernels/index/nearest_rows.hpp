#pragma once

#include <cstddef>
#include <vector>

namespace xgrad::kernels {

/// Vectors, one after the other, and their lengths sqrt(x . x).
template <typename T>
struct Vectors {
  const T* data;
  const double* norms;
  std::size_t count, size;
};

/// The length of each row of x (count, size).
template <typename T>
void row_norms(const T* x, std::size_t count, std::size_t size, double* norms);

/// A row, and how near it is.
struct NearRow {
  std::size_t row;
  double score;
};

/// For each query the rows of the `most` largest products q . x, or cosines q . x / (|q| |x|), which are 0
/// for a vector of zeros; the largest first, equal ones in the order of the rows. A row whose score is nan is
/// left out.
///
/// Products of matrices only tell which rows are out of the question: by the bound of their error, size eps
/// |q| |x|, such a row is behind `most` others. The scores are sums of doubles in a fixed order, and neither
/// they nor the rows depend on threads, on other queries or on BLAS.
template <typename T>
void nearest_rows(const Vectors<T>& queries, const Vectors<T>& rows, std::size_t most, bool cosine,
                  std::vector<std::vector<NearRow>>& nearest);

}  // namespace xgrad::kernels
