#pragma once

#include "../../ops/window/convolution.hpp"
#include "../module.hpp"

namespace xgrad {
namespace detail {

/// The parameters of a convolution, initialized uniformly in [-1/sqrt(n), 1/sqrt(n)), where n is the number
/// of elements of weight[0].
template <class T>
class ConvolutionModule : public Module<T> {
 public:
  const Variable<T>& weight() const& { return weight_; }
  Variable<T> weight() && { return weight_; }
  const Variable<T>& bias() const& { return bias_; }  ///< undefined without a bias
  Variable<T> bias() && { return bias_; }

 protected:
  /// The shape of the weight is (first, second / groups, kernel...).
  ConvolutionModule(const char* type, std::size_t first, std::size_t second, std::size_t biases,
                    const Dims& kernel_size, std::size_t axes, Int groups, bool bias);

  Variable<T> weight_, bias_;
};

}  // namespace detail

/// conv1d with weight (out_channels, in_channels / groups, kernel_size) and bias (out_channels).
///
/// Throws ValueError for sizes of 0, and for groups that do not divide the channels.
/// https://pytorch.org/docs/stable/generated/torch.nn.Conv1d.html
template <class T>
class Conv1d : public detail::ConvolutionModule<T> {
 public:
  Conv1d(std::size_t in_channels, std::size_t out_channels, Int kernel_size, ConvOptions options = {},
         bool bias = true);
  Variable<T> operator()(const Variable<T>& x) const;

 private:
  ConvOptions options_;
};

/// conv2d with weight (out_channels, in_channels / groups, kernel_size...) and bias (out_channels), for a
/// kernel_size with one number for both axes or two. Errors as of Conv1d.
/// https://pytorch.org/docs/stable/generated/torch.nn.Conv2d.html
template <class T>
class Conv2d : public detail::ConvolutionModule<T> {
 public:
  Conv2d(std::size_t in_channels, std::size_t out_channels, const Dims& kernel_size, ConvOptions options = {},
         bool bias = true);
  Variable<T> operator()(const Variable<T>& x) const;

 private:
  ConvOptions options_;
};

/// conv_transpose1d with weight (in_channels, out_channels / groups, kernel_size) and bias (out_channels).
/// Errors as of Conv1d. https://pytorch.org/docs/stable/generated/torch.nn.ConvTranspose1d.html
template <class T>
class ConvTranspose1d : public detail::ConvolutionModule<T> {
 public:
  ConvTranspose1d(std::size_t in_channels, std::size_t out_channels, Int kernel_size,
                  ConvTransposeOptions options = {}, bool bias = true);
  Variable<T> operator()(const Variable<T>& x) const;

 private:
  ConvTransposeOptions options_;
};

/// conv_transpose2d with weight (in_channels, out_channels / groups, kernel_size...) and bias (out_channels).
/// Errors as of Conv1d. https://pytorch.org/docs/stable/generated/torch.nn.ConvTranspose2d.html
template <class T>
class ConvTranspose2d : public detail::ConvolutionModule<T> {
 public:
  ConvTranspose2d(std::size_t in_channels, std::size_t out_channels, const Dims& kernel_size,
                  ConvTransposeOptions options = {}, bool bias = true);
  Variable<T> operator()(const Variable<T>& x) const;

 private:
  ConvTransposeOptions options_;
};

}  // namespace xgrad
