#include "anomaly.hpp"

#include <cmath>
#include <optional>

#include "variable.hpp"

namespace xgrad::detail {

constinit thread_local bool detecting_anomaly = false;

namespace {

/// The index of the first nan.
template <class T>
std::optional<Shape> first_nan(const Array<T>& x) {
  std::size_t at = 0;
  while (at < x.size() && !std::isnan(x.data()[at])) ++at;
  if (at == x.size()) return std::nullopt;
  Shape index(x.dimension(), 0);
  for (std::size_t axis = x.dimension(); axis-- > 0; at /= x.shape()[axis])
    index[axis] = at % x.shape()[axis];
  return index;
}

}  // namespace

template <class T>
void check_result(const char* op, const Variable<T>& y, std::span<const Variable<T>* const> inputs) {
  const std::optional<Shape> at = first_nan(y.value());
  if (!at) return;
  std::string before;
  std::size_t number = 0;
  for (const Variable<T>* input : inputs) {
    if (input->defined()) {
      if (const std::optional<Shape> there = first_nan(input->value())) {
        before += join({before.empty() ? "; so was input " : ", input ", text(number), " ",
                        text(input->shape()), " at ", text(*there)});
      }
    }
    ++number;
  }
  fail<AnomalyError>("detect_anomaly: the result ", y.shape(), " of '", op, "' is nan at ", *at,
                     before.empty() ? ", and no input is" : before.c_str());
}

template <class T>
void check_gradient(const char* op, std::size_t input, const Variable<T>& gradient) {
  const std::optional<Shape> at = first_nan(gradient.value());
  if (!at) return;
  fail<AnomalyError>("detect_anomaly: the gradient ", gradient.shape(), " that '", op,
                     "' passes back to input ", input, " is nan at ", *at);
}

template void check_result(const char*, const Variable<float>&, std::span<const Variable<float>* const>);
template void check_result(const char*, const Variable<double>&, std::span<const Variable<double>* const>);
template void check_gradient(const char*, std::size_t, const Variable<float>&);
template void check_gradient(const char*, std::size_t, const Variable<double>&);

}  // namespace xgrad::detail
