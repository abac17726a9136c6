#include "linear_cross_entropy.hpp"

#include <algorithm>
#include <memory>

#include "../../graph/fused.hpp"
#include "../../kernels/gemm/gemm.hpp"
#include "../../kernels/gemm/linear.hpp"
#include "../../kernels/pointwise/binary.hpp"
#include "../../kernels/rows/reduce.hpp"
#include "../detail/kernel_grads.hpp"
#include "../pointwise/arithmetic.hpp"
#include "../product/detail/reduced_rows.hpp"
#include "../product/linear.hpp"
#include "../shape/shapes.hpp"
#include "detail/class_targets.hpp"

namespace xgrad {
namespace {

constexpr const char* loss_name = ops::linear_cross_entropy.name;

/// The logits of x (rows, in) and what they are compared with.
template <class T>
struct LinearLoss {
  std::size_t rows, in, classes;
  Shape target_shape;
  detail::ClassTargets<T> to;
  CrossEntropyOptions<T> options;
  Weight<T> constant_weight;  // undefined where the weight is a Variable, and so an input

  /// As many as products need to run at full speed, unless their logits are too many.
  std::size_t rows_at_once() const {
    constexpr std::size_t most_rows = 1024, most_logits = std::size_t{1} << 24;
    const std::size_t fitting = most_logits / std::max<std::size_t>(classes, 1);
    const std::size_t blocks = rows / std::clamp<std::size_t>(fitting, 1, most_rows) + 1;
    return (rows + blocks - 1) / blocks;
  }
};

template <class T>
struct LossOperands {
  LossOperands(const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias)
      : x(detail::data(x)),
        weight(weight.defined() ? detail::data(weight) : nullptr),
        bias(bias.defined() ? detail::data(bias) : nullptr) {}

  const T *x, *weight, *bias;
};

/// Where gradients go, each of which may be null.
template <class T>
struct LossGrads {
  T *dx = nullptr, *dweight = nullptr, *dbias = nullptr;

  bool any() const { return dx != nullptr || dweight != nullptr || dbias != nullptr; }
};

/// The losses of the rows, and the gradients of their sum, each times a row's weight.
template <class T>
void losses_in_blocks(const LinearLoss<T>& loss, const LossOperands<T>& from, const T* row_weights, T* losses,
                      const LossGrads<T>& grads) {
  const std::size_t in = loss.in, classes = loss.classes, block = loss.rows_at_once();
  if (loss.rows == 0) {
    if (grads.dweight) std::fill_n(grads.dweight, classes * in, T(0));
    if (grads.dbias) std::fill_n(grads.dbias, classes, T(0));
  }
  Variable<T> memory = detail::empty<T>(Shape{block, classes}, loss_name);
  Variable<T> sums;
  if (grads.dbias) sums = detail::empty<T>(Shape{classes}, loss_name);
  T* const logits = detail::data(memory);
  const kernels::Matrix<const T> weight(from.weight, classes, in);
  const detail::ReducedRows* const reduced = detail::WeightAccess<T>::reduced(loss.constant_weight);
  for (std::size_t begin = 0; begin < loss.rows; begin += block) {
    const std::size_t count = std::min(block, loss.rows - begin);
    const kernels::Matrix<const T> x(from.x + begin * in, count, in);
    const auto to = loss.to.plain(begin);
    if (reduced != nullptr) {
      reduced->multiply<T>(x, from.bias, logits);
    } else {
      kernels::linear_rows<T>(x, weight, from.bias, logits);
    }
    kernels::cross_entropy_rows(logits, to, logits, losses + begin, count, classes);
    if (!grads.any()) continue;
    kernels::cross_entropy_grad_rows(logits, to, row_weights + begin, logits, count, classes);
    const kernels::Matrix<const T> dlogits(logits, count, classes);
    if (grads.dx && reduced != nullptr) {
      reduced->multiply_gradient<T>(dlogits, grads.dx + begin * in);
    } else if (grads.dx) {
      kernels::gemm<T>(1, dlogits, weight, 0, {grads.dx + begin * in, count, in});
    }
    if (grads.dweight)
      kernels::gemm<T>(1, dlogits.transpose(), x, begin == 0 ? T(0) : T(1), {grads.dweight, classes, in});
    if (!grads.dbias) continue;
    T* const sum = begin == 0 ? grads.dbias : detail::data(sums);
    kernels::sum_middle<T>(logits, 1, count, classes, sum);
    if (begin > 0) kernels::accumulate<T>(grads.dbias, sum, classes);
  }
}

template <class T>
Variable<T> composed_loss(const LinearLoss<T>& loss, const Variable<T>& x, const Variable<T>& weight,
                          const Variable<T>& bias) {
  const Variable<T> rows = reshape(x, Shape{loss.rows, loss.in});
  const Variable<T> logits =
      loss.constant_weight.defined() ? linear(rows, loss.constant_weight, bias) : linear(rows, weight, bias);
  const Variable<T> y = cross_entropy(logits, loss.to.ids, loss.options);
  return loss.to.reduced() ? y : reshape(y, loss.target_shape);
}

/// The gradients that are needed, for losses_in_blocks to fill.
template <class T>
struct KeptGrads {
  Variable<T> dx, dweight, dbias;

  LossGrads<T> plain() {
    return {detail::data_if_needed(dx), detail::data_if_needed(dweight), detail::data_if_needed(dbias)};
  }
};

/// One number; its gradients are computed now.
template <class T>
Variable<T> reduced_loss(const std::shared_ptr<const LinearLoss<T>>& loss, const Variable<T>& x,
                         const Variable<T>& weight, const Variable<T>& bias) {
  const bool recorded = will_record(x, weight, bias);
  const auto gradient_of = [&](const Variable<T>& input) {
    return recorded && input.defined() && input.requires_grad() ? detail::empty<T>(input.shape(), loss_name)
                                                                : Variable<T>();
  };
  KeptGrads<T> kept{gradient_of(x), gradient_of(weight), gradient_of(bias)};
  Variable<T> losses = detail::empty<T>(Shape{loss->rows}, loss_name),
              row_weights = detail::empty<T>(Shape{loss->rows}, loss_name);
  kernels::fill(1 / loss->to.divisor, detail::data(row_weights), loss->rows);
  losses_in_blocks(*loss, LossOperands<T>(x, weight, bias), detail::data(std::as_const(row_weights)),
                   detail::data(losses), kept.plain());
  Variable<T> y = detail::empty<T>(Shape{});
  kernels::sum_middle(detail::data(std::as_const(losses)), 1, loss->rows, 1, detail::data(y));
  *detail::data(y) /= loss->to.divisor;
  return fused<T>(
      ops::linear_cross_entropy, std::move(y), Inputs(Unread(x), Unread(weight), Unread(bias)),
      Attributes(loss->to.ids, loss->to.ignore_index, loss->to.smoothing, loss->to.reduction_name(),
                 loss->to.weight),
      Saved(kept.dx, kept.dweight, kept.dbias),
      [loss](const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias) {
        return composed_loss(*loss, x, weight, bias);
      },
      [](const Variable<T>& dy, Needs needs, const Variable<T>&, const Variable<T>&, const Variable<T>&,
         const Variable<T>& dx, const Variable<T>& dweight, const Variable<T>& dbias) -> Grads<T, 3> {
        const T factor = *detail::data(dy);
        const auto times = [&](std::size_t input, const Variable<T>& gradient) {
          if (!needs[input]) return Variable<T>();
          return factor == 1 ? gradient : gradient * factor;
        };
        return {times(0, dx), times(1, dweight), times(2, dbias)};
      });
}

/// The losses of the rows.
template <class T>
Variable<T> row_losses(const std::shared_ptr<const LinearLoss<T>>& loss, const Variable<T>& x,
                       const Variable<T>& weight, const Variable<T>& bias) {
  Variable<T> y = detail::empty<T>(loss->target_shape, loss_name);
  losses_in_blocks(*loss, LossOperands<T>(x, weight, bias), static_cast<const T*>(nullptr), detail::data(y),
                   LossGrads<T>());
  return fused<T>(
      ops::linear_cross_entropy, std::move(y), Inputs(x, weight, bias),
      Attributes(loss->to.ids, loss->to.ignore_index, loss->to.smoothing, loss->to.reduction_name(),
                 loss->to.weight),
      Saved(),
      [loss](const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias) {
        return composed_loss(*loss, x, weight, bias);
      },
      [loss](const Variable<T>& dy, Needs needs, const Variable<T>& x, const Variable<T>& weight,
             const Variable<T>& bias) -> Grads<T, 3> {
        auto grads = detail::empty_grads<T, 3>(needs);
        auto& [dx, dweight, dbias] = grads;
        Variable<T> losses = detail::empty<T>(Shape{loss->rows}, loss_name);
        losses_in_blocks(*loss, LossOperands<T>(x, weight, bias), detail::data(dy), detail::data(losses),
                         LossGrads<T>{detail::data_if_needed(dx), detail::data_if_needed(dweight),
                                      detail::data_if_needed(dbias)});
        return grads;
      });
}

template <class T>
void check_operands(const Variable<T>& x, const Shape& weight, const Variable<T>& bias, const Ids& target) {
  if (weight.size() != 2)
    detail::fail<ShapeError>(loss_name, ": weight must have the axes (classes, in), got ", weight);
  if (x.dimension() == 0 || x.shape().back() != weight[1])
    detail::fail<ShapeError>(loss_name, ": the last axis of x must be weight's last, got x ", x.shape(),
                             " and weight ", weight);
  if (bias.defined() && bias.shape() != Shape{weight[0]})
    detail::fail<ShapeError>(loss_name, ": linear_bias must have shape (", weight[0], ") to fit weight ",
                             weight, ", got ", bias.shape());
  const Shape rows(x.shape().begin(), x.shape().end() - 1);
  if (!same_shape(target.shape(), rows))
    detail::fail<ShapeError>(loss_name, ": target must have the shape of x without the last axis, got x ",
                             x.shape(), " and target ", target.shape());
}

}  // namespace

template <class T>
Variable<T> linear_cross_entropy(const Variable<T>& x, const std::type_identity_t<Weight<T>>& weight,
                                 const Ids& target,
                                 const LinearCrossEntropyOptions<std::type_identity_t<T>>& options) {
  const Variable<T>& bias = options.linear_bias;
  const Shape shape = weight.shape();
  check_operands(x, shape, bias, target);
  if (weight.dtype() == DType::I8) detail::refuse_gradient_of_integers(loss_name, will_record(x, bias));
  const std::size_t classes = shape[0];
  const CrossEntropyOptions<T> of_classes{.weight = options.weight,
                                          .ignore_index = options.ignore_index,
                                          .reduction = options.reduction,
                                          .label_smoothing = options.label_smoothing};
  detail::check_class_options(loss_name, of_classes, classes);
  Ids ids = target;
  ids.reshape(Shape{target.size()});
  const auto loss = std::allocate_shared<const LinearLoss<T>>(
      PoolAllocator<LinearLoss<T>>(),
      LinearLoss<T>{target.size(), shape[1], classes, target.shape(),
                    detail::ClassTargets<T>(loss_name, ids, of_classes, classes), of_classes,
                    weight.is_trainable() ? Weight<T>() : weight});
  const Variable<T>& floats = detail::WeightAccess<T>::variable(weight);
  return options.reduction == Reduction::none ? row_losses<T>(loss, x, floats, bias)
                                              : reduced_loss<T>(loss, x, floats, bias);
}

#define XGRAD_INSTANTIATE(T)                                                                  \
  template Variable<T> linear_cross_entropy(const Variable<T>&, const Weight<T>&, const Ids&, \
                                            const LinearCrossEntropyOptions<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
