#include "nearest.hpp"

namespace xgrad::detail {

template <class T>
std::vector<double> lengths_of_rows(std::span<const T> rows, std::size_t size) {
  std::vector<double> norms(size == 0 ? 0 : rows.size() / size);
  kernels::row_norms(rows.data(), norms.size(), size, norms.data());
  return norms;
}

template <class T>
std::vector<std::vector<kernels::NearRow>> nearest_of(const kernels::Vectors<T>& queries,
                                                      const kernels::Vectors<T>& rows, std::size_t most,
                                                      bool cosine) {
  std::vector<std::vector<kernels::NearRow>> nearest;
  kernels::nearest_rows(queries, rows, most, cosine, nearest);
  return nearest;
}

#define XGRAD_INSTANTIATE(T)                                                     \
  template std::vector<double> lengths_of_rows(std::span<const T>, std::size_t); \
  template std::vector<std::vector<kernels::NearRow>> nearest_of(                \
      const kernels::Vectors<T>&, const kernels::Vectors<T>&, std::size_t, bool);
XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)
#undef XGRAD_INSTANTIATE

}  // namespace xgrad::detail
