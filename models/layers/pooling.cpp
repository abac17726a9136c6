#include "pooling.hpp"

namespace xgrad {

template <class T>
MaxPool1d<T>::MaxPool1d(Int kernel_size, MaxPoolOptions options)
    : Module<T>("MaxPool1d"), kernel_size_(kernel_size), options_(std::move(options)) {}

template <class T>
Variable<T> MaxPool1d<T>::operator()(const Variable<T>& x) const {
  const auto scope = this->scope();
  return max_pool1d(x, kernel_size_, options_).values;
}

template <class T>
MaxPool2d<T>::MaxPool2d(Dims kernel_size, MaxPoolOptions options)
    : Module<T>("MaxPool2d"), kernel_size_(std::move(kernel_size)), options_(std::move(options)) {}

template <class T>
Variable<T> MaxPool2d<T>::operator()(const Variable<T>& x) const {
  const auto scope = this->scope();
  return max_pool2d(x, kernel_size_, options_).values;
}

template <class T>
AvgPool1d<T>::AvgPool1d(Int kernel_size, AvgPoolOptions options)
    : Module<T>("AvgPool1d"), kernel_size_(kernel_size), options_(std::move(options)) {}

template <class T>
Variable<T> AvgPool1d<T>::operator()(const Variable<T>& x) const {
  const auto scope = this->scope();
  return avg_pool1d(x, kernel_size_, options_);
}

template <class T>
AvgPool2d<T>::AvgPool2d(Dims kernel_size, AvgPoolOptions options)
    : Module<T>("AvgPool2d"), kernel_size_(std::move(kernel_size)), options_(std::move(options)) {}

template <class T>
Variable<T> AvgPool2d<T>::operator()(const Variable<T>& x) const {
  const auto scope = this->scope();
  return avg_pool2d(x, kernel_size_, options_);
}

template <class T>
AdaptiveAvgPool1d<T>::AdaptiveAvgPool1d(Int output_size)
    : Module<T>("AdaptiveAvgPool1d"), output_size_(output_size) {}

template <class T>
Variable<T> AdaptiveAvgPool1d<T>::operator()(const Variable<T>& x) const {
  const auto scope = this->scope();
  return adaptive_avg_pool1d(x, output_size_);
}

template <class T>
AdaptiveAvgPool2d<T>::AdaptiveAvgPool2d(Dims output_size)
    : Module<T>("AdaptiveAvgPool2d"), output_size_(std::move(output_size)) {}

template <class T>
Variable<T> AdaptiveAvgPool2d<T>::operator()(const Variable<T>& x) const {
  const auto scope = this->scope();
  return adaptive_avg_pool2d(x, output_size_);
}

template <class T>
AdaptiveMaxPool1d<T>::AdaptiveMaxPool1d(Int output_size)
    : Module<T>("AdaptiveMaxPool1d"), output_size_(output_size) {}

template <class T>
Variable<T> AdaptiveMaxPool1d<T>::operator()(const Variable<T>& x) const {
  const auto scope = this->scope();
  return adaptive_max_pool1d(x, output_size_).values;
}

template <class T>
AdaptiveMaxPool2d<T>::AdaptiveMaxPool2d(Dims output_size)
    : Module<T>("AdaptiveMaxPool2d"), output_size_(std::move(output_size)) {}

template <class T>
Variable<T> AdaptiveMaxPool2d<T>::operator()(const Variable<T>& x) const {
  const auto scope = this->scope();
  return adaptive_max_pool2d(x, output_size_).values;
}

#define XGRAD_INSTANTIATE(T)           \
  template class MaxPool1d<T>;         \
  template class MaxPool2d<T>;         \
  template class AvgPool1d<T>;         \
  template class AvgPool2d<T>;         \
  template class AdaptiveAvgPool1d<T>; \
  template class AdaptiveAvgPool2d<T>; \
  template class AdaptiveMaxPool1d<T>; \
  template class AdaptiveMaxPool2d<T>;

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
