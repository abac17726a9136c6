#include "clip_grad.hpp"

#include <cmath>
#include <stdexcept>

#include "../kernels/pointwise/binary.hpp"
#include "../kernels/pointwise/elementwise.hpp"
#include "../kernels/rows/reduce.hpp"

namespace xgrad {

template <class T>
double clip_grad_norm(const std::vector<Variable<T>>& parameters, double max_norm,
                      ClipGradNormOptions options) {
  if (!(max_norm >= 0)) {
    detail::fail<ValueError>("clip_grad_norm: max_norm must be at least 0, got ", max_norm);
  }
  double squares = 0;
  for (const Variable<T>& parameter : parameters) {
    if (!parameter.has_grad()) continue;
    const Variable<T> gradient = parameter.grad();
    squares += kernels::squared_norm(detail::data(gradient), gradient.size());
  }
  const double norm = std::sqrt(squares), factor = max_norm / (norm + 1e-6);
  if (options.error_if_nonfinite && !std::isfinite(norm)) {
    detail::fail<std::runtime_error>("clip_grad_norm: the norm of the gradients must be finite, got ", norm);
  }
  if (factor >= 1) return norm;
  for (const Variable<T>& parameter : parameters) {
    if (!parameter.has_grad()) continue;
    const Variable<T> gradient = parameter.grad();
    T* elements = detail::mutable_data(gradient);
    kernels::scale(static_cast<T>(factor), elements, elements, gradient.size());
  }
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

template double clip_grad_norm(const std::vector<Variable<float>>&, double, ClipGradNormOptions);
template double clip_grad_norm(const std::vector<Variable<double>>&, double, ClipGradNormOptions);
template void clip_grad_value(const std::vector<Variable<float>>&, double);
template void clip_grad_value(const std::vector<Variable<double>>&, double);

}  // namespace xgrad
