#include "channel_norms.hpp"

#include <algorithm>

#include "../../graph/fused.hpp"
#include "../../graph/watch.hpp"
#include "../../kernels/rows/batch_norm.hpp"
#include "../../kernels/rows/group_norm.hpp"
#include "../detail/kernel_grads.hpp"
#include "../pointwise/arithmetic.hpp"
#include "../pointwise/elementwise.hpp"
#include "../reduce/reductions.hpp"
#include "../shape/shapes.hpp"
#include "layer_norm.hpp"

namespace xgrad {
namespace {

/// x (batch, channels, size).
struct Channels {
  std::size_t batch, channels, size;
};

template <class T>
void check_channel_parameter(const char* op, const char* name, const Variable<T>& parameter,
                             const Variable<T>& x) {
  if (parameter.defined() && !same_shape(parameter.shape(), {x.shape(1)})) {
    detail::fail<ShapeError>(op, ": ", name, " must have shape (", x.shape(1), ") to fit x ", x.shape(),
                             ", got ", parameter.shape());
  }
}

template <class T>
Channels channels_of(const char* op, const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias,
                     double eps) {
  if (!(eps >= 0)) detail::fail<ValueError>(op, ": eps must be at least 0, got ", eps);
  if (x.dimension() < 2)
    detail::fail<ShapeError>(op, ": x must have the axes (batch, channels, ...), got ", x.shape());
  check_channel_parameter(op, "weight", weight, x);
  check_channel_parameter(op, "bias", bias, x);
  return {x.shape(0), x.shape(1), element_count(Shape(x.shape().begin() + 2, x.shape().end()))};
}

/// Statistics are given both or neither.
template <class T>
void check_statistics(const char* op, const Variable<T>& mean, const Variable<T>& variance, bool are_read,
                      double momentum, const Variable<T>& x) {
  if (!(momentum >= 0 && momentum <= 1))
    detail::fail<ValueError>(op, ": momentum must be in [0, 1], got ", momentum);
  check_channel_parameter(op, "running_mean", mean, x);
  check_channel_parameter(op, "running_var", variance, x);
  if (mean.defined() != variance.defined() || (are_read && !mean.defined()))
    detail::fail<ValueError>(op, ": running_mean and running_var must be given",
                             are_read ? "" : " both or neither");
}

[[noreturn]] void fail_on_one_element(const char* op, const Shape& x) {
  detail::fail<ValueError>(op, ": there must be more than one element to normalize over, got x ", x);
}

/// A vector by channels, to be broadcast to x.
template <class T>
Variable<T> by_channel(const Variable<T>& v, const Variable<T>& x) {
  Shape shape(x.dimension() - 1, 1);
  shape[0] = v.size();
  return reshape(v, shape);
}

template <class T>
Variable<T> scaled_and_shifted(Variable<T> y, const Variable<T>& weight, const Variable<T>& bias) {
  if (weight.defined()) y = y * by_channel(weight, y);
  return bias.defined() ? y + by_channel(bias, y) : y;
}

/// Each row without its mean, divided by its standard deviation.
template <class T>
Variable<T> standardized(const Variable<T>& rows, double eps) {
  return layer_norm(rows, rows.shape(1), Variable<T>(), Variable<T>(), eps);
}

template <class T>
Variable<T> by_running_statistics(const Variable<T>& x, const Variable<T>& mean, const Variable<T>& variance,
                                  const Variable<T>& weight, const Variable<T>& bias, double eps) {
  const Variable<T> deviation = sqrt(variance + static_cast<T>(eps));
  const Variable<T> scale = weight.defined() ? weight / deviation : 1 / deviation;
  return scaled_and_shifted(x - by_channel(mean, x), scale, bias);
}

/// (1 - momentum) running + momentum current
template <class T>
Array<T> moved(const Variable<T>& running, const Array<T>& current, double momentum) {
  const T share = static_cast<T>(momentum);
  return running.value() * (1 - share) + current * share;
}

/// Sets those of a layer that has some, once nothing can throw any more.
template <class T>
void set_statistics(const Variable<T>& running_mean, const Array<T>& mean, const Variable<T>& running_var,
                    const Array<T>& variance) {
  if (!running_mean.defined() || !same_shape(running_mean.shape(), mean.shape())) return;
  running_mean.assign(mean);
  running_var.assign(variance);
}

template <class T>
Variable<T> batch_norm_composed(const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias,
                                const Channels& c, double eps) {
  const Variable<T> by_batch = reshape(x, {c.batch, c.channels, c.size});
  const Variable<T> rows = reshape(permute(by_batch, {1, 0, 2}), {c.channels, c.batch * c.size});
  const Variable<T> y = permute(reshape(standardized(rows, eps), {c.channels, c.batch, c.size}), {1, 0, 2});
  return scaled_and_shifted(reshape(y, x.shape()), weight, bias);
}

template <class T>
const T* data_or_null(const Variable<T>& v) {
  return v.defined() ? detail::data(v) : nullptr;
}

template <class T>
kernels::BatchNormInput<T> kernel_input(const Channels& c, const Variable<T>& x, const Variable<T>& weight,
                                        const Variable<T>& bias) {
  return {c.batch, c.channels, c.size, detail::data(x), data_or_null(weight), data_or_null(bias)};
}

/// By the batch's statistics.
template <class T>
Variable<T> by_own_statistics(const Variable<T>& x, const Channels& c, const Variable<T>& running_mean,
                              const Variable<T>& running_var, const Variable<T>& weight,
                              const Variable<T>& bias, const BatchNormOptions& options) {
  Variable<T> y = detail::empty<T>(x.shape());
  Variable<T> mean = detail::empty<T>(Shape{c.channels}), rstd = detail::empty<T>(Shape{c.channels});
  Variable<T> variance = detail::empty<T>(Shape{c.channels});
  kernels::batch_norm<T>(kernel_input(c, x, weight, bias), static_cast<T>(options.eps),
                         {detail::data(mean), detail::data(rstd)}, detail::data(variance), detail::data(y));
  Array<T> new_mean, new_var;
  if (running_mean.defined() && x.size() > 0) {
    const T count = static_cast<T>(c.batch * c.size);
    new_mean = moved(running_mean, mean.value(), options.momentum);
    new_var = moved(running_var, Array<T>(variance.value() * (count / (count - 1))), options.momentum);
  }
  Variable<T> result = fused<T>(
      ops::batch_norm, std::move(y), Inputs(x, weight, Unread(bias)), Attributes(options.eps),
      Saved(mean, rstd),
      [c, eps = options.eps](const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias) {
        return batch_norm_composed(x, weight, bias, c, eps);
      },
      [c](const Variable<T>& dy, Needs needs, const Variable<T>& x, const Variable<T>& weight,
          const Variable<T>&, const Variable<T>& mean, const Variable<T>& rstd) -> Grads<T, 3> {
        auto grads = detail::empty_grads<T, 3>(needs);
        auto& [dx, dweight, dbias] = grads;
        kernels::batch_norm_grad<T>(
            detail::data(dy), kernel_input(c, x, weight, Variable<T>()),
            {detail::data(mean), detail::data(rstd)},
            {detail::data_if_needed(dx), detail::data_if_needed(dweight), detail::data_if_needed(dbias)});
        return grads;
      });
  set_statistics(running_mean, new_mean, running_var, new_var);
  return result;
}

/// By the statistics of each group of channels of each sample.
template <class T>
Variable<T> by_groups(const Variable<T>& x, const Channels& c, std::size_t groups, const Variable<T>& weight,
                      const Variable<T>& bias, double eps) {
  const std::size_t rows = c.batch * groups, channels = c.channels / groups;
  const auto input = [c, groups, rows, channels](const Variable<T>& x, const Variable<T>& weight,
                                                 const Variable<T>& bias) -> kernels::GroupNormInput<T> {
    return {rows, groups, channels, c.size, detail::data(x), data_or_null(weight), data_or_null(bias)};
  };
  Variable<T> y = detail::empty<T>(x.shape());
  Variable<T> mean = detail::empty<T>(Shape{rows}), rstd = detail::empty<T>(Shape{rows});
  kernels::group_norm_rows<T>(input(x, weight, bias), static_cast<T>(eps),
                              {detail::data(mean), detail::data(rstd)}, detail::data(y));
  return fused<T>(
      ops::group_norm, std::move(y), Inputs(x, weight, Unread(bias)), Attributes(groups, eps),
      Saved(mean, rstd),
      [rows, length = channels * c.size, eps](const Variable<T>& x, const Variable<T>& weight,
                                              const Variable<T>& bias) {
        const Variable<T> y = standardized(reshape(x, {rows, length}), eps);
        return scaled_and_shifted(reshape(y, x.shape()), weight, bias);
      },
      [input](const Variable<T>& dy, Needs needs, const Variable<T>& x, const Variable<T>& weight,
              const Variable<T>&, const Variable<T>& mean, const Variable<T>& rstd) -> Grads<T, 3> {
        auto grads = detail::empty_grads<T, 3>(needs);
        auto& [dx, dweight, dbias] = grads;
        const kernels::GroupNormInput<T> rows = input(x, weight, Variable<T>());
        Variable<T> scratch = detail::empty<T>(Shape{kernels::group_norm_grad_scratch(rows)});
        kernels::group_norm_grad_rows<T>(
            detail::data(dy), rows, {detail::data(mean), detail::data(rstd)},
            {detail::data_if_needed(dx), detail::data_if_needed(dweight), detail::data_if_needed(dbias)},
            detail::data(scratch));
        return grads;
      });
}

}  // namespace

template <class T>
Variable<T> batch_norm(const Variable<T>& x, const Variable<T>& running_mean, const Variable<T>& running_var,
                       const Variable<T>& weight, const Variable<T>& bias, BatchNormOptions options) {
  const Channels c = channels_of("batch_norm", x, weight, bias, options.eps);
  check_statistics("batch_norm", running_mean, running_var, !options.training, options.momentum, x);
  if (!options.training)
    return by_running_statistics(x, running_mean, running_var, weight, bias, options.eps);
  if (c.batch * c.size == 1) fail_on_one_element("batch_norm", x.shape());
  return by_own_statistics(x, c, running_mean, running_var, weight, bias, options);
}

template <class T>
Variable<T> group_norm(const Variable<T>& x, Int num_groups, const Variable<T>& weight,
                       const Variable<T>& bias, double eps) {
  const Channels c = channels_of("group_norm", x, weight, bias, eps);
  if (num_groups < 1 || c.channels % static_cast<std::size_t>(num_groups) != 0) {
    detail::fail<ValueError>("group_norm: num_groups must be at least 1 and divide the channels of x ",
                             x.shape(), ", got ", num_groups);
  }
  const auto groups = static_cast<std::size_t>(num_groups);
  if (c.batch * (c.channels / groups) * c.size == 1) fail_on_one_element("group_norm", x.shape());
  return by_groups(x, c, groups, weight, bias, eps);
}

template <class T>
Variable<T> instance_norm(const Variable<T>& x, const Variable<T>& running_mean,
                          const Variable<T>& running_var, const Variable<T>& weight, const Variable<T>& bias,
                          InstanceNormOptions options) {
  const Channels c = channels_of("instance_norm", x, weight, bias, options.eps);
  check_statistics("instance_norm", running_mean, running_var, !options.use_input_stats, options.momentum, x);
  if (!options.use_input_stats)
    return by_running_statistics(x, running_mean, running_var, weight, bias, options.eps);
  if (c.size == 1) fail_on_one_element("instance_norm", x.shape());
  Array<T> new_mean, new_var;
  if (running_mean.defined() && x.size() > 0) {
    const detail::Unwatched parts;
    const Variable<T> samples = reshape(x.detach(), {c.batch, c.channels, c.size});
    new_mean = moved(running_mean, mean(samples, {0, 2}).value(), options.momentum);
    new_var = moved(running_var, mean(var(samples, 2), 0).value(), options.momentum);
  }
  Variable<T> y = by_groups(x, c, std::max<std::size_t>(c.channels, 1), weight, bias, options.eps);
  set_statistics(running_mean, new_mean, running_var, new_var);
  return y;
}

#define XGRAD_INSTANTIATE(T)                                                                                \
  template Variable<T> batch_norm(const Variable<T>&, const Variable<T>&, const Variable<T>&,               \
                                  const Variable<T>&, const Variable<T>&, BatchNormOptions);                \
  template Variable<T> group_norm(const Variable<T>&, Int, const Variable<T>&, const Variable<T>&, double); \
  template Variable<T> instance_norm(const Variable<T>&, const Variable<T>&, const Variable<T>&,            \
                                     const Variable<T>&, const Variable<T>&, InstanceNormOptions);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
