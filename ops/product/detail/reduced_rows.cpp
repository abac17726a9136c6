#include "reduced_rows.hpp"

#include <algorithm>

#include "../../../kernels/gemm/few_rows.hpp"
#include "../../../kernels/gemm/gemm.hpp"
#include "../../../kernels/gemm/linear.hpp"
#include "../../../kernels/low_precision/bfloat16.hpp"

namespace xgrad::detail {

template <class T, class F>
void ReducedRows::for_blocks(const F& f) const {
  constexpr std::size_t max_numbers = std::size_t{1} << 20;
  const std::size_t out = shape_[0], in = shape_[1];
  const std::size_t height =
      std::clamp<std::size_t>(max_numbers / std::max<std::size_t>(in, 1), 1, std::max<std::size_t>(out, 1));
  Variable<T> memory = empty<T>(Shape{height, in}, "linear");
  for (std::size_t first = 0; first < out; first += height) {
    const std::size_t rows = std::min(height, out - first);
    kernels::from_bfloat16(bfloat16()->data() + first * in, data(memory), rows * in);
    f(kernels::Matrix<const T>(data(memory), rows, in), first);
  }
}

template <class T>
void ReducedRows::multiply(const kernels::Matrix<const T>& x, const T* bias, T* y) const {
  const kernels::Matrix<T> outputs(y, x.rows, shape_[0]);
  if constexpr (std::is_same_v<T, float>) {
    if (const kernels::Int8Matrix* const matrix = int8())
      return kernels::int8_linear_rows(kernels::Int8Rows(x, kernels::Int8Range::all), *matrix, bias, y);
  }
  const auto product = [&] {
    if constexpr (std::is_same_v<T, float>) {  // a kernel that product_algorithm does not know
      if (x.rows > 0 && x.rows <= kernels::most_few_rows)
        return kernels::few_rows_bfloat16(x, bfloat16()->data(), outputs);
    }
    for_blocks<T>([&](const kernels::Matrix<const T>& block, std::size_t first) {
      kernels::gemm<T>(1, x, block.transpose(), 0, outputs.some_cols(first, block.rows));
    });
  };
  product();
  if (bias != nullptr) kernels::add_to_rows<T>(y, bias, x.rows, shape_[0]);
}

template <class T>
void ReducedRows::multiply_gradient(const kernels::Matrix<const T>& dy, T* dx) const {
  const kernels::Matrix<T> sum(dx, dy.rows, shape_[1]);
  if (shape_[0] == 0) std::fill_n(dx, dy.rows * shape_[1], T(0));
  for_blocks<T>([&](const kernels::Matrix<const T>& block, std::size_t first) {
    kernels::gemm<T>(1, dy.some_cols(first, block.rows), block, first == 0 ? T(0) : T(1), sum);
  });
}

template <class T>
void ReducedRows::gather(const std::int64_t* ids, std::size_t count, T* y) const {
  const std::size_t dim = shape_[1];
  for (std::size_t i = 0; i < count; ++i)
    kernels::from_bfloat16(bfloat16()->data() + static_cast<std::size_t>(ids[i]) * dim, y + i * dim, dim);
}

void refuse_gradient_of_integers(const char* op, bool will_record) {
  if (will_record)
    fail<ValueError>(op, ": 8-bit weights have no gradient: freeze all parameters in front of them, or ",
                     "compute with NoGrad");
}

#define XGRAD_INSTANTIATE(T)                                                                \
  template void ReducedRows::multiply(const kernels::Matrix<const T>&, const T*, T*) const; \
  template void ReducedRows::multiply_gradient(const kernels::Matrix<const T>&, T*) const;  \
  template void ReducedRows::gather(const std::int64_t*, std::size_t, T*) const;

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::detail
