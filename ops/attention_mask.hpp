#pragma once

#include <memory>
#include <optional>

#include "../graph/variable.hpp"
#include "../kernels/attention.hpp"

namespace xgrad {

/// Who may attend to whom: a bool array (true: may) or numbers added to the scores. It broadcasts to the
/// scores, (..., L, S) or (..., num_heads, L, S). An undefined Variable is no mask. Copies share the array.
template <class T>
class AttentionMask {
 public:
  AttentionMask() = default;  ///< everybody to everybody
  AttentionMask(Mask allowed) : allowed_(std::make_shared<const Mask>(std::move(allowed))) {}
  AttentionMask(std::shared_ptr<const Mask> allowed) : allowed_(std::move(allowed)) {}
  AttentionMask(Variable<T> bias) : bias_(std::move(bias)) {}

  const Mask* allowed() const { return allowed_.get(); }
  const std::shared_ptr<const Mask>& shared_allowed() const { return allowed_; }
  const Variable<T>& bias() const { return bias_; }

 private:
  std::shared_ptr<const Mask> allowed_;
  Variable<T> bias_;
};

namespace detail {

/// Throws ShapeError in the name of `op` unless the mask broadcasts to the scores.
template <class T>
void check_mask(const char* op, const AttentionMask<T>& mask, const Shape& scores);

/// scores + mask: the bias added, and -inf where the query may not attend to the key. `is_causal`: nor to
/// keys j > i. There may be no `allowed` and no bias.
template <class T>
Variable<T> masked_scores(const Variable<T>& scores, const Mask* allowed, const Variable<T>& bias,
                          bool is_causal);

/// A mask as the kernels read it: a view, of the mask itself or of its elements stretched where strides
/// cannot say how it broadcasts. The first `batch_axes` axes of the scores are those of the batch.
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

}  // namespace detail
}  // namespace xgrad
