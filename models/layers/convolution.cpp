#include "convolution.hpp"

#include <cmath>

#include "../../base/random.hpp"
#include "../../ops/window/detail/axes.hpp"
#include "../detail/kaiming.hpp"
#include "../detail/sizes.hpp"

namespace xgrad {
namespace detail {

template <class T>
ConvolutionModule<T>::ConvolutionModule(const char* type, std::size_t first, std::size_t second,
                                        std::size_t biases, const Dims& kernel_size, std::size_t axes,
                                        Int groups, bool bias)
    : Module<T>(type) {
  checked_size(type, "in_channels", biases == first ? second : first);
  checked_size(type, "out_channels", biases);
  const auto parts = groups < 1 ? 0 : static_cast<std::size_t>(groups);
  if (parts == 0 || first % parts != 0 || second % parts != 0)
    fail<ValueError>(type, ": groups must be at least 1 and divide the channels, got ", groups);
  const PerAxis kernel = per_axis(type, "kernel_size", kernel_size, axes, 1, 1);
  Shape shape{first, second / parts};
  if (axes == 2) shape.push_back(kernel.rows);
  shape.push_back(kernel.cols);
  const std::size_t fan_in = shape[1] * kernel.rows * kernel.cols;
  const double bound = kaiming_bound(fan_in), bias_bound = 1 / std::sqrt(static_cast<double>(fan_in));
  weight_ = this->parameter("weight", uniform<T>(shape, -bound, bound));
  if (bias) bias_ = this->parameter("bias", uniform<T>({biases}, -bias_bound, bias_bound));
}

}  // namespace detail

template <class T>
Conv1d<T>::Conv1d(std::size_t in_channels, std::size_t out_channels, Int kernel_size, ConvOptions options,
                  bool bias)
    : detail::ConvolutionModule<T>("Conv1d", out_channels, in_channels, out_channels, kernel_size, 1,
                                   options.groups, bias),
      options_(std::move(options)) {}

template <class T>
Variable<T> Conv1d<T>::operator()(const Variable<T>& x) const {
  const auto scope = this->scope();
  return conv1d(x, this->weight_, this->bias_, options_);
}

template <class T>
Conv2d<T>::Conv2d(std::size_t in_channels, std::size_t out_channels, const Dims& kernel_size,
                  ConvOptions options, bool bias)
    : detail::ConvolutionModule<T>("Conv2d", out_channels, in_channels, out_channels, kernel_size, 2,
                                   options.groups, bias),
      options_(std::move(options)) {}

template <class T>
Variable<T> Conv2d<T>::operator()(const Variable<T>& x) const {
  const auto scope = this->scope();
  return conv2d(x, this->weight_, this->bias_, options_);
}

template <class T>
ConvTranspose1d<T>::ConvTranspose1d(std::size_t in_channels, std::size_t out_channels, Int kernel_size,
                                    ConvTransposeOptions options, bool bias)
    : detail::ConvolutionModule<T>("ConvTranspose1d", in_channels, out_channels, out_channels, kernel_size, 1,
                                   options.groups, bias),
      options_(std::move(options)) {}

template <class T>
Variable<T> ConvTranspose1d<T>::operator()(const Variable<T>& x) const {
  const auto scope = this->scope();
  return conv_transpose1d(x, this->weight_, this->bias_, options_);
}

template <class T>
ConvTranspose2d<T>::ConvTranspose2d(std::size_t in_channels, std::size_t out_channels,
                                    const Dims& kernel_size, ConvTransposeOptions options, bool bias)
    : detail::ConvolutionModule<T>("ConvTranspose2d", in_channels, out_channels, out_channels, kernel_size, 2,
                                   options.groups, bias),
      options_(std::move(options)) {}

template <class T>
Variable<T> ConvTranspose2d<T>::operator()(const Variable<T>& x) const {
  const auto scope = this->scope();
  return conv_transpose2d(x, this->weight_, this->bias_, options_);
}

#define XGRAD_INSTANTIATE(T)                   \
  template class detail::ConvolutionModule<T>; \
  template class Conv1d<T>;                    \
  template class Conv2d<T>;                    \
  template class ConvTranspose1d<T>;           \
  template class ConvTranspose2d<T>;

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
