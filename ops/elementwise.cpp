#include <xgrad/ops/elementwise.hpp>

#include <numbers>

#include <xgrad/graph/record.hpp>
#include <xgrad/ops/kernels/elementwise.hpp>

namespace xgrad {
namespace {

/// y[i] = f(x[i])
template <class T>
Variable<T> map(void (*f)(const T*, T*, std::size_t), const Variable<T>& x) {
  Variable<T> y = detail::empty<T>(x.shape());
  f(detail::data(x), detail::data(y), x.size());
  return y;
}

/// dx[i] = f(dy[i], saved[i])
template <class T>
Variable<T> map(void (*f)(const T*, const T*, T*, std::size_t), const Variable<T>& dy,
                const Variable<T>& saved) {
  Variable<T> dx = detail::empty<T>(dy.shape());
  f(detail::data(dy), detail::data(saved), detail::data(dx), dy.size());
  return dx;
}

/// dy where y > 0, which is linear in dy and flat in y.
template <class T>
Variable<T> relu_grad(const Variable<T>& dy, const Variable<T>& y) {
  return record<T>("relu_grad", map<T>(kernels::relu_grad<T>, dy, y), on(dy), save(y.detach()),
                   [](Variable<T> d, Needs, Variable<T> y) -> Grads<T, 1> { return {relu_grad(d, y)}; });
}

template <class T>
Variable<T> gelu_composed(const Variable<T>& x, Gelu approximate) {
  using namespace std::numbers;
  if (approximate == Gelu::none) return x * (erf(x * (sqrt2_v<T> / 2)) + 1) * T(0.5);
  const Variable<T> cubic = x + x * x * x * T(0.044715);
  return x * (tanh(cubic * (sqrt2_v<T> * inv_sqrtpi_v<T>)) + 1) * T(0.5);
}

}  // namespace

template <class T>
Variable<T> exp(const Variable<T>& x) {
  return record<T>("exp", map<T>(kernels::exp<T>, x), on(x), save(output),
                   [](Variable<T> dy, Needs, Variable<T> y) -> Grads<T, 1> { return {dy * y}; });
}

template <class T>
Variable<T> log(const Variable<T>& x) {
  return record<T>("log", map<T>(kernels::log<T>, x), on(x), save(x),
                   [](Variable<T> dy, Needs, Variable<T> x) -> Grads<T, 1> { return {dy / x}; });
}

template <class T>
Variable<T> sqrt(const Variable<T>& x) {
  return record<T>("sqrt", map<T>(kernels::sqrt<T>, x), on(x), save(output),
                   [](Variable<T> dy, Needs, Variable<T> y) -> Grads<T, 1> { return {dy / (y * 2)}; });
}

template <class T>
Variable<T> tanh(const Variable<T>& x) {
  return record<T>("tanh", map<T>(kernels::tanh<T>, x), on(x), save(output),
                   [](Variable<T> dy, Needs, Variable<T> y) -> Grads<T, 1> {
                     if (grad_enabled()) return {dy * (1 - y * y)};
                     return {map<T>(kernels::tanh_grad<T>, dy, y)};
                   });
}

template <class T>
Variable<T> erf(const Variable<T>& x) {
  return record<T>("erf", map<T>(kernels::erf<T>, x), on(x), save(x),
                   [](Variable<T> dy, Needs, Variable<T> x) -> Grads<T, 1> {
                     return {dy * exp(-(x * x)) * (2 * std::numbers::inv_sqrtpi_v<T>)};
                   });
}

template <class T>
Variable<T> relu(const Variable<T>& x) {
  return record<T>("relu", map<T>(kernels::relu<T>, x), on(x), save(output),
                   [](Variable<T> dy, Needs, Variable<T> y) -> Grads<T, 1> { return {relu_grad(dy, y)}; });
}

template <class T>
Variable<T> gelu(const Variable<T>& x, Gelu approximate) {
  const bool exact = approximate == Gelu::none;
  return record<T>("gelu", map<T>(exact ? kernels::gelu<T> : kernels::gelu_tanh<T>, x), on(x), save(x),
                   [approximate, exact](Variable<T> dy, Needs needs, Variable<T> x) -> Grads<T, 1> {
                     if (grad_enabled()) {
                       return replay<T, 1>(dy, needs, {x}, [approximate](const Variable<T>& x) {
                         return gelu_composed(x, approximate);
                       });
                     }
                     return {map<T>(exact ? kernels::gelu_grad<T> : kernels::gelu_tanh_grad<T>, dy, x)};
                   });
}

template Variable<float> exp(const Variable<float>&);
template Variable<double> exp(const Variable<double>&);
template Variable<float> log(const Variable<float>&);
template Variable<double> log(const Variable<double>&);
template Variable<float> sqrt(const Variable<float>&);
template Variable<double> sqrt(const Variable<double>&);
template Variable<float> tanh(const Variable<float>&);
template Variable<double> tanh(const Variable<double>&);
template Variable<float> erf(const Variable<float>&);
template Variable<double> erf(const Variable<double>&);
template Variable<float> relu(const Variable<float>&);
template Variable<double> relu(const Variable<double>&);
template Variable<float> gelu(const Variable<float>&, Gelu);
template Variable<double> gelu(const Variable<double>&, Gelu);

}  // namespace xgrad
