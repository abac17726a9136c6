#pragma once

#include "../../base/detail/by_name.hpp"
#include "../../base/dims.hpp"
#include "../module.hpp"

namespace xgrad {

struct BatchNormConfig {
  detail::ByName by_name = {};
  double eps = 1e-5;
  double momentum = 0.1;            ///< the share of a batch's statistics in the new running ones
  bool affine = true;               ///< with a weight and a bias
  bool track_running_stats = true;  ///< false: each batch by its own statistics in evaluation, too
};

namespace detail {

/// weight, bias, running_mean, running_var and num_batches_tracked, which a norm may have or not.
template <class T>
class NormModule : public Module<T> {
 public:
  const Variable<T>& weight() const& { return weight_; }
  Variable<T> weight() && { return weight_; }
  const Variable<T>& bias() const& { return bias_; }
  Variable<T> bias() && { return bias_; }
  const Variable<T>& running_mean() const& { return running_mean_; }
  Variable<T> running_mean() && { return running_mean_; }
  const Variable<T>& running_var() const& { return running_var_; }
  Variable<T> running_var() && { return running_var_; }

 protected:
  NormModule(const char* type, std::size_t channels, const BatchNormConfig& config);

  /// Throws ShapeError unless x has `least` to `most` axes.
  void check_axes(const Variable<T>& x, std::size_t least, std::size_t most) const;
  /// batch_norm in the mode of the module; counts the batches.
  Variable<T> batch_normalized(const Variable<T>& x) const;
  Variable<T> instance_normalized(const Variable<T>& x) const;

  BatchNormConfig config_;
  Variable<T> weight_, bias_, running_mean_, running_var_, num_batches_tracked_;
};

}  // namespace detail

/// batch_norm of x (N, C) or (N, C, L) (Ioffe and Szegedy 2015, arXiv:1502.03167): in training by the batch's
/// statistics, which the running ones follow, in evaluation by these.
///
/// weight is initialized to ones, bias to zeros. Throws ValueError for no features and a negative eps.
/// https://pytorch.org/docs/stable/generated/torch.nn.BatchNorm1d.html
template <class T>
class BatchNorm1d : public detail::NormModule<T> {
 public:
  explicit BatchNorm1d(std::size_t num_features, BatchNormConfig config = {});
  Variable<T> operator()(const Variable<T>& x) const;
};

/// The same of x (N, C, H, W). https://pytorch.org/docs/stable/generated/torch.nn.BatchNorm2d.html
template <class T>
class BatchNorm2d : public detail::NormModule<T> {
 public:
  explicit BatchNorm2d(std::size_t num_features, BatchNormConfig config = {});
  Variable<T> operator()(const Variable<T>& x) const;
};

struct InstanceNormConfig {
  detail::ByName by_name = {};
  double eps = 1e-5;
  double momentum = 0.1;
  bool affine = false;
  bool track_running_stats = false;  ///< and in evaluation normalize by them
};

/// instance_norm of x (N, C, L) (Ulyanov et al. 2016, arXiv:1607.08022). Errors as of BatchNorm1d.
/// https://pytorch.org/docs/stable/generated/torch.nn.InstanceNorm1d.html
template <class T>
class InstanceNorm1d : public detail::NormModule<T> {
 public:
  explicit InstanceNorm1d(std::size_t num_features, InstanceNormConfig config = {});
  Variable<T> operator()(const Variable<T>& x) const;
};

/// The same of x (N, C, H, W). https://pytorch.org/docs/stable/generated/torch.nn.InstanceNorm2d.html
template <class T>
class InstanceNorm2d : public detail::NormModule<T> {
 public:
  explicit InstanceNorm2d(std::size_t num_features, InstanceNormConfig config = {});
  Variable<T> operator()(const Variable<T>& x) const;
};

struct GroupNormConfig {
  detail::ByName by_name = {};
  double eps = 1e-5;
  bool affine = true;
};

/// group_norm of x (N, C, ...) (Wu and He 2018, arXiv:1803.08494). Throws ValueError also unless num_groups
/// divides num_channels. https://pytorch.org/docs/stable/generated/torch.nn.GroupNorm.html
template <class T>
class GroupNorm : public detail::NormModule<T> {
 public:
  GroupNorm(std::size_t num_groups, std::size_t num_channels, GroupNormConfig config = {});
  Variable<T> operator()(const Variable<T>& x) const;

 private:
  std::size_t num_groups_;
};

}  // namespace xgrad
