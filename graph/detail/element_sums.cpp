#include "element_sums.hpp"

#include "../../kernels/pointwise/binary.hpp"

namespace xgrad::detail {

template <class T>
void ElementSums<T>::add(T* y, const T* a, std::size_t n) {
  kernels::accumulate(y, a, n);
}

template <class T>
void ElementSums<T>::add(T* y, const T* a, const T* b, const T* c, std::size_t n) {
  kernels::accumulate_three(y, a, b, c, n);
}

template <class T>
void ElementSums<T>::scale(T alpha, const T* x, T* y, std::size_t n) {
  kernels::scale(alpha, x, y, n);
}

template struct ElementSums<float>;
template struct ElementSums<double>;

}  // namespace xgrad::detail
