#pragma once

#include <cstddef>
#include <optional>

#include "../../../kernels/attention/attention.hpp"
#include "../attention_mask.hpp"

namespace xgrad::detail {

/// Throws ShapeError in the name of `op` unless the mask broadcasts to the scores, whose first `batch_axes`
/// axes are those of the batch, and with an axis of heads cannot be read in two ways.
template <class T>
void check_mask(const char* op, const AttentionMask<T>& mask, const Shape& scores, std::size_t batch_axes);

/// scores + mask: adds the bias, and sets -inf where the query may not attend to the key, also for keys
/// outside of the window. `allowed` and bias are optional.
template <class T>
Variable<T> masked_scores(const Variable<T>& scores, const Mask* allowed, const Variable<T>& bias,
                          const kernels::KeyWindow& window);

/// A mask for the kernels: a view of the mask itself, or of its stretched elements if strides cannot express
/// how it broadcasts. The first `batch_axes` axes of the scores are those of the batch.
template <class T>
class KernelMask {
 public:
  KernelMask(const Mask* allowed, const Variable<T>& bias, const Shape& scores, std::size_t batch_axes);
  KernelMask(const KernelMask&) = delete;
  KernelMask& operator=(const KernelMask&) = delete;

  const kernels::MaskView<T>& view() const { return view_; }

 private:
  template <class M>
  const M* read(const Array<M>& mask, std::optional<Array<M>>& stretched, const Shape& scores,
                std::size_t batch_axes);

  kernels::MaskView<T> view_;
  std::optional<Mask> stretched_;
  std::optional<Array<T>> stretched_bias_;
};

}  // namespace xgrad::detail
