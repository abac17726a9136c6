#pragma once

#include "../../../base/dims.hpp"
#include "../../../graph/variable.hpp"
#include "../../../kernels/rows/layer_norm.hpp"

// Shared code of the norms over the last axes: their checks and kernels.
namespace xgrad::detail {

/// Whether the mean is subtracted.
enum class Centring { mean, none };

/// What is normalized over: the last axes, as columns.
struct NormTable {
  std::size_t rows, cols;
};

/// y and what its gradient needs.
template <class T>
struct Normalized {
  NormTable table;
  Variable<T> y, statistics;  // mean, if centred, and rstd of each row
};

/// The forward pass, of x + residual if that is not null. Throws ShapeError and ValueError in the name of
/// `op`.
template <class T>
Normalized<T> normalize(const char* op, Centring centring, const Variable<T>& x, const T* residual,
                        const Dims& normalized_shape, const Variable<T>& weight, const Variable<T>& bias,
                        double eps);

/// Computes the gradients that are not null; dx is that of the residual, too.
template <class T>
void normalize_grad(const kernels::LayerNormGrads<T>& grads, const Variable<T>& dy, const Variable<T>& x,
                    const T* residual, const Variable<T>& weight, const Variable<T>& statistics,
                    const NormTable& table);

/// For the composed forms: where `squares` (rows, 1) of a row have left the range of T, a power of two by
/// which the row's elements stay in it, else 1; undefined if all are 1.
template <class T>
Variable<T> range_factors(const Variable<T>& rows, const Variable<T>& squares);

}  // namespace xgrad::detail
