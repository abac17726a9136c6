#include "kernel_mask.hpp"

#include <limits>

#include "../../pointwise/broadcast.hpp"
#include "../../pointwise/masked_fill.hpp"

namespace xgrad::detail {
namespace {

/// Sets the strides of a mask that broadcasts to the scores, if all batch axes can be walked as one; else
/// returns false.
template <class T>
bool set_strides(const Shape& mask, const Shape& scores, std::size_t batch_axes, kernels::MaskView<T>& view) {
  const Strides strides = broadcast_strides(mask, scores);
  const std::size_t rank = scores.size();
  view.key_stride = strides[rank - 1];
  view.query_stride = strides[rank - 2];
  view.head_stride = rank - 2 > batch_axes ? strides[rank - 3] : 0;
  view.batch_stride = 0;
  bool innermost = true;
  std::ptrdiff_t expected = 0;
  for (std::size_t axis = batch_axes; axis-- > 0;) {
    if (scores[axis] == 1) continue;  // nothing is walked along it
    if (innermost) {
      view.batch_stride = expected = strides[axis];
      innermost = false;
    } else if (strides[axis] != expected) {
      return false;
    }
    expected *= static_cast<std::ptrdiff_t>(scores[axis]);
  }
  return true;
}

/// True where the query may not attend to the key.
Mask hidden_keys(const Mask* allowed, const kernels::KeyWindow& window, const Shape& scores) {
  Mask hidden = xt::zeros<bool>(scores);
  if (allowed != nullptr) hidden = !xt::broadcast(*allowed, scores);
  if (!window.is_limited()) return hidden;
  const std::size_t L = scores[scores.size() - 2], S = scores[scores.size() - 1];
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    const std::size_t key = i % S, query = i / S % L;
    if (key < window.begin(query) || key >= window.end(query, S)) hidden.data()[i] = true;
  }
  return hidden;
}

}  // namespace

template <class T>
void check_mask(const char* op, const AttentionMask<T>& mask, const Shape& scores) {
  const Shape* const shape = mask.shape();
  if (shape != nullptr && !stretches_to(*shape, scores))
    fail<ShapeError>(op, ": attn_mask must broadcast to the scores ", scores, ", got ", *shape);
}

template <class T>
Variable<T> masked_scores(const Variable<T>& scores, const Mask* allowed, const Variable<T>& bias,
                          const kernels::KeyWindow& window) {
  const Variable<T> sum = bias.defined() ? scores + bias : scores;
  if (allowed == nullptr && !window.is_limited()) return sum;
  return masked_fill(sum, hidden_keys(allowed, window, scores.shape()), -std::numeric_limits<T>::infinity());
}

template <class T>
KernelMask<T>::KernelMask(const Mask* allowed, const Variable<T>& bias, const Shape& scores,
                          std::size_t batch_axes) {
  if (allowed != nullptr) {
    view_.allowed = read(*allowed, stretched_, scores, batch_axes);
  } else if (bias.defined()) {
    view_.bias = read(bias.value(), stretched_bias_, scores, batch_axes);
  }
}

template <class T>
template <class M>
const M* KernelMask<T>::read(const Array<M>& mask, std::optional<Array<M>>& stretched, const Shape& scores,
                             std::size_t batch_axes) {
  if (set_strides(mask.shape(), scores, batch_axes, view_)) return mask.data();
  stretched.emplace(xt::broadcast(mask, scores));
  set_strides(scores, scores, batch_axes, view_);
  return stretched->data();
}

#define XGRAD_INSTANTIATE(T)                                                              \
  template void check_mask(const char*, const AttentionMask<T>&, const Shape&);           \
  template Variable<T> masked_scores(const Variable<T>&, const Mask*, const Variable<T>&, \
                                     const kernels::KeyWindow&);                          \
  template class KernelMask<T>;

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::detail
