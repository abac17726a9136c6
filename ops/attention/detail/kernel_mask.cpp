#include "kernel_mask.hpp"

#include <algorithm>
#include <limits>

#include "../../index/masked_fill.hpp"
#include "../../pointwise/broadcast.hpp"

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

/// The shape of a mask for each sequence, (batch, 1, 1, S) or (batch, 1, L, S), if this one of fewer axes may
/// be meant as such.
std::optional<Shape> of_sequences(const Shape& mask, const Shape& scores) {
  const std::size_t rank = mask.size(), axes = scores.size();
  if (rank < 2 || rank >= axes || scores[0] < 2) return {};
  if (mask[0] != scores[0] || mask[rank - 1] != scores[axes - 1]) return {};
  if (rank == 3 && mask[1] != 1 && mask[1] != scores[axes - 2]) return {};
  Shape shape(axes, 1);
  shape[0] = mask[0];
  std::copy(mask.begin() + 1, mask.end(), shape.end() - static_cast<std::ptrdiff_t>(rank - 1));
  return shape;
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
void check_mask(const char* op, const AttentionMask<T>& mask, const Shape& scores, std::size_t batch_axes) {
  if (mask.shape() == nullptr) return;
  const Shape& shape = *mask.shape();
  const bool fits = stretches_to(shape, scores), has_heads = scores.size() > batch_axes + 2;
  const std::optional<Shape> sequences = batch_axes == 1 ? of_sequences(shape, scores) : std::nullopt;
  if (fits && sequences && has_heads) {
    Shape others(shape.size() + 1, 1);
    std::copy(shape.begin(), shape.end(), others.begin() + 1);
    fail<ShapeError>(op, ": attn_mask ", shape, " may be for ", shape.size() == 2 ? "queries" : "heads",
                     " or for sequences, as there are ", shape[0], " of each: reshape it to ", others, " or ",
                     *sequences);
  }
  if (!fits) {
    fail<ShapeError>(op, ": attn_mask must broadcast to the scores ", scores, ", got ", shape,
                     sequences ? join({", which for sequences is ", text(*sequences)}) : std::string());
  }
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

#define XGRAD_INSTANTIATE(T)                                                                 \
  template void check_mask(const char*, const AttentionMask<T>&, const Shape&, std::size_t); \
  template Variable<T> masked_scores(const Variable<T>&, const Mask*, const Variable<T>&,    \
                                     const kernels::KeyWindow&);                             \
  template class KernelMask<T>;

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::detail
