#include "clip_grad.hpp"

#include <cmath>
#include <stdexcept>

#include "../graph/grad_mode.hpp"
#include "../graph/watch.hpp"
#include "../kernels/pointwise/binary.hpp"
#include "../kernels/pointwise/elementwise.hpp"
#include "../kernels/rows/reduce.hpp"
#include "../ops/reduce/reductions.hpp"

namespace xgrad {
namespace {

/// Whether doubles near 1e150 or 1e-140 have squares out of range: those of floats have not.
bool leaves_range(double squares) { return !(squares >= 1e-280 && squares <= 1e300); }

template <class T>
double norm_of_gradients(const std::vector<Variable<T>>& parameters) {
  double squares = 0, norm = 0;
  for (const Variable<T>& parameter : parameters) {
    if (!parameter.has_grad()) continue;
    const Variable<T> gradient = parameter.grad();
    squares += kernels::squared_norm(detail::data(gradient), gradient.size());
  }
  if (std::is_same_v<T, float> || !leaves_range(squares)) return std::sqrt(squares);
  const NoGrad guard;
  const detail::Unwatched parts;
  for (const Variable<T>& parameter : parameters) {
    if (parameter.has_grad()) norm = std::hypot(norm, xgrad::norm(parameter.grad()).item());
  }
  return norm;
}

}  // namespace

template <class T>
void detail::scale_gradients(const std::vector<Variable<T>>& parameters, T factor) {
  for (const Variable<T>& parameter : parameters) {
    if (!parameter.has_grad()) continue;
    const Variable<T> gradient = parameter.grad();
    T* elements = mutable_data(gradient);
    kernels::scale(factor, elements, elements, gradient.size());
  }
}

template <class T>
double clip_grad_norm(const std::vector<Variable<T>>& parameters, double max_norm,
                      ClipGradNormOptions options) {
  if (!(max_norm >= 0)) {
    detail::fail<ValueError>("clip_grad_norm: max_norm must be at least 0, got ", max_norm);
  }
  const double norm = norm_of_gradients(parameters), factor = max_norm / (norm + 1e-6);
  if (options.error_if_nonfinite && !std::isfinite(norm)) {
    detail::fail<std::runtime_error>("clip_grad_norm: the norm of the gradients must be finite, got ", norm);
  }
  if (!(factor >= 1)) detail::scale_gradients(parameters, static_cast<T>(factor));
  return norm;
}

template <class T>
void clip_grad_value(const std::vector<Variable<T>>& parameters, double clip_value) {
  if (!(clip_value >= 0)) {
    detail::fail<ValueError>("clip_grad_value: clip_value must be at least 0, got ", clip_value);
  }
  for (const Variable<T>& parameter : parameters) {
    if (!parameter.has_grad()) continue;
    const Variable<T> gradient = parameter.grad();
    T* elements = detail::mutable_data(gradient);
    kernels::clamp(elements, elements, gradient.size(), static_cast<T>(-clip_value),
                   static_cast<T>(clip_value));
  }
}

template void detail::scale_gradients(const std::vector<Variable<float>>&, float);
template void detail::scale_gradients(const std::vector<Variable<double>>&, double);
template double clip_grad_norm(const std::vector<Variable<float>>&, double, ClipGradNormOptions);
template double clip_grad_norm(const std::vector<Variable<double>>&, double, ClipGradNormOptions);
template void clip_grad_value(const std::vector<Variable<float>>&, double);
template void clip_grad_value(const std::vector<Variable<double>>&, double);

}  // namespace xgrad
