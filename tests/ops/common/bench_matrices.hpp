#pragma once

// Matrices that bench_ops measures linear algebra on, in both libraries.

#include <algorithm>

#include <xgrad/ops/linalg/diagonal.hpp>
#include <xgrad/ops/shape/shapes.hpp>

#include "bench.hpp"

namespace bench {

/// Of the order that gives about n elements, at most 300.
inline Shape square(const Sizes& s) {
  const std::size_t order = std::min<std::size_t>(integer_root(s.n), 300);
  return {order, order};
}

/// As many matrices of order 3 as give about n elements.
inline Shape small_matrices(const Sizes& s) { return {std::max<std::size_t>(s.n / 9, 1), 3, 3}; }

/// x with 4 n added on the diagonal: invertible, and with a lower triangle that is positive-definite.
inline xgrad::Variable<float> dominant(const xgrad::Variable<float>& x) {
  const std::size_t n = x.shape(-1);
  return x + xgrad::diag_embed(xgrad::Variable<float>(Array<float>(Shape{n}, 4.0f * static_cast<float>(n))));
}

#ifdef XGRAD_BENCH_LIBTORCH
inline torch::Tensor dominant(const torch::Tensor& x) {
  return x + torch::diag_embed(torch::full({x.size(-1)}, 4.0f * static_cast<float>(x.size(-1))));
}
#endif

}  // namespace bench
