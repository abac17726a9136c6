#pragma once

#include "../../ops/window/pooling.hpp"
#include "../module.hpp"

// The pools of ops/window/pooling.hpp as modules without parameters.

namespace xgrad {

/// max_pool1d. https://pytorch.org/docs/stable/generated/torch.nn.MaxPool1d.html
template <class T>
class MaxPool1d : public Module<T> {
 public:
  explicit MaxPool1d(Int kernel_size, MaxPoolOptions options = {});
  Variable<T> operator()(const Variable<T>& x) const;

 private:
  Int kernel_size_;
  MaxPoolOptions options_;
};

/// max_pool2d. https://pytorch.org/docs/stable/generated/torch.nn.MaxPool2d.html
template <class T>
class MaxPool2d : public Module<T> {
 public:
  explicit MaxPool2d(Dims kernel_size, MaxPoolOptions options = {});
  Variable<T> operator()(const Variable<T>& x) const;

 private:
  Dims kernel_size_;
  MaxPoolOptions options_;
};

/// avg_pool1d. https://pytorch.org/docs/stable/generated/torch.nn.AvgPool1d.html
template <class T>
class AvgPool1d : public Module<T> {
 public:
  explicit AvgPool1d(Int kernel_size, AvgPoolOptions options = {});
  Variable<T> operator()(const Variable<T>& x) const;

 private:
  Int kernel_size_;
  AvgPoolOptions options_;
};

/// avg_pool2d. https://pytorch.org/docs/stable/generated/torch.nn.AvgPool2d.html
template <class T>
class AvgPool2d : public Module<T> {
 public:
  explicit AvgPool2d(Dims kernel_size, AvgPoolOptions options = {});
  Variable<T> operator()(const Variable<T>& x) const;

 private:
  Dims kernel_size_;
  AvgPoolOptions options_;
};

/// adaptive_avg_pool1d. https://pytorch.org/docs/stable/generated/torch.nn.AdaptiveAvgPool1d.html
template <class T>
class AdaptiveAvgPool1d : public Module<T> {
 public:
  explicit AdaptiveAvgPool1d(Int output_size);
  Variable<T> operator()(const Variable<T>& x) const;

 private:
  Int output_size_;
};

/// adaptive_avg_pool2d. https://pytorch.org/docs/stable/generated/torch.nn.AdaptiveAvgPool2d.html
template <class T>
class AdaptiveAvgPool2d : public Module<T> {
 public:
  explicit AdaptiveAvgPool2d(Dims output_size);
  Variable<T> operator()(const Variable<T>& x) const;

 private:
  Dims output_size_;
};

/// adaptive_max_pool1d. https://pytorch.org/docs/stable/generated/torch.nn.AdaptiveMaxPool1d.html
template <class T>
class AdaptiveMaxPool1d : public Module<T> {
 public:
  explicit AdaptiveMaxPool1d(Int output_size);
  Variable<T> operator()(const Variable<T>& x) const;

 private:
  Int output_size_;
};

/// adaptive_max_pool2d. https://pytorch.org/docs/stable/generated/torch.nn.AdaptiveMaxPool2d.html
template <class T>
class AdaptiveMaxPool2d : public Module<T> {
 public:
  explicit AdaptiveMaxPool2d(Dims output_size);
  Variable<T> operator()(const Variable<T>& x) const;

 private:
  Dims output_size_;
};

}  // namespace xgrad
