#include <xgrad/train/clip_grad.hpp>

#include <cmath>

#include <xgrad/ops/kernels/binary.hpp>
#include <xgrad/ops/kernels/reduce.hpp>

namespace xgrad {

template <class T>
double clip_grad_norm(const std::vector<Variable<T>>& parameters, double max_norm) {
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
  if (factor >= 1) return norm;
  for (const Variable<T>& parameter : parameters) {
    if (!parameter.has_grad()) continue;
    const Variable<T> gradient = parameter.grad();
    T* elements = detail::mutable_data(gradient);
    kernels::scale(static_cast<T>(factor), elements, elements, gradient.size());
  }
  return norm;
}

template double clip_grad_norm(const std::vector<Variable<float>>&, double);
template double clip_grad_norm(const std::vector<Variable<double>>&, double);

}  // namespace xgrad
