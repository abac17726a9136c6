#include <xgrad/train/optimizer.hpp>

#include <cmath>

namespace xgrad {

template <class T>
Optimizer<T>::Optimizer(const char* name, std::vector<Variable<T>> parameters, double lr)
    : name_(name), parameters_(std::move(parameters)), lr_(detail::checked_rate(name, "lr", lr)) {
  if (parameters_.empty()) detail::fail<ValueError>(name, ": there must be parameters, got none");
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].is_leaf() || !parameters_[i].requires_grad()) {
      detail::fail<ValueError>(name, ": every parameter must be a leaf that requires a gradient, parameter ",
                               i, " is not");
    }
  }
}

template <class T>
void Optimizer<T>::zero_grad() const {
  for (const Variable<T>& parameter : parameters_) parameter.zero_grad();
}

template <class T>
void Optimizer<T>::set_lr(double lr) {
  lr_ = detail::checked_rate(name_, "lr", lr);
}

namespace detail {

double checked_rate(const char* optimizer, const char* name, double number) {
  if (!(number >= 0) || std::isinf(number)) {
    fail<ValueError>(optimizer, ": ", name, " must be finite and at least 0, got ", number);
  }
  return number;
}

}  // namespace detail

template class Optimizer<float>;
template class Optimizer<double>;

}  // namespace xgrad
