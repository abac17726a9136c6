#include "channel_norms.hpp"

#include "../../ops/norm/channel_norms.hpp"
#include "../detail/sizes.hpp"

namespace xgrad {
namespace detail {

template <class T>
NormModule<T>::NormModule(const char* type, std::size_t channels, const BatchNormConfig& config)
    : Module<T>(type), config_(config) {
  checked_size(type, "the number of channels", channels);
  if (!(config.eps >= 0)) fail<ValueError>(type, ": eps must be at least 0, got ", config.eps);
  checked_probability(type, "momentum", config.momentum);
  if (config.affine) {
    weight_ = this->parameter("weight", Array<T>(Shape{channels}, T(1)));
    bias_ = this->parameter("bias", Array<T>(Shape{channels}, T(0)));
  }
  if (config.track_running_stats) {
    running_mean_ = this->buffer("running_mean", Array<T>(Shape{channels}, T(0)));
    running_var_ = this->buffer("running_var", Array<T>(Shape{channels}, T(1)));
    num_batches_tracked_ = this->buffer("num_batches_tracked", Array<T>(Shape{}, T(0)));
  }
}

template <class T>
void NormModule<T>::check_axes(const Variable<T>& x, std::size_t least, std::size_t most) const {
  if (x.dimension() >= least && x.dimension() <= most) return;
  const std::string more = least == most ? "" : " or " + std::to_string(most);
  fail<ShapeError>(this->type(), ": x must have ", least, more, " axes, got ", x.shape());
}

template <class T>
Variable<T> NormModule<T>::batch_normalized(const Variable<T>& x) const {
  const bool training = this->training(), tracked = config_.track_running_stats;
  Variable<T> y =
      batch_norm(x, running_mean_, running_var_, weight_, bias_,
                 {.training = training || !tracked, .momentum = config_.momentum, .eps = config_.eps});
  if (training && tracked) ++*mutable_data(num_batches_tracked_);
  return y;
}

template <class T>
Variable<T> NormModule<T>::instance_normalized(const Variable<T>& x) const {
  const bool own = this->training() || !config_.track_running_stats;
  return instance_norm(x, running_mean_, running_var_, weight_, bias_,
                       {.use_input_stats = own, .momentum = config_.momentum, .eps = config_.eps});
}

}  // namespace detail

namespace {

BatchNormConfig as_batch_norm(const InstanceNormConfig& c) {
  return {
      .eps = c.eps, .momentum = c.momentum, .affine = c.affine, .track_running_stats = c.track_running_stats};
}

}  // namespace

template <class T>
BatchNorm1d<T>::BatchNorm1d(std::size_t num_features, BatchNormConfig config)
    : detail::NormModule<T>("BatchNorm1d", num_features, config) {}

template <class T>
Variable<T> BatchNorm1d<T>::operator()(const Variable<T>& x) const {
  const auto scope = this->scope();
  this->check_axes(x, 2, 3);
  return this->batch_normalized(x);
}

template <class T>
BatchNorm2d<T>::BatchNorm2d(std::size_t num_features, BatchNormConfig config)
    : detail::NormModule<T>("BatchNorm2d", num_features, config) {}

template <class T>
Variable<T> BatchNorm2d<T>::operator()(const Variable<T>& x) const {
  const auto scope = this->scope();
  this->check_axes(x, 4, 4);
  return this->batch_normalized(x);
}

template <class T>
InstanceNorm1d<T>::InstanceNorm1d(std::size_t num_features, InstanceNormConfig config)
    : detail::NormModule<T>("InstanceNorm1d", num_features, as_batch_norm(config)) {}

template <class T>
Variable<T> InstanceNorm1d<T>::operator()(const Variable<T>& x) const {
  const auto scope = this->scope();
  this->check_axes(x, 3, 3);
  return this->instance_normalized(x);
}

template <class T>
InstanceNorm2d<T>::InstanceNorm2d(std::size_t num_features, InstanceNormConfig config)
    : detail::NormModule<T>("InstanceNorm2d", num_features, as_batch_norm(config)) {}

template <class T>
Variable<T> InstanceNorm2d<T>::operator()(const Variable<T>& x) const {
  const auto scope = this->scope();
  this->check_axes(x, 4, 4);
  return this->instance_normalized(x);
}

template <class T>
GroupNorm<T>::GroupNorm(std::size_t num_groups, std::size_t num_channels, GroupNormConfig config)
    : detail::NormModule<T>("GroupNorm", num_channels,
                            {.eps = config.eps, .affine = config.affine, .track_running_stats = false}),
      num_groups_(detail::checked_size("GroupNorm", "num_groups", num_groups)) {
  if (num_channels % num_groups != 0) {
    detail::fail<ValueError>("GroupNorm: num_groups must divide num_channels, got ", num_groups, " and ",
                             num_channels);
  }
}

template <class T>
Variable<T> GroupNorm<T>::operator()(const Variable<T>& x) const {
  const auto scope = this->scope();
  return group_norm(x, num_groups_, this->weight_, this->bias_, this->config_.eps);
}

#define XGRAD_INSTANTIATE(T)            \
  template class detail::NormModule<T>; \
  template class BatchNorm1d<T>;        \
  template class BatchNorm2d<T>;        \
  template class InstanceNorm1d<T>;     \
  template class InstanceNorm2d<T>;     \
  template class GroupNorm<T>;

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
